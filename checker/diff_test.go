package checker

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/testenv"
)

// The rules against a general search of all orders, on small random histories:
// sound ones, ones of broken locks, ones with altered stamps and outcomes, and
// ones with tries that returned busy at a random time.

// differential is one lock to compare verdicts about.
type differential struct {
	name    string
	spec    spec
	opt     Options
	world   world
	defects []defect
	bad     int // in 1000 histories, at least so many must not fit
}

func differentials() []differential {
	base := world{lossy: 6, eager: 1, hold: 3, tries: 1, odds: 4}
	with := func(change func(w *world)) world {
		w := base
		change(&w)
		return w
	}
	return []differential{
		{"mutex", spec{}, Options{}, base, []defect{doubleGrant, lostRelease, forgotten, spuriousBusy, phantomGrant}, 100},
		{"mutex, much unknown", spec{}, Options{}, with(func(w *world) { w.lossy, w.tries, w.eager = 2, 2, 0 }), []defect{doubleGrant, spuriousBusy, lostRelease}, 20},
		{"lease", spec{leased: true}, Options{Leased: true}, with(func(w *world) { w.ttl = -1 }), []defect{doubleGrant, resurrection, foreignRelease, spuriousBusy}, 8},
		{"lease that lasts", spec{leased: true}, Options{Leased: true}, with(func(w *world) { w.ttl, w.tries = 9, 2 }), []defect{doubleGrant, resurrection, foreignRelease, forgotten, spuriousBusy}, 15},
		{"lease, much unknown", spec{leased: true}, Options{Leased: true}, with(func(w *world) { w.ttl, w.lossy, w.tries, w.eager = 30, 2, 2, 0 }), []defect{doubleGrant, spuriousBusy}, 7},
		{"re-entrant", spec{reentrant: true}, Options{Reentrant: true}, with(func(w *world) { w.reentrant, w.lossy = true, 0 }), []defect{doubleGrant, innerFrees, spuriousBusy}, 100},
		{"re-entrant, some unknown", spec{reentrant: true}, Options{Reentrant: true}, with(func(w *world) { w.reentrant = true }), []defect{doubleGrant, innerFrees, spuriousBusy}, 100},
		{"read-write", spec{}, Options{}, with(func(w *world) { w.reads, w.lossy, w.tries = 2, 0, 2 }), []defect{readersIntrude, doubleGrant, spuriousBusy, lostRelease}, 100},
		{"read-write, some unknown", spec{}, Options{}, with(func(w *world) { w.reads, w.tries = 2, 2 }), []defect{readersIntrude, doubleGrant, spuriousBusy}, 100},
		{"read-write lease", spec{leased: true}, Options{Leased: true}, with(func(w *world) { w.reads, w.tries, w.ttl = 2, 0, -1 }), []defect{readersIntrude, doubleGrant, resurrection}, 2},
		{"fencing", spec{fencing: true}, Options{Fencing: true}, with(func(w *world) { w.tokens, w.lossy = true, 0 }), []defect{staleToken, doubleGrant, spuriousBusy}, 100},
	}
}

// rounds is how many histories a test compares: LOCKBENCH_HISTORIES if it is
// set, for a long search, else enough for every run of the tests.
func rounds(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("LOCKBENCH_HISTORIES")); err == nil && n > 0 {
		return n
	}
	if testenv.Race || testing.Short() {
		return usual / 20
	}
	return usual
}

func TestAgainstSearch(t *testing.T) {
	for k, d := range differentials() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(uint64(rounds(1)), uint64(k)))
			n := rounds(30000)
			var good, bad, busyOnly, missed int
			for good+bad < n {
				h, ok := d.history(rng, (good+bad)%5)
				if !ok {
					continue
				}
				fit, r := d.compare(t, h)
				switch {
				case fit:
					good++
					continue
				case r.BreachTotal() == 0:
					missed++
				case r.Breaches[UnexplainedBusy] == r.BreachTotal():
					busyOnly++
				}
				bad++
			}
			t.Logf("%d histories: %d fit; %d do not, %d of them only for a refused try; %d missed", n, good, bad, busyOnly, missed)
			if bad*1000 < d.bad*n {
				t.Errorf("only %d of %d histories do not fit: the mix proves little", bad, n)
			}
		})
	}
}

// FuzzAgainstSearch is the same without an end.
func FuzzAgainstSearch(f *testing.F) {
	models := differentials()
	for k := range models {
		f.Add(uint64(k), uint8(k))
	}
	f.Fuzz(func(t *testing.T, seed uint64, model uint8) {
		d := models[int(model)%len(models)]
		rng := rand.New(rand.NewPCG(seed, 1))
		for how := range 50 {
			if h, ok := d.history(rng, how%5); ok {
				d.compare(t, h)
			}
		}
	})
}

