package checker

import (
	"testing"

	"github.com/lockbench/lockbench/history"
)

func causesOf(r Report) map[string][2]int64 {
	m := map[string][2]int64{}
	for _, c := range r.Causes {
		m[c.Cause] = [2]int64{c.Count, c.Breaches}
	}
	return m
}

// A holder that outlived its lease deletes its successor's lock, and a third is
// granted it: the first overlap is the lease's, the second the release's.
func TestForeignRelease(t *testing.T) {
	const acq, rel = history.KindAcquire, history.KindRelease
	b := newBuilder()
	b.add(0, 0, acq, history.Held, 0, 10)
	b.add(1, 1, acq, history.Held, 200, 1500)
	b.add(0, 0, rel, history.Released, 1600, 1610) // it frees what is 1's
	b.add(2, 2, acq, history.Held, 1620, 1630)
	b.add(1, 1, rel, history.Lost, 1900, 1910)
	b.add(2, 2, rel, history.Released, 2000, 2010)
	r := Check(b.seal(3000), Options{Leased: true, TTL: 1000})
	got := causesOf(r)
	if r.Overlaps != 2 || got[Outlived][0] != 1 || got[ForeignRelease][0] != 1 || r.BreachTotal() == 0 {
		t.Errorf("%d overlaps, causes %v", r.Overlaps, got)
	}
	// A release that was sent before the holder was granted the lock is none.
	b = newBuilder()
	b.add(0, 0, acq, history.Held, 0, 10)
	b.add(0, 0, rel, history.Released, 20, 60)
	b.add(1, 1, acq, history.Held, 30, 40)
	b.add(2, 2, acq, history.Held, 70, 80)
	b.add(1, 1, rel, history.Released, 100, 110)
	b.add(2, 2, rel, history.Released, 120, 130)
	if got := causesOf(Check(b.seal(200), Options{Leased: true, TTL: 1000})); got[ForeignRelease] != [2]int64{} || got[NoKnownCause][0] != 1 {
		t.Errorf("a handoff is taken for a foreign release: %v", got)
	}
}

// A fault on the servers explains the loss of locks that were granted before it,
// but not of those granted after it or lost before.
func TestGeneralSuspect(t *testing.T) {
	const acq, rel = history.KindAcquire, history.KindRelease
	b := newBuilder()
	b.add(0, 0, acq, history.Held, 0, 10)
	b.add(1, 1, acq, history.Held, 100, 110)
	b.add(0, 0, rel, history.Lost, 200, 210)
	b.add(1, 1, rel, history.Released, 220, 230)
	for _, tc := range []struct {
		from, to int64
		want     string
	}{{50, 60, "a restart"}, {5, 20, "a restart"}, {-20, -5, NoKnownCause}, {250, 260, NoKnownCause}} {
		s := []Suspect{{Cause: "a restart", AllClients: true, From: tc.from, To: tc.to}}
		got := causesOf(Check(b.seal(300), Options{Leased: true, TTL: 10000, Suspects: s}))
		if len(got) != 1 || got[tc.want][0] != 1 || got[tc.want][1] == 0 {
			t.Errorf("a restart from %d to %d: causes %v, want %s", tc.from, tc.to, got, tc.want)
		}
	}
}

// An acquire that returned failed or busy, and whose release is confirmed later,
// returned a definite outcome that was not known.
func TestFalseDefinite(t *testing.T) {
	const rel = history.KindRelease
	for _, kind := range []history.Kind{history.KindAcquire, history.KindTry} {
		for _, outcome := range []history.Outcome{history.Failed, history.Busy, history.Unknown} {
			for _, leased := range []bool{false, true} {
				b := newBuilder()
				b.add(0, 0, history.KindAcquire, history.Held, 0, 10)
				b.add(1, 1, kind, outcome, 15, 30)
				b.add(0, 0, rel, history.Released, 20, 25)
				b.add(1, 1, rel, history.Released, 40, 50)
				b.add(0, 2, history.KindAcquire, history.Held, 60, 70)
				b.add(0, 2, rel, history.Released, 80, 90)
				r := Check(b.seal(100), Options{Leased: leased})
				want, promise := int64(1), Broken
				if outcome == history.Unknown {
					want, promise = 0, Kept
				}
				if r.Breaches[FalseDefinite] != want || r.BreachTotal() != want || r.Malformed != 0 || r.Promise.Value != promise || r.Overlaps != 0 {
					t.Errorf("a %s outcome %s, leased %v: breaches %v, malformed %d, promise %s", kind, outcome, leased, r.Breaches, r.Malformed, r.Promise.Value)
				}
			}
		}
	}
}

// A lock whose release ignores the owner may be freed by a release that was sent before the
// grant and is on its way still, or by the clean-up of an attempt that got
// nothing; one that checks the owner may not.
func TestReleaseIgnoresOwner(t *testing.T) {
	const acq, rel, clean = history.KindAcquire, history.KindRelease, history.KindCleanup
	for name, late := range map[string]func(b *builder){
		"a release on its way": func(b *builder) { b.add(0, 0, rel, history.Unknown, 20, 30) },
		"a late answer":        func(b *builder) { b.add(0, 0, rel, history.Released, 20, 75) },
		"a clean-up of a stranger": func(b *builder) {
			b.add(0, 0, rel, history.Released, 12, 14)
			b.add(3, 3, acq, history.Unknown, 15, 60)
			b.add(3, 3, clean, history.Released, 70, 80)
		},
	} {
		for _, ignoresOwner := range []bool{true, false} {
			b := newBuilder()
			b.add(0, 0, acq, history.Held, 0, 10)
			late(b)
			b.add(1, 1, acq, history.Held, 40, 50)
			b.add(2, 2, acq, history.Held, 85, 90)
			b.add(1, 1, rel, history.Lost, 100, 110)
			b.add(2, 2, rel, history.Released, 120, 130)
			got := causesOf(Check(b.seal(200), Options{Leased: true, TTL: 1000, ReleaseIgnoresOwner: ignoresOwner}))
			want := NoKnownCause
			if ignoresOwner {
				want = ForeignRelease
			}
			if got[want][0] != 1 || len(got) != 1 {
				t.Errorf("%s, release ignores owner %v: causes %v", name, ignoresOwner, got)
			}
		}
	}
}
