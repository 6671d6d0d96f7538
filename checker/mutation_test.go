package checker

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
)

// A simulated lock with one planted defect must be found out whenever the
// simulation knows that a client could have seen the defect. What a client
// could have seen is derived from the clients' states tick by tick, or by looking at
// the record with the one question of that defect in mind; never by the checker.

// together reports at each tick whether two clients held that must not, and did
// so the tick before.
func together(w *world, seen *bool) func(t int64, users []user) {
	before := map[[2]int]bool{}
	return func(_ int64, users []user) {
		now := map[[2]int]bool{}
		for c := range users {
			for d := range c {
				x, y := &users[c], &users[d]
				if x.holds() && y.holds() && !(x.shared && y.shared) {
					pair := [2]int{c, d}
					now[pair] = true
					*seen = *seen || before[pair]
				}
			}
		}
		before = now
	}
}

// holds: it believes to hold, and has sent nothing to change that.
func (u *user) holds() bool { return u.phase == 3 || len(u.nest) > 0 }

// noOtherAttempt reports whether some try was refused while no other attempt's calls
// allow it to have had the lock. Only for records without unknown outcomes.
func noOtherAttempt(h *history.History) bool {
	type use struct{ from, to int64 }
	uses := map[history.Attempt]use{}
	for _, c := range h.Calls {
		u, ok := uses[c.Attempt]
		switch {
		case c.Outcome == history.Open && !ok:
			uses[c.Attempt] = use{c.Invoke, forever}
		case c.Outcome == history.Held:
			uses[c.Attempt] = use{c.Invoke, forever}
		case c.Outcome == history.Released, c.Kind == history.KindRelease && c.Outcome == history.Lost:
			u.to = c.Return
			uses[c.Attempt] = u
		}
	}
	for _, c := range h.Calls {
		if c.Outcome != history.Busy {
			continue
		}
		alone := true
		for _, u := range uses {
			alone = alone && (u.to < c.Invoke || u.from > c.Return)
		}
		if alone {
			return true
		}
	}
	return false
}

// outlived reports whether a release or renewal succeeded although another
// attempt was sent and granted since its own grant.
func outlived(h *history.History) bool {
	granted := map[history.Attempt]history.Call{}
	for _, c := range h.Calls {
		if c.Outcome == history.Held {
			granted[c.Attempt] = c
		}
	}
	for _, c := range h.Calls {
		mine, ok := granted[c.Attempt]
		if !ok || c.Outcome != history.Extended && c.Outcome != history.Released {
			continue
		}
		for id, g := range granted {
			if id != c.Attempt && mine.Return < g.Invoke && g.Return < c.Invoke {
				return true
			}
		}
	}
	return false
}

// sameToken reports whether two grants were recorded with one token.
func sameToken(h *history.History) bool {
	met := map[uint64]bool{}
	for _, c := range h.Calls {
		if c.Outcome == history.Held && met[c.Fence] {
			return true
		}
		met[c.Fence] = met[c.Fence] || c.Outcome == history.Held
	}
	return false
}

// tooSoon reports whether a grant was answered before the lease of another, that
// had sent no release, was over by the clock.
func tooSoon(h *history.History, ttl int64) bool {
	return slices.ContainsFunc(h.Calls, func(g history.Call) bool {
		if g.Outcome != history.Held {
			return false
		}
		return slices.ContainsFunc(h.Calls, func(x history.Call) bool {
			if x.Outcome != history.Held || x.Attempt == g.Attempt || x.Return >= g.Invoke || x.Invoke+ttl <= g.Return {
				return false
			}
			return !slices.ContainsFunc(h.Calls, func(r history.Call) bool {
				return r.Attempt == x.Attempt && r.Kind == history.KindRelease && r.Invoke <= g.Return
			})
		})
	})
}

// planted is a lock with a defect, and what finds it.
type planted struct {
	name   string
	defect defect
	world  world
	opt    Options
	seen   func(h *history.History) bool // nil: two held together
	class  []Class
}

