package checker

import (
	"fmt"
	"math/rand/v2"
	"testing"

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

// A lock that excludes nobody: all holds overlap. The cost must not depend on
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
