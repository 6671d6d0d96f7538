package measure

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// A history may be larger than memory. It is read from disk, in the order of its
// invokes, and figures about all calls are added up on the way. Only the calls
// and holds around faults are kept, in input.history.Calls and derivation.holds:
// the evidence of faults is looked for there.

// survey reads the history a first time: for the checker, and to collect the
// facts about each call that later passes need.
func (d *derivation) survey() (*checker.Survey, error) {
	survey := checker.NewSurvey(d.history.Streams, d.history.Damage)
	d.last = map[uint32]int64{}
	d.lastAsked = map[uint32]int64{}
	const outside = history.FlagWarmup | history.FlagDrain
	var from, to int64 // of the calls that the load made within the window
	err := d.calls.Each(func(c *history.Call) {
		survey.Add(c)
		d.last[c.Client] = max(d.last[c.Client], c.Invoke, c.Return)
		if asks(c) && c.Flags&outside == 0 {
			if from == 0 || c.Invoke < from {
				from = c.Invoke
			}
			to = max(to, c.Invoke, c.Return)
		}
	})
	for _, s := range d.history.Streams {
		if s.Sealed {
			d.last[s.Client] = max(d.last[s.Client], s.SealedAt)
		}
	}
	if !d.sampled {
		d.guessWindow(from, max(from, to))
	}
	return survey, err
}

// gather reads the history a second time, and computes the figures that need
// every call.
func (d *derivation) gather() error {
	d.windows = d.faultWindows()
	d.totals = newTotals(d)
	return d.calls.Each(func(c *history.Call) {
		d.totals.add(c)
		if d.keep(c) {
			d.history.Calls = append(d.history.Calls, *c)
		}
		if _, dead := d.dead[c.Client]; !dead && asks(c) {
			d.lastAsked[c.Key] = max(d.lastAsked[c.Key], min(d.ended(c), d.samples.End))
		}
	})
}

// window is the time in which calls may be evidence of a fault, by the fault log.
type window struct {
	from, to int64
	over     int64 // the last that the log says of the fault
	attempt  history.Attempt
	keyed    bool
	key      uint32
	kills    bool
	granted  int64 // the first grant after over
}

// faultWindows lists the windows of all faults that were injected.
func (d *derivation) faultWindows() []*window {
	byID := map[string]*window{}
	healed := map[string]bool{}
	var list []*window
	for _, e := range d.events {
		w := byID[e.ID]
		if w == nil {
			if e.Event != "injected" {
				continue
			}
			what, _ := chaos.ParseKind(e.Fault)
			w = &window{from: e.AtNS, kills: what.KillsClient()}
			healed[e.ID] = what.Instant() || w.kills
			byID[e.ID] = w
			list = append(list, w)
		}
		w.over = max(w.over, e.AtNS)
		healed[e.ID] = healed[e.ID] || e.Event == "heal_started"
		if a, err := history.ParseAttempt(e.Attempt); err == nil && e.Key != nil {
			w.attempt, w.keyed, w.key = a, true, *e.Key
		}
	}
	for id, w := range byID {
		if !healed[id] {
			w.over = max(w.over, d.samples.End)
		}
		w.to = w.over + 2*int64(d.scenario.Timeout)
	}
	return list
}

// touches reports whether a fault may have had an effect on a call of the lock.
func (w *window) touches(c *history.Call) bool { return asks(c) && (!w.keyed || c.Key == w.key) }

// keep reports whether a call may be evidence of a fault or of its effects.
// Calls arrive in the order of their invokes.
func (d *derivation) keep(c *history.Call) bool {
	if len(d.windows) == 0 {
		return false
	}
	_, dead := d.dead[c.Client]
	kept := c.Outcome == history.Open || dead && c.Kind == history.KindExtend
	ended := d.ended(c)
	for _, w := range d.windows {
		if ended < w.from || kept && w.granted > 0 {
			continue
		}
		switch {
		case c.Invoke <= w.to, c.Attempt == w.attempt && w.keyed:
			kept = true
		case w.touches(c) && (w.granted == 0 || c.Invoke <= w.granted):
			kept = true
		}
		if w.granted == 0 && c.Outcome == history.Held && c.Return > w.over && w.touches(c) && !(w.kills && dead) {
			w.granted = c.Return
		}
	}
	for _, w := range d.windows {
		kept = kept || w.keyed && c.Attempt == w.attempt
	}
	return kept
}

// totals are the sums over all calls.
type totals struct {
	d         *derivation
	series    *allSeries
	perSecond []int64
	perClient map[uint32]int64
	open      map[history.Attempt]bool // attempts whose last answer is unknown
	doubted   map[history.Attempt]bool // those whose acquire was in doubt

	tries, acquired, busy, failed int64
	releases                      int64 // that were confirmed in the window
	renewed                       int64 // renewals by the recipe itself, between the same readings
	counted                       int64 // grants between the two readings of the servers' counters
	begun                         int64 // acquires of arrivals that were due in the window
	free                          idleTime
	lostAt                        map[history.Attempt]int64 // when the lock reported a loss
	leaseEnds                     map[history.Attempt]int64 // of the holds of now
	leased                        scenario.LeasedHolds
	left                          map[history.Attempt][]history.Call // see leftAttempts
}

