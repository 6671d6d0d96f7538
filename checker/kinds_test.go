package checker

import (
	"testing"

	"github.com/lockbench/lockbench/history"
)

// step is one call of a hand-written history: attempt n of client, on key.
type step struct {
	client uint32
	n      int
	kind   history.Kind
	o      history.Outcome
	c, r   int64
	key    uint32
	flags  history.Flags
}

func played(steps []step, end int64) *history.History {
	b := newBuilder()
	for _, s := range steps {
		c := b.add(s.client, s.n, s.kind, s.o, s.c, s.r)
		c.Key, c.Flags = s.key, s.flags
	}
	return b.seal(end)
}

const (
	acq, try, rel, cln = history.KindAcquire, history.KindTry, history.KindRelease, history.KindCleanup
	ext, gone, also    = history.KindExtend, history.KindLost, history.KindAlso
	held, busy, freed  = history.Held, history.Busy, history.Released
	lost, unk, renewed = history.Lost, history.Unknown, history.Extended
	read               = history.FlagShared
)

// A killed client holds and wants nothing after its death; what it held is free
// from then on, for any waiter.
func TestDied(t *testing.T) {
	steps := []step{
		{client: 0, n: 0, kind: acq, o: held, c: 0, r: 10},
		{client: 1, n: 1, kind: acq, o: held, c: 5, r: 90},
		{client: 1, n: 1, kind: rel, o: freed, c: 95, r: 96},
	}
	h := played(steps, 100)
	for i := range h.Streams {
		h.Streams[i].Sealed = h.Streams[i].Client != 0
	}
	o := Options{Leased: true, Takeover: 55}
	if r := Check(h, o); r.Overlaps != 0 || r.Stuck.From != 0 {
		t.Errorf("without the death: %d overlaps, stuck %+v", r.Overlaps, r.Stuck)
	}
	o.Died = []Death{{Client: 0, At: 40}}
	if r := Check(h, o); r.Overlaps != 0 || r.Stuck.From != 40 || r.Stuck.To != 90 || r.Liveness.Value != Live {
		t.Errorf("free from its death: %d overlaps, stuck %+v, %v", r.Overlaps, r.Stuck, r.Liveness)
	}
	o.Takeover = 45
	if r := Check(h, o); r.Liveness.Value != Stuck {
		t.Errorf("taken for 50 after the death: %v", r.Liveness)
	}
	o.Died[0].At = 92
	if r := Check(h, o); r.Overlaps != 1 || r.Verdict.Value != Unsafe {
		t.Errorf("it lived and held when another was granted: %d overlaps", r.Overlaps)
	}
}

func TestDiedWantsNothing(t *testing.T) {
	h := played([]step{{client: 0, n: 0, kind: acq, o: history.Open, c: 10}, {client: 1, n: 1, kind: acq, o: held, c: 200, r: 201}}, 300)
	for i := range h.Streams {
		h.Streams[i].Sealed = h.Streams[i].Client != 0
	}
	o := Options{Takeover: 50, Died: []Death{{Client: 0, At: 30}}}
	if r := Check(h, o); r.Stuck.From != 10 || r.Stuck.To != 30 || r.Liveness.Value != Live {
		t.Errorf("stuck %+v, %v", r.Stuck, r.Liveness)
	}
}

