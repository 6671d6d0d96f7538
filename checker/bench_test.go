package checker

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/lockbench/lockbench/history"
)

// traffic makes n calls, half acquires and half releases, of a lock that works
// except for a few paused holders.
func traffic(n, keys int) *history.History {
	rng := rand.New(rand.NewPCG(1, 1))
	h := &history.History{Calls: make([]history.Call, 0, n)}
	const clients = 64
	seqs := make([]uint32, clients)
	free := make([]int64, keys)
	ready := make([]int64, clients)
	for i := 0; len(h.Calls) < n; i++ {
		c := i % clients
		key := rng.IntN(keys)
		granted := max(free[key], ready[c]) + 50_000 + rng.Int64N(50_000)
		hold := rng.Int64N(1_000_000)
		free[key] = granted + hold
		if i%50_000 == 49_999 {
			hold += 200_000_000 // goes on without the lock
		}
		call := history.Call{Client: uint32(c), Seq: seqs[c], Kind: history.KindAcquire, Outcome: history.Held, Key: uint32(key), Attempt: id(i), Invoke: ready[c], Return: granted, Fence: uint64(granted)}
		h.Calls = append(h.Calls, call)
		call.Seq, call.Kind, call.Outcome, call.Invoke, call.Return = seqs[c]+1, history.KindRelease, history.Released, granted+hold, granted+hold+60_000
		h.Calls = append(h.Calls, call)
		seqs[c] += 2
		ready[c] = call.Return + 1000
	}
	for c := range clients {
		h.Streams = append(h.Streams, history.Stream{Client: uint32(c), Worker: uint32(c % 4), Sealed: true, SealedAt: ready[c], ClockUncertainty: 150})
	}
	return h
}

func BenchmarkSweep(b *testing.B) {
	for _, keys := range []int{1, 100} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			h := traffic(1_000_000, keys)
			b.ReportAllocs()
			var r Report
			for b.Loop() {
				r = Check(h, Options{Leased: true, TTL: 4_000_000_000, Fencing: true, Takeover: 5_000_000_000})
			}
			b.ReportMetric(float64(len(h.Calls)*b.N)/b.Elapsed().Seconds(), "calls/s")
			if r.Grants != 500_000 || r.Verdict.Value != Unsafe {
				b.Fatalf("%+v", r.Verdict)
			}
		})
	}
}

// crowd makes n calls of clients that all want a few keys at once: holds follow
// one another closely, and between them come refused tries, three for each
// hold, and unknown acquires with their clean-ups, unknown in 100 of the holds'
// number. Each key's middle hold is granted twice if broken.
func crowd(n, keys, clients, unknown int, broken bool) *history.History {
	rng := rand.New(rand.NewPCG(1, uint64(n)))
	h := &history.History{Calls: make([]history.Call, 0, n+16)}
	seqs := make([]uint32, clients)
	next, now := 0, make([]int64, keys)
	put := func(client, key int, kind history.Kind, o history.Outcome, attempt int, invoke, ret int64) {
		h.Calls = append(h.Calls, history.Call{
			Client: uint32(client), Seq: seqs[client], Kind: kind, Outcome: o, Key: uint32(key), Attempt: id(attempt), Invoke: invoke, Return: ret,
		})
		seqs[client]++
	}
	for i := 0; len(h.Calls) < n; i++ {
		key := i % keys
		t := now[key]
		client := func() int { next++; return next % clients }
		put(client(), key, history.KindTry, history.Held, 8*i, t, t+90)
		put(next%clients, key, history.KindRelease, history.Released, 8*i, t+200, t+300)
		for k := range 3 {
			from := t + 20 + rng.Int64N(200)
			put(client(), key, history.KindTry, history.Busy, 8*i+1+k, from, from+50+rng.Int64N(60))
		}
		if rng.IntN(100) < unknown {
			c := client()
			put(c, key, history.KindTry, history.Unknown, 8*i+4, t+10, t+100)
			put(c, key, history.KindCleanup, history.Lost, 8*i+4, t+110, t+210)
		}
		if broken && i/keys == n/keys/10 {
			put(client(), key, history.KindTry, history.Held, 8*i+5, t+80, t+110)
			put(next%clients, key, history.KindRelease, history.Released, 8*i+5, t+180, t+290)
		}
		now[key] = t + 290 // the next may overtake the release's answer
	}
	for c := range clients {
		h.Streams = append(h.Streams, history.Stream{Client: uint32(c), Worker: uint32(c % 4), Sealed: true, SealedAt: 1 << 60})
	}
	return h
}