func newTotals(d *derivation) *totals {
	length := d.samples.End - d.samples.Start
	return &totals{
		d: d, series: newSeries(), perSecond: make([]int64, (length+int64(time.Second)-1)/int64(time.Second)), perClient: map[uint32]int64{},
		open: map[history.Attempt]bool{}, doubted: map[history.Attempt]bool{}, lostAt: map[history.Attempt]int64{}, leaseEnds: map[history.Attempt]int64{},
		left: d.leftAttempts(),
		free: idleTime{start: d.samples.Start, end: d.samples.End},
	}
}

// add adds a call.
func (t *totals) add(c *history.Call) {
	d := t.d
	d.follow(t.open, c)
	if c.Kind == history.KindLost && c.Flags&history.FlagLeaseTimer == 0 {
		if at, ok := t.lostAt[c.Attempt]; !ok || c.Invoke < at {
			t.lostAt[c.Attempt] = c.Invoke
		}
	}
	if c.Kind == history.KindRelease && c.Outcome == history.Released && d.measured(c) {
		t.releases++
		t.series.release.add(d.second(c.Return), c.Return-c.Invoke)
	}
	t.lease(c)
	if calls, ok := t.left[c.Attempt]; ok {
		t.left[c.Attempt] = append(calls, *c)
	}
	if asks(c) {
		t.asked(c)
	}
}

// lease compares the end of a hold with that of its lease, as its client knew it. A
// session's end is not known in advance, nor that of a lease which the recipe renewed
// in the background.
func (t *totals) lease(c *history.Call) {
	switch {
	case t.d.info.Bound != impls.BoundTTL:
	case c.LeaseEnd == 0 && c.Outcome == history.Extended:
		delete(t.leaseEnds, c.Attempt)
		if t.d.counting(c.Return) {
			t.renewed++
		}
	case c.LeaseEnd != 0 && (c.Outcome == history.Held || c.Outcome == history.Extended):
		t.leaseEnds[c.Attempt] = max(c.LeaseEnd, t.leaseEnds[c.Attempt])
	case c.Kind == history.KindRelease, c.Kind == history.KindCleanup, c.Kind == history.KindLost:
		end, ok := t.leaseEnds[c.Attempt]
		delete(t.leaseEnds, c.Attempt)
		if !ok || !t.d.within(c.Invoke) {
			return
		}
		t.leased.Holds++
		if c.Invoke > end {
			t.leased.Outlived++
			t.leased.WorstNS = max(t.leased.WorstNS, c.Invoke-end)
		}
	}
}

// asked adds an acquire or a try.
func (t *totals) asked(c *history.Call) {
	d, held := t.d, c.Outcome == history.Held
	t.free.add(c.Invoke, d.ended(c), held, c.Return)
	if c.Intended >= d.samples.Start {
		t.begun++
	}
	if held && d.counting(c.Return) {
		t.counted++
	}
	// A grant counts here no matter when it was requested: a client may have
	// waited past the end of the warm-up.
	if held && d.within(c.Return) {
		t.perSecond[d.second(c.Return)]++
	}
	if !d.measured(c) {
		return
	}
	if c.Outcome == history.Unknown {
		t.doubted[c.Attempt] = true
	}
	if c.Kind == history.KindTry && (held || c.Outcome == history.Busy) {
		t.tries++
	}
	switch c.Outcome {
	case history.Held:
		t.acquired++
		t.perClient[c.Client]++
		t.series.acquire.add(d.second(c.Return), c.Return-c.Invoke)
		if d.openLoop() {
			t.series.response.add(d.second(c.Return), c.Return-c.Intended)
		}
	case history.Busy:
		t.busy++
		t.failed++
	case history.Failed:
		t.failed++
	}
}

// second is the second of the window in which a stamp lies.
func (d *derivation) second(stamp int64) int64 {
	return (stamp - d.samples.Start) / int64(time.Second)
}

// idleTime finds the longest time without any grant, while at every moment some
// client waited for one.
type idleTime struct {
	start, end int64
	from, to   int64   // the present stretch in which the lock was wanted; from 0: none yet
	since      int64   // its last grant, or its beginning
	grants     []int64 // that may lie in it, in order
	longest    int64
}

// add adds an acquire. They come in the order of their invokes.
func (t *idleTime) add(invoke, ended int64, held bool, granted int64) {
	from, to := max(invoke, t.start), min(ended, t.end)
	t.settle(invoke - 1)
	if to > from {
		if t.from == 0 || from > t.to {
			t.finish()
			t.from, t.to, t.since = from, to, from
		}
		t.to = max(t.to, to)
	}
	if held {
		i, _ := slices.BinarySearch(t.grants, granted)
		t.grants = slices.Insert(t.grants, i, granted)
	}
}

