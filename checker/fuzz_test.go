package checker

import (
	"fmt"
	"slices"
	"testing"

	"github.com/lockbench/lockbench/history"
)

// FuzzCheck: for any history, there is no panic, no figure is negative, and the
// answers agree with the counts.
func FuzzCheck(f *testing.F) {
	f.Add([]byte{1, 1, 0, 0, 3, 2, 3, 5, 0, 8, 1}, false)
	f.Add([]byte{1, 1, 0, 0, 3, 2, 1, 1, 4, 6, 3, 5, 0, 8, 1}, true)
	f.Fuzz(func(t *testing.T, data []byte, damaged bool) {
		h := decoded(data)
		if damaged {
			h.Damage = []history.Damage{{What: "fuzz"}}
		}
		for _, o := range []Options{
			{}, {Leased: true, TTL: 40, Fencing: true, Takeover: 20}, {Leased: true}, {Reentrant: true, Died: []Death{{1, 100}}},
			{Leased: true, Reentrant: true, TTL: 40}, {TriesYield: true, Fencing: true}, {Takeover: 20, JudgeClients: true, AcquireLimit: 30},
		} {
			r := Check(h, o)
			orderIsIdle(t, h, o, r)
			strangerIsIdle(t, h, o, r)
			if r.Overlaps < 0 || r.UncertainOverlaps < 0 || r.Incidents > r.Overlaps || r.OverlapNS < 0 || r.Stuck.Length() < 0 || r.ContendedGrants > r.Grants || r.Undecided < 0 {
				t.Fatalf("impossible counts: %+v", r)
			}
			for class, n := range r.Breaches {
				if n <= 0 || !hasWitness(r, class) {
					t.Fatalf("%d %s, witnesses %+v", n, class, r.Witnesses)
				}
			}
			var harm int64
			for _, reg := range r.Registers {
				harm += reg.LostUpdates + reg.StaleWrites
			}
			if (r.Verdict.Value == Unsafe) != (r.Overlaps+harm > 0) || (r.Promise.Value == Broken) != (r.BreachTotal() > 0) {
				t.Fatalf("answers against counts: %+v", r)
			}
			for _, w := range r.Witnesses {
				if r.Verdict.Value == Safe && (w.Class == Overlap || w.Class == LostUpdate || w.Class == StaleWrite) {
					t.Fatalf("safe, with a witness: %+v", w)
				}
				if len(w.Calls) == 0 || len(w.Around) < 1 || w.Key > 3 {
					t.Fatalf("a witness that shows nothing: %+v", w)
				}
			}
			if damaged && (r.Verdict.Value == Safe || r.Promise.Value == Kept || r.Liveness.Value != Unknown) {
				t.Fatalf("a damaged history proves something: %+v", r)
			}
		}
	})
}

// decoded makes a history of any bytes.
func decoded(data []byte) *history.History {
	b := newBuilder()
	for len(data) >= 5 {
		kind := history.Kind(1 + data[0]%11)
		client, n := uint32(data[1]%4), int(data[1]>>2%8)
		invoke := int64(data[3])
		c := b.add(client, n, kind, history.Outcome(data[2]%10), invoke, invoke+int64(data[4]%32))
		c.Key, c.Flags = uint32(data[2]>>6), history.Flags(data[4]>>3)
		c.Fence, c.Arg, c.Value = uint64(data[4]%7), uint64(data[4]%5), uint64(data[4]%3)
		if c.Outcome == history.Open {
			c.Return = 0
		}
		b.seqs[client] += uint32(data[0] >> 7)
		data = data[5:]
	}
	return b.seal(300)
}

// orderIsIdle: the order of the calls in the input does not matter.
func orderIsIdle(t *testing.T, h *history.History, o Options, want Report) {
	x := *h
	x.Calls = slices.Clone(h.Calls)
	slices.Reverse(x.Calls)
	if a, b := fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", Check(&x, o)); a != b {
		t.Fatalf("turned round, it is judged otherwise\n%s\n%s", a, b)
	}
}

// strangerIsIdle: what happens on another key does not matter.
func strangerIsIdle(t *testing.T, h *history.History, o Options, want Report) {
	x := *h
	x.Calls = slices.Clone(h.Calls)
	for n, kind := range []history.Kind{history.KindAcquire, history.KindRelease} {
		outcome := [...]history.Outcome{history.Held, history.Released}[n]
		x.Calls = append(x.Calls, history.Call{
			Client: 77, Seq: uint32(n), Kind: kind, Outcome: outcome, Key: 77, Attempt: id(7777), Invoke: int64(4 * n), Return: int64(4*n + 2), Fence: 1,
		})
	}
	x.Streams = append(slices.Clone(h.Streams), history.Stream{Client: 77, Worker: 77, Sealed: true, SealedAt: 300})
	got := Check(&x, o)
	if got.Overlaps != want.Overlaps || got.BreachTotal() != want.BreachTotal() || got.Undecided != want.Undecided || got.Malformed != want.Malformed || got.Grants != want.Grants+1 {
		t.Fatalf("another key changed the account\n%+v\n%+v", want, got)
	}
}