// compare lets both judge h, and fails if they differ.
func (d differential) compare(t *testing.T, h *history.History) (fit bool, r Report) {
	fit, r = d.spec.fits(h), Check(h, d.opt)
	if d.wrong(h, fit, r) {
		h = d.shrink(h)
		r = Check(h, d.opt)
		t.Fatalf("%s: a search of all orders finds fits=%v, the rules %v, promise %v\n%s", d.name, d.spec.fits(h), r.Breaches, r.Promise, fixture(h))
	}
	return fit, r
}

// wrong reports whether the rules' verdict is not the search's.
func (d differential) wrong(h *history.History, fit bool, r Report) bool {
	found := r.BreachTotal() > 0
	if !fit && !found && d.mayMiss(h) {
		return false
	}
	return fit == found || r.Undecided > 0 || r.Malformed > 0
}

// mayMiss reports whether h is one of those for which the rules do not claim to
// be exact.
func (d differential) mayMiss(h *history.History) bool {
	unknown, absent, unknownRelease := map[history.Attempt]bool{}, map[history.Attempt]bool{}, map[history.Attempt]bool{}
	for _, c := range h.Calls {
		open := c.Outcome == history.Unknown || c.Outcome == history.Open
		switch {
		case !open:
			absent[c.Attempt] = absent[c.Attempt] || c.Outcome == history.Lost
		case c.Kind == history.KindAcquire || c.Kind == history.KindTry:
			unknown[c.Attempt] = true
		default:
			unknownRelease[c.Attempt] = true
		}
		if open && (d.spec.reentrant || d.world.reads > 0) {
			return true
		}
	}
	// An unknown acquire that a clean-up did not find: it was over by then,
	// or came later. Which of both is not followed.
	for id := range unknown {
		if absent[id] && (unknownRelease[id] || d.spec.leased) {
			return true
		}
	}
	return false
}

// history makes a random history; ok is false if it is too long to search, or
// altered into one that no client records.
func (d differential) history(rng *rand.Rand, how int) (h *history.History, ok bool) {
	const ticks = 13
	w := d.world
	w.clients, w.ticks = 2+rng.IntN(3), ticks
	if how == 1 || how == 2 {
		w.defect = d.defects[rng.IntN(len(d.defects))]
	}
	b := w.run(rng)
	h = &b.h
	if how >= 2 && w.tries > 0 {
		for range rng.IntN(3) {
			from := rng.Int64N(ticks)
			c := b.add(90, 900+len(h.Calls), history.KindTry, history.Busy, from, min(ticks, from+rng.Int64N(5)))
			c.Client = uint32(90 + len(h.Calls))
			if w.reads > 0 && rng.IntN(2) == 0 {
				c.Flags = history.FlagShared
			}
		}
		b.seal(2 * ticks)
	}
	for range max(0, how-2) {
		mutate(rng, h, ticks)
	}
	return h, len(h.Calls) <= 15 && inOrder(h)
}

// shrink leaves calls out for as long as the verdicts differ.
func (d differential) shrink(h *history.History) *history.History {
	for smaller := true; smaller; {
		smaller = false
		try := func(drop func(c history.Call) bool) {
			x := *h
			x.Calls = slices.DeleteFunc(slices.Clone(h.Calls), drop)
			if len(x.Calls) < len(h.Calls) && inOrder(&x) && d.wrong(&x, d.spec.fits(&x), Check(&x, d.opt)) {
				h, smaller = &x, true
			}
		}
		for _, c := range slices.Clone(h.Calls) {
			try(func(x history.Call) bool { return x.Attempt == c.Attempt })
			try(func(x history.Call) bool { return x == c })
		}
	}
	return h
}

// fixture prints a history as the steps of a Go test.
func fixture(h *history.History) string {
	kinds := map[history.Kind]string{history.KindAcquire: "acq", history.KindTry: "try", history.KindRelease: "rel", history.KindCleanup: "cln", history.KindExtend: "ext", history.KindLost: "gone"}
	outcomes := map[history.Outcome]string{history.Open: "open", history.Held: "held", history.Busy: "busy", history.Released: "freed", history.Lost: "lost", history.Unknown: "unk", history.Extended: "renewed", history.Failed: "failed"}
	var b strings.Builder
	calls := slices.Clone(h.Calls)
	slices.SortStableFunc(calls, func(x, y history.Call) int { return inTime(&x, &y) })
	for _, c := range calls {
		fmt.Fprintf(&b, "\t{client: %d, n: 0x%s, kind: %s, o: %s, c: %d, r: %d", c.Client, c.Attempt.String()[12:16], kinds[c.Kind], outcomes[c.Outcome], c.Invoke, c.Return)
		if c.Flags != 0 {
			fmt.Fprintf(&b, ", flags: %d", c.Flags)
		}
		if c.Fence != 0 {
			fmt.Fprintf(&b, ", fence: %d", c.Fence)
		}
		b.WriteString("},\n")
	}
	return b.String()
}
