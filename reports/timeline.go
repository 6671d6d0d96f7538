package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/printable"
	"github.com/lockbench/lockbench/internal/scenario"
)

// timeline is a picture of the violations of one scenario and of the seconds around
// them: a lane per client. Its time is warped: a quiet stretch is short, so that a
// hold of milliseconds is visible beside a pause of seconds. Lengths are pixels.
type timeline struct {
	Width, Height int
	From, To      float64 // seconds
	Left, Room    int     // of the lanes
	Lanes         []lane
	Shades        []mark // faults
	Violations    []mark
	Ticks         []tick
}

type lane struct {
	Name   string
	Y      int  // of the middle
	Proves bool // the client is part of a violation
	Bars   []bar
}

type bar struct {
	ID       string // of a call that proves a violation, for links
	X, Width int
	Kind     string // asking, holding, other, lease, stale, fault, clash, point
	Title    string
	From, To float64 // seconds
}

// mark is a time span over all lanes; it can have its name above it.
type mark struct {
	bar
	Y, Height int
	Name      string
	NameY     int
	Anchor    string // of the name
}

type tick struct {
	X    int
	At   float64 // seconds
	Text string
}

const (
	laneLeft   = 90
	laneWidth  = 860
	laneHeight = 26
	nameHeight = 14
)

// aroundPicture is the time that a picture shows before and after the violations.
const aroundPicture = 500 * time.Millisecond

// drawTimeline draws the witnesses of one key: that of the first of them. id is the
// scenario's. ok is false if there is nothing to draw.
func drawTimeline(id string, witnesses []scenario.Witness, faults []scenario.FaultResult) (t timeline, ok bool) {
	calls, proof := pictured(witnesses)
	if len(proof) == 0 {
		return timeline{}, false
	}
	x := newAxis(calls, proof, faults)
	t.Width = laneLeft + laneWidth + 24
	for _, f := range faults {
		if m, ok := shadeOf(f, x); ok {
			m.NameY = nameHeight*(len(t.Shades)+1) - 2
			m.Y = m.NameY + 3
			t.Shades = append(t.Shades, m)
		}
	}
	top := nameHeight*(len(t.Shades)+1) + 4
	late := lateWrite(witnesses)
	lanes := map[uint32]*lane{}
	var order []uint32
	for _, c := range calls {
		l := lanes[c.Client]
		if l == nil {
			proves := slices.ContainsFunc(proof, func(p scenario.WitnessCall) bool { return p.Client == c.Client })
			l = &lane{Name: or(printable.Name(c.Name), fmt.Sprintf("client %d", c.Client)), Proves: proves}
			lanes[c.Client], order = l, append(order, c.Client)
		}
		drawn := bars(c, late, calls, x)
		if len(drawn) > 0 && slices.Contains(proof, c) {
			drawn[0].ID = callID(id, c)
		}
		l.Bars = append(l.Bars, drawn...)
	}
	slices.SortFunc(order, func(a, b uint32) int {
		if lanes[a].Proves != lanes[b].Proves {
			return map[bool]int{true: -1, false: 1}[lanes[a].Proves]
		}
		return cmp.Compare(a, b)
	})
	for i, client := range order {
		l := lanes[client]
		l.Y = top + 16 + laneHeight*i
		t.Lanes = append(t.Lanes, *l)
	}
	bottom := top + laneHeight*len(t.Lanes) + 4
	t.Height = bottom + 22
	for i := range t.Shades {
		t.Shades[i].Height = bottom - t.Shades[i].Y
	}
	for i, w := range witnesses {
		if w.Key == witnesses[0].Key && len(w.Calls) > 0 {
			t.Violations = append(t.Violations, violation(id, i, w, x, top, bottom))
		}
	}
	t.Ticks = x.ticks()
	t.From, t.To = float64(x.at[0])/1e9, float64(x.at[len(x.at)-1])/1e9
	t.Left, t.Room = laneLeft, laneWidth
	return t, true
}