// BenchmarkCheck: a million calls, or the number in LOCKBENCH_BENCH_CALLS.
func BenchmarkCheck(b *testing.B) {
	n := 1_000_000
	if k, err := strconv.Atoi(os.Getenv("LOCKBENCH_BENCH_CALLS")); err == nil {
		n = k
	}
	for _, keys := range []int{1, 100} {
		for _, clients := range []int{8, 128} {
			for _, unknown := range []int{0, 1, 5} {
				for _, broken := range []bool{false, true} {
					b.Run(fmt.Sprintf("keys=%d/clients=%d/unknown=%d/broken=%v", keys, clients, unknown, broken), func(b *testing.B) {
						h := crowd(n, keys, clients, unknown, broken)
						b.ReportAllocs()
						for b.Loop() {
							if r := Check(h, Options{Leased: true}); (r.BreachTotal() > 0) != broken || r.Undecided > 0 {
								b.Fatalf("%v, %d undecided", r.Breaches, r.Undecided)
							}
						}
						b.ReportMetric(float64(len(h.Calls)*b.N)/b.Elapsed().Seconds(), "calls/s")
					})
				}
			}
		}
	}
}

// BenchmarkAgainstPorcupine: the same small history by both; of a broken one, or
// one with unknown outcomes, a general search need not come to an end.
func BenchmarkAgainstPorcupine(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		h := crowd(n, 1, 32, 0, false)
		b.Run(fmt.Sprintf("calls=%d/checker", n), func(b *testing.B) {
			for b.Loop() {
				Check(h, Options{})
			}
		})
		b.Run(fmt.Sprintf("calls=%d/porcupine", n), func(b *testing.B) {
			ops := make([]porcupine.Operation, len(h.Calls))
			for i, c := range h.Calls {
				ops[i] = porcupine.Operation{ClientId: int(c.Client), Input: c, Call: c.Invoke, Return: c.Return}
			}
			model := porcupine.Model{
				Init: func() any { return history.Attempt{} },
				Step: func(state, in, _ any) (bool, any) {
					holder, c := state.(history.Attempt), in.(history.Call)
					switch c.Outcome {
					case history.Held:
						return holder.IsZero(), c.Attempt
					case history.Busy:
						return !holder.IsZero(), holder
					}
					return holder == c.Attempt, history.Attempt{}
				},
				Hash: func(state any) uint64 { a := state.(history.Attempt); return binary.BigEndian.Uint64(a[:]) },
			}
			for b.Loop() {
				if porcupine.CheckOperationsTimeout(model, ops, time.Minute) != porcupine.Ok {
					b.Fatal("porcupine did not find it sound within a minute")
				}
			}
		})
	}
}

// A lock that excludes no client: all holds overlap. The cost must not depend on
// the number of pairs.
func BenchmarkSweepHopeless(b *testing.B) {
	h := traffic(200_000, 1)
	for i := range h.Calls {
		if h.Calls[i].Kind == history.KindRelease {
			h.Calls[i].Invoke += 1 << 50
			h.Calls[i].Return += 1 << 50
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if r := Check(h, Options{Leased: true}); r.Overlaps != 100_000*99_999/2 {
			b.Fatal(r.Overlaps)
		}
	}
}