// settle takes the grants up to a stamp before which no other can come.
func (t *idleTime) settle(until int64) {
	n := 0
	for n < len(t.grants) && t.grants[n] <= min(until, t.to) {
		if at := t.grants[n]; at >= t.since {
			t.longest = max(t.longest, at-t.since)
			t.since = at
		}
		n++
	}
	t.grants = t.grants[n:]
}

// finish ends the present stretch.
func (t *idleTime) finish() {
	t.settle(math.MaxInt64)
	if t.from != 0 {
		t.longest = max(t.longest, t.to-t.since)
	}
}

// gatherHolds reads the history key by key, adds up the holds and keeps those
// around faults.
func (d *derivation) gatherHolds(survey *checker.Survey) error {
	g := holdTotals{d: d, covered: make([]bool, coverage)}
	err := d.calls.Keys(survey.Judge(checker.Options{}).Holds(g.add))
	slices.SortFunc(d.holds, func(a, b checker.Hold) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Client, b.Client))
	})
	held := 0
	for _, yes := range g.covered {
		if yes {
			held++
		}
	}
	d.heldTime = float64(held) / coverage
	d.losses = g.losses
	return err
}

// coverage is at how many moments of the window it is looked whether a lock was
// held.
const coverage = 1 << 20

// holdTotals adds up the holds of all keys.
type holdTotals struct {
	mu      sync.Mutex
	d       *derivation
	covered []bool
	losses  scenario.LossSignals
}

// add adds the holds of one key, in the order of their starts.
func (g *holdTotals) add(_ uint32, holds checker.HoldList) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var before checker.Hold
	for i := range holds.Len() {
		h := holds.At(i)
		g.latencies(&h, &before, i > 0)
		g.cover(&h)
		before = h
	}
	if g.d.info.Promises(impls.SignalsLoss) {
		g.d.lossesOf(holds, &g.losses)
	}
	g.d.keepHolds(holds)
}

// latencies adds how long a hold lasted, and how it was handed over by the one
// before it, if there is one.
func (g *holdTotals) latencies(h, p *checker.Hold, follows bool) {
	d := g.d
	if h.Flags&history.FlagWarmup != 0 || !d.within(h.Start) {
		return
	}
	all := d.totals.series
	if h.Ended == checker.ReleaseSent && h.End < d.samples.End {
		all.hold.add(d.second(h.End), h.End-h.Start)
	}
	// Handed over: from a release to a client that was waiting for it. The next
	// grant to one that came later, or to the releaser itself, shows nothing of
	// the lock's speed.
	if follows && p.Client != h.Client && p.Ended == checker.ReleaseSent && p.End <= h.Start && h.Asked <= p.End && p.End >= d.samples.Start {
		all.handoff.add(d.second(h.Start), h.Start-p.End)
	}
}

// cover marks the moments of the window at which a hold lasted.
func (g *holdTotals) cover(h *checker.Hold) {
	start, length := g.d.samples.Start, g.d.samples.End-g.d.samples.Start
	if length <= 0 {
		return
	}
	at := func(stamp int64) int {
		return int(math.Ceil(float64(stamp-start) / float64(length) * coverage))
	}
	for i := max(0, at(h.Start)); i < min(coverage, at(h.End)); i++ {
		g.covered[i] = true
	}
}

// keepHolds keeps those of a key's holds that faults may be about: around their
// times, and around the deaths of clients.
func (d *derivation) keepHolds(holds checker.HoldList) {
	if len(d.windows) == 0 {
		return
	}
	kept := make([]bool, holds.Len())
	deaths := slices.Sorted(maps.Values(d.dead))
	next := make([]int, len(deaths)) // by death: the first hold that starts after it
	for i := range kept {
		h := holds.At(i)
		_, dead := d.dead[h.Client]
		kept[i] = dead && h.Ended == checker.StreamEnd
		for _, w := range d.windows {
			kept[i] = kept[i] || h.Start <= w.to && h.End >= w.from || w.keyed && h.Attempt == w.attempt
		}
		for n, died := range deaths {
			if h.Start <= died {
				next[n] = i + 1
			}
		}
	}
	for _, from := range next {
		// The last holds before the death, of two clients, and the first after it
		// of a client that lives.
		for i := from - 1; i >= 0; i-- {
			kept[i] = true
			if i < from-1 && holds.At(i).Client != holds.At(i+1).Client {
				break
			}
		}
		for i := from; i < len(kept); i++ {
			if _, dead := d.dead[holds.At(i).Client]; !dead {
				kept[i] = true
				break
			}
		}
	}
	for i, yes := range kept {
		if yes {
			d.holds = append(d.holds, holds.At(i))
		}
	}
}
