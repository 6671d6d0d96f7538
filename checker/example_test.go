package checker_test

import (
	"fmt"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
)

// A client is granted the lock while another client still holds it.
func Example() {
	first, second := history.Attempt{1}, history.Attempt{2}
	h := &history.History{
		Streams: []history.Stream{
			{Client: 1, Worker: 1, Sealed: true, SealedAt: 100},
			{Client: 2, Worker: 1, Sealed: true, SealedAt: 100},
		},
		Calls: []history.Call{
			{Client: 1, Seq: 0, Kind: history.KindAcquire, Outcome: history.Held, Attempt: first, Invoke: 10, Return: 20},
			{Client: 2, Seq: 0, Kind: history.KindAcquire, Outcome: history.Held, Attempt: second, Invoke: 15, Return: 40},
			{Client: 1, Seq: 1, Kind: history.KindRelease, Outcome: history.Released, Attempt: first, Invoke: 60, Return: 65},
			{Client: 2, Seq: 1, Kind: history.KindRelease, Outcome: history.Released, Attempt: second, Invoke: 80, Return: 85},
		},
	}
	r := checker.Check(h, checker.Options{})
	fmt.Println(r.Verdict.Value+":", r.Verdict.Why)
	fmt.Println(r.Promise.Value+":", r.Promise.Why)
	for _, w := range r.Witnesses {
		fmt.Printf("%s: clients %d and %d both held key %d from %d to %d ns\n", w.Class, w.Calls[0].Client, w.Calls[1].Client, w.Key, w.From, w.To)
	}
	// Output:
	// unsafe: 1 pair of holds held a key at once
	// broken: its answers do not fit a mutex: 1 double-hold
	// overlap: clients 1 and 2 both held key 0 from 40 to 60 ns
	// double-hold: clients 1 and 2 both held key 0 from 40 to 60 ns
}
