package checker

import (
	"testing"

	"github.com/lockbench/lockbench/history"
)

// FuzzCheck: whatever a history says, there is no panic, nothing is negative,
// and the answers agree with the counts.
func FuzzCheck(f *testing.F) {
	f.Add([]byte{1, 1, 0, 0, 3, 2, 3, 5, 0, 8, 1}, false)
	f.Add([]byte{1, 1, 0, 0, 3, 2, 1, 1, 4, 6, 3, 5, 0, 8, 1}, true)
	f.Fuzz(func(t *testing.T, data []byte, damaged bool) {
		b := newBuilder()
		for len(data) >= 5 {
			kind := history.Kind(1 + data[0]%9)
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
		h := b.seal(300)
		if damaged {
			h.Damage = []history.Damage{{What: "fuzz"}}
		}
		for _, o := range []Options{{}, {Leased: true, TTL: 40, Fencing: true, Takeover: 20}, {Leased: true}} {
			r := Check(h, o)
			if r.Overlaps < 0 || r.UncertainOverlaps < 0 || r.Incidents > r.Overlaps || r.OverlapNS < 0 || r.Stuck.Length() < 0 || r.ContendedGrants > r.Grants {
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
			if damaged && (r.Verdict.Value == Safe || r.Promise.Value == Kept || r.Liveness.Value != Unknown) {
				t.Fatalf("a damaged history proves something: %+v", r)
			}
		}
	})
}