// Readers share, a writer excludes.
func TestReadWrite(t *testing.T) {
	reads := func(n int, from, to int64) []step {
		return []step{{uint32(n), n, acq, held, from - 1, from, 0, read}, {uint32(n), n, rel, freed, to, to + 1, 0, read}}
	}
	writes := func(n int, from, to int64) []step {
		return []step{{uint32(n), n, acq, held, from - 1, from, 0, 0}, {uint32(n), n, rel, freed, to, to + 1, 0, 0}}
	}
	join := func(parts ...[]step) (all []step) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for _, tc := range []struct {
		name                   string
		steps                  []step
		overlaps, incidents, t int64
	}{
		{"readers together, then a writer", join(reads(0, 10, 30), reads(1, 20, 40), writes(2, 42, 50)), 0, 0, 0},
		{"a writer among readers", join(reads(0, 10, 30), reads(1, 20, 40), writes(2, 25, 35)), 2, 1, 10},
		{"two writers", join(writes(0, 10, 30), writes(1, 20, 40), reads(2, 50, 60)), 1, 1, 10},
		{"two writers far apart, readers all along", join(reads(0, 10, 30), writes(3, 28, 35), reads(1, 36, 60), reads(4, 58, 80), writes(5, 79, 90)), 2, 2, 2 + 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := Check(played(tc.steps, 200), Options{})
			if r.Overlaps != tc.overlaps || r.Incidents != tc.incidents || r.OverlapNS != tc.t || r.Breaches[DoubleHold] != tc.overlaps {
				t.Errorf("%d overlaps, %d incidents, %d ns, breaches %v", r.Overlaps, r.Incidents, r.OverlapNS, r.Breaches)
			}
		})
	}
}

// Of a re-entrant lock a client's nested holds are one.
func TestReentrantHolds(t *testing.T) {
	nested := func(last int64) []step {
		return []step{
			{client: 0, n: 0, kind: acq, o: held, c: 0, r: 10},
			{client: 0, n: 1, kind: acq, o: held, c: 11, r: 12},
			{client: 0, n: 1, kind: rel, o: freed, c: 20, r: 21},
			{client: 0, n: 0, kind: rel, o: freed, c: 50, r: 51},
			{client: 1, n: 2, kind: acq, o: held, c: 5, r: last},
			{client: 1, n: 2, kind: rel, o: freed, c: last + 60, r: last + 61},
		}
	}
	o := Options{Reentrant: true}
	if r := Check(played(nested(52), 200), o); r.Verdict.Value != Safe || r.Promise.Value != Kept || r.Grants != 3 {
		t.Errorf("a kept lock: %v, %v, %d grants", r.Verdict, r.Promise, r.Grants)
	}
	// The inner release frees the outer hold.
	if r := Check(played(nested(30), 200), o); r.Overlaps != 1 || r.OverlapNS != 20 || r.Breaches[DoubleHold] != 1 {
		t.Errorf("freed by the inner release: %d overlaps, %d ns, %v", r.Overlaps, r.OverlapNS, r.Breaches)
	}
	if r := Check(played(nested(52), 200), Options{}); r.Overlaps != 1 {
		t.Errorf("as a plain mutex the owner itself is refused: %d overlaps", r.Overlaps)
	}
	// Released in the other order.
	crossed := nested(52)
	crossed[2].n, crossed[3].n = 0, 1
	if r := Check(played(crossed, 200), o); r.Verdict.Value != Safe || r.Promise.Value != Kept {
		t.Errorf("released the outer first: %v, %v", r.Verdict, r.Promise)
	}
}

// A batch holds each of its keys.
func TestBatch(t *testing.T) {
	b := []step{
		{client: 0, n: 0, kind: also, o: held, c: 0, r: 0, key: 3},
		{client: 0, n: 0, kind: also, o: held, c: 0, r: 0, key: 5},
		{client: 0, n: 0, kind: acq, o: held, c: 1, r: 10, key: 1},
		{client: 0, n: 0, kind: rel, o: freed, c: 50, r: 51, key: 1},
		{client: 1, n: 1, kind: acq, o: held, c: 15, r: 20, key: 5},
		{client: 1, n: 1, kind: rel, o: freed, c: 60, r: 61, key: 5},
	}
	if r := Check(played(b, 100), Options{}); r.Overlaps != 1 || r.OverlapNS != 30 || r.Grants != 2 || r.Malformed != 0 || r.Breaches[DoubleHold] != 1 {
		t.Errorf("one key of a batch: %+v", r)
	}
	b[4].key, b[5].key = 4, 4
	if r := Check(played(b, 100), Options{}); r.Overlaps != 0 || r.Promise.Value != Kept {
		t.Errorf("none of its keys: %d overlaps, %v", r.Overlaps, r.Promise)
	}
}