func plantedDefects() []planted {
	const ttl = 40
	base := world{ticks: 150, eager: 1, hold: 8, tries: 2, odds: 6, lossy: 0}
	// Two clients that only try: at times neither is about.
	quiet := base
	quiet.clients, quiet.tries = 2, 4
	lease := base
	lease.ttl = ttl
	return []planted{
		{"double grant", doubleGrant, base, Options{}, nil, []Class{DoubleHold, Overlap}},
		{"double grant, answers lost", doubleGrant, world{ticks: 150, eager: 1, hold: 8, odds: 6, lossy: 6}, Options{}, nil, []Class{DoubleHold, Overlap}},
		{"forgotten lock", forgotten, world{ticks: 150, eager: 1, hold: 8, odds: 200}, Options{}, nil, []Class{DoubleHold, Overlap}},
		{"lost release", lostRelease, quiet, Options{}, noOtherAttempt, []Class{UnexplainedBusy}},
		{"phantom grant", phantomGrant, quiet, Options{}, noOtherAttempt, []Class{UnexplainedBusy}},
		{"spurious busy", spuriousBusy, quiet, Options{}, noOtherAttempt, []Class{UnexplainedBusy}},
		{"stale token", staleToken, world{ticks: 150, eager: 1, hold: 8, odds: 6, tokens: true}, Options{Fencing: true}, sameToken, []Class{TokenRegression}},
		{"early expiry", earlyExpiry, lease, Options{Leased: true, TTL: ttl}, func(h *history.History) bool { return tooSoon(h, ttl) }, []Class{EarlyExpiry, DoubleHold}},
		{"resurrected lease", resurrection, world{ticks: 150, eager: 1, hold: 8, odds: 3, ttl: 6}, Options{Leased: true}, outlived, []Class{DoubleHold, ZombieSuccess}},
		{"foreign release", foreignRelease, world{ticks: 150, eager: 1, hold: 8, ttl: 6}, Options{Leased: true}, outlived, []Class{DoubleHold, ZombieSuccess}},
		{"inner release frees", innerFrees, world{ticks: 150, eager: 1, hold: 8, reentrant: true}, Options{Reentrant: true}, nil, []Class{DoubleHold, Overlap}},
		{"readers intrude", readersIntrude, world{ticks: 150, eager: 1, hold: 8, odds: 6, reads: 2}, Options{}, nil, []Class{DoubleHold, Overlap}},
	}
}

func TestPlantedDefects(t *testing.T) {
	for k, d := range plantedDefects() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(99, uint64(k)))
			var visible, found int
			for range rounds(600) {
				w := d.world
				w.defect = d.defect
				if w.clients == 0 {
					w.clients = 3 + rng.IntN(3)
				}
				seen := false
				if d.seen == nil {
					w.watch = together(&w, &seen)
				}
				h := &w.run(rng).h
				if d.seen != nil {
					seen = d.seen(h)
				}
				if !seen {
					continue
				}
				visible++
				r := Check(h, d.opt)
				if slices.ContainsFunc(d.class, func(c Class) bool { return r.Breaches[c] > 0 || c == Overlap && r.Overlaps > 0 }) {
					found++
				}
			}
			t.Logf("could be seen in %d runs, was found in %d", visible, found)
			if visible < rounds(600)/10 {
				t.Errorf("a client could have seen it in %d of %d runs only", visible, rounds(600))
			}
			if found*100 < visible*95 {
				t.Errorf("found in %d of the %d runs in which a client could have seen it", found, visible)
			}
		})
	}
}

// Sound locks are never accused.
func TestSoundLocksAreNotAccused(t *testing.T) {
	const ttl = 12
	for k, d := range []struct {
		name  string
		world world
		opt   Options
	}{
		{"mutex", world{tries: 2, lossy: 8}, Options{}},
		{"mutex, tries only", world{tries: 4, lossy: 4}, Options{}},
		{"mutex with tokens", world{tries: 1, lossy: 8, tokens: true}, Options{Fencing: true}},
		{"re-entrant", world{tries: 1, lossy: 8, reentrant: true}, Options{Reentrant: true}},
		{"read-write", world{tries: 2, lossy: 8, reads: 2}, Options{}},
		{"lease without a known time", world{tries: 2, lossy: 8, ttl: -1}, Options{Leased: true}},
		{"lease, untimed", world{tries: 2, lossy: 8, ttl: ttl, tokens: true}, Options{Leased: true, Fencing: true}},
		{"lease, timed", world{tries: 2, lossy: 8, ttl: ttl}, Options{Leased: true, TTL: time.Duration(ttl)}},
		{"re-entrant lease", world{tries: 1, lossy: 8, ttl: ttl, reentrant: true}, Options{Leased: true, Reentrant: true}},
		{"read-write lease", world{tries: 2, lossy: 8, ttl: ttl, reads: 2}, Options{Leased: true, TTL: time.Duration(ttl)}},
	} {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(7, uint64(k)))
			for range rounds(10000) {
				w := d.world
				w.clients, w.ticks, w.eager, w.hold = 2+rng.IntN(5), 30+rng.IntN(60), rng.IntN(3), 1+rng.IntN(6)
				h := &w.run(rng).h
				r := Check(h, d.opt)
				if r.BreachTotal() > 0 || r.Malformed > 0 || r.Undecided > 0 {
					t.Fatalf("accused: %v, malformed %d, undecided %d %s\n%s", r.Breaches, r.Malformed, r.Undecided, r.UndecidedWhy, fixture(h))
				}
			}
		})
	}
}