// pictured are the calls of the witnesses of one key and those around them, each
// once, and those that prove a violation. The controller reads the counters at the
// end, long after all clients: that is not shown.
func pictured(witnesses []scenario.Witness) (all, proof []scenario.WitnessCall) {
	type call struct{ client, seq uint32 }
	seen := map[call]bool{}
	add := func(to *[]scenario.WitnessCall, c scenario.WitnessCall) {
		if c.Client != history.Controller && !seen[call{c.Client, c.Seq}] {
			seen[call{c.Client, c.Seq}] = true
			*to = append(*to, c)
		}
	}
	for _, w := range witnesses {
		for _, c := range w.Calls {
			if w.Key == witnesses[0].Key {
				add(&proof, c)
			}
		}
	}
	all = slices.Clone(proof)
	for _, w := range witnesses {
		for _, c := range w.Around {
			if w.Key == witnesses[0].Key {
				add(&all, c)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b scenario.WitnessCall) int { return cmp.Compare(a.InvokeNS, b.InvokeNS) })
	return all, proof
}

// axis places stamps. Between two neighbouring events it is linear, and the distance
// of these grows with the logarithm of the time between them.
type axis struct {
	at []int64   // events, rising
	x  []float64 // their places, from 0 to 1
}

func newAxis(calls, proof []scenario.WitnessCall, faults []scenario.FaultResult) axis {
	first, last := answered(proof[0]), answered(proof[0])
	for _, c := range proof {
		first, last = min(first, answered(c)), max(last, answered(c))
	}
	from, to := before(first), after(last)
	a := axis{at: []int64{from, to}}
	add := func(ns int64) {
		if ns > from && ns < to {
			a.at = append(a.at, ns)
		}
	}
	for _, c := range calls {
		add(c.InvokeNS)
		add(answered(c))
		if outlives(calls, c) {
			add(c.LeaseEndNS)
		}
	}
	for _, f := range faults {
		add(f.InjectedNS)
		add(f.HealedNS)
	}
	slices.Sort(a.at)
	a.at = slices.Compact(a.at)
	a.x = make([]float64, len(a.at))
	for i := 1; i < len(a.at); i++ {
		// In floats: the stamps of a damaged history can have any value.
		a.x[i] = a.x[i-1] + 1 + math.Log10(1+(float64(a.at[i])-float64(a.at[i-1]))/1e5)
	}
	for i := range a.x {
		a.x[i] /= a.x[len(a.x)-1]
	}
	return a
}

func before(ns int64) int64 {
	return max(ns, math.MinInt64+int64(aroundPicture)) - int64(aroundPicture)
}
func after(ns int64) int64 { return min(ns, math.MaxInt64-int64(aroundPicture)) + int64(aroundPicture) }

// place is where a stamp is; those outside the picture are at its edges.
func (a axis) place(ns int64) int {
	i, _ := slices.BinarySearch(a.at, ns)
	f := 1.0
	switch {
	case i == 0:
		f = 0
	case i < len(a.at):
		part := (float64(ns) - float64(a.at[i-1])) / (float64(a.at[i]) - float64(a.at[i-1]))
		f = a.x[i-1] + part*(a.x[i]-a.x[i-1])
	}
	return laneLeft + int(f*laneWidth)
}

func (a axis) shows(from, to int64) bool { return from < a.at[len(a.at)-1] && to > a.at[0] }

// ticks are labelled events that are not too close together.
func (a axis) ticks() []tick {
	var ts []tick
	for _, ns := range a.at {
		if at := a.place(ns); len(ts) == 0 || at-ts[len(ts)-1].X > 70 {
			ts = append(ts, tick{at, float64(ns) / 1e9, fmt.Sprintf("%.3fs", float64(ns)/1e9)})
		}
	}
	return ts
}

func (a axis) stretch(kind string, from, to int64, title string) bar {
	x := a.place(from)
	return bar{X: x, Width: max(a.place(to)-x, 2), Kind: kind, Title: clean(title), From: float64(from) / 1e9, To: float64(to) / 1e9}
}

// bars draw one call: the call itself, and what follows a grant. late is a write that
// came too late.
func bars(c, late scenario.WitnessCall, calls []scenario.WitnessCall, x axis) []bar {
	end := int64(math.MaxInt64) // open: to the edge
	title := fmt.Sprintf("%s: %s, %s to ", c.Kind, c.Outcome, stamp(c.InvokeNS))
	if c.ReturnNS != 0 {
		end = c.ReturnNS
		title += stamp(c.ReturnNS)
	} else {
		title += "no return"
	}
	if c.Fence != 0 {
		title += fmt.Sprintf(", token %d", c.Fence)
	}
	kind := pick(c.Asks(), "asking", "other")
	if c == late {
		kind = "stale"
	}
	var out []bar
	if x.shows(c.InvokeNS, end) {
		out = append(out, x.stretch(kind, c.InvokeNS, end, title))
	}
	if !c.Granted() {
		return out
	}
	if until := holdEnd(calls, c); x.shows(end, until) {
		out = append(out, x.stretch("holding", end, until, "holds the lock"))
	}
	if outlives(calls, c) && x.shows(c.LeaseEndNS, c.LeaseEndNS) {
		out = append(out, x.stretch("lease", c.LeaseEndNS, c.LeaseEndNS, "its lease ends at "+stamp(c.LeaseEndNS)))
	}
	return out
}

// lateWrite is the last write of the violations that damaged the resource.
func lateWrite(witnesses []scenario.Witness) (late scenario.WitnessCall) {
	for _, w := range witnesses {
		for _, c := range w.Calls {
			if c.Kind == history.KindWrite.String() && w.Key == witnesses[0].Key && answered(c) >= answered(late) {
				late = c
			}
		}
	}
	return late
}

// callID is the id of a call in the page.
func callID(scenario string, c scenario.WitnessCall) string {
	return fmt.Sprintf("op-%s-%d-%d", scenario, c.Client, c.Seq)
}

// violation is the band of one witness: while two clients held the key, or else the
// moment that proves it.
func violation(id string, i int, w scenario.Witness, x axis, top, bottom int) mark {
	at := answered(w.Calls[len(w.Calls)-1])
	for _, c := range w.Calls {
		if c.Client != history.Controller {
			at = answered(c)
		}
	}
	m := mark{Y: top - 2, Height: bottom - top + 2, NameY: top - 5, Anchor: "start", Name: clean(w.Class)}
	m.bar = x.stretch("point", at, at, w.Sentence)
	if start, ok := clashed(w); ok {
		m.bar, m.Name = x.stretch("clash", start, start+w.LengthNS, w.Sentence), "two holders"
	}
	if i > 0 {
		m.Name = "" // one name is enough
	}
	if m.X > laneLeft+laneWidth/2 {
		m.Anchor = "end"
	}
	m.ID = fmt.Sprintf("v-%s-%d", id, i+1)
	return m
}

// answered is when a call returned, or else when it began.
func answered(c scenario.WitnessCall) int64 {
	if c.ReturnNS == 0 {
		return c.InvokeNS
	}
	return c.ReturnNS
}

// clashed is when the second of two holders was granted the key; ok is false if
// the witness does not have two holders at once. The holders of a stuck key did not
// hold it at once.
func clashed(w scenario.Witness) (at int64, ok bool) {
	n := 0
	for _, c := range w.Calls {
		if c.Granted() {
			n++
			at = max(at, c.ReturnNS)
		}
	}
	return at, n == 2 && w.LengthNS > 0 && w.Class != string(checker.StuckKey)
}

// shadeOf marks the time of a fault; an instant fault is a line. ok is false if it
// was not in force in the time that is shown.
func shadeOf(f scenario.FaultResult, x axis) (mark, bool) {
	end := max(f.HealedNS, f.InjectedNS)
	if f.InjectedNS == 0 || !x.shows(f.InjectedNS, end) {
		return mark{}, false
	}
	what := clean(f.Kind)
	if f.Step != "" {
		what += " at " + clean(f.Step)
	}
	if f.Target != "" {
		what += " of " + printable.Name(f.Target)
	}
	if f.Status != "effective" {
		what += " (missed)"
	}
	title := fmt.Sprintf("%s, at %s", what, stamp(f.InjectedNS))
	if end > f.InjectedNS {
		title = fmt.Sprintf("%s, %s to %s", what, stamp(f.InjectedNS), stamp(end))
	}
	m := mark{bar: x.stretch("fault", f.InjectedNS, end, title), Name: what, Anchor: "start"}
	if m.X > laneLeft+laneWidth/2 { // its name would not fit to the right of it
		m.Anchor = "end"
	}
	return m, true
}

// holdEnd is when a hold ends: at its release, or never if that is not known.
func holdEnd(calls []scenario.WitnessCall, grant scenario.WitnessCall) int64 {
	end := int64(math.MaxInt64)
	for _, c := range calls {
		if c.Attempt == grant.Attempt && c.Client == grant.Client && c.InvokeNS >= grant.ReturnNS && c.Ends() {
			end = min(end, c.InvokeNS)
		}
	}
	return end
}

// outlives reports whether a hold ends after its lease: before that, the end of a
// lease means nothing.
func outlives(calls []scenario.WitnessCall, c scenario.WitnessCall) bool {
	return c.Granted() && c.LeaseEndNS != 0 && c.LeaseEndNS < holdEnd(calls, c)
}

// has reports whether a timeline has a band or a bar with an id.
func (t *timeline) has(id string) bool {
	if t == nil {
		return false
	}
	return slices.ContainsFunc(t.Violations, func(m mark) bool { return m.ID == id }) ||
		slices.ContainsFunc(t.Lanes, func(l lane) bool { return slices.ContainsFunc(l.Bars, func(b bar) bool { return b.ID == id }) })
}
