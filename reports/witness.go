package reports

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/printable"
	"github.com/lockbench/lockbench/internal/scenario"
)

// timeline is a witness as a picture: a lane per client with its calls and holds in
// the seconds before and after the violation. Lengths are pixels.
type timeline struct {
	Width, Height int
	Lanes         []lane
	Shades        []mark // faults
	Clash         *mark  // while two clients held the key
	Ticks         []tick
}

type lane struct {
	Name   string
	Y      int  // of the middle
	Proves bool // the client is part of the violation
	Bars   []bar
}

type bar struct {
	X, Width int
	Kind     string // asking, holding, other, fault
	Title    string
}

// mark is a time span over all lanes; a fault has its name above it.
type mark struct {
	bar
	Y, Height int
	Name      string
	NameY     int
	Anchor    string // of the name
}

type tick struct {
	X    int
	Text string
}

const (
	laneLeft   = 90
	laneWidth  = 560
	laneHeight = 34
	nameHeight = 14
)

// aroundPicture is the time that a picture shows before and after a violation if
// the witness has calls of other clients.
const aroundPicture = 2 * time.Second

// drawWitness draws the calls of a witness by time. ok is false if there is nothing
// to draw.
func drawWitness(w scenario.Witness, faults []scenario.FaultResult) (timeline, bool) {
	// The controller reads the counter at the end, long after all clients.
	w.Calls = slices.DeleteFunc(slices.Clone(w.Calls), func(c scenario.WitnessCall) bool { return c.Client == history.Controller })
	if len(w.Calls) == 0 {
		return timeline{}, false
	}
	calls := slices.Concat(w.Calls, w.Around)
	from, to := pictured(w, calls)
	// A margin on both sides makes open ends visible. Sums are in floats: stamps of
	// a damaged history can have any value.
	length := float64(to) - float64(from)
	x := func(ns int64) int {
		f := (float64(ns)-float64(from))/length*0.92 + 0.04
		return laneLeft + int(min(max(f, 0), 1)*laneWidth)
	}
	t := timeline{Width: laneLeft + laneWidth + 10}
	for _, f := range faults {
		if m, ok := shadeOf(f, from, to, x); ok {
			m.NameY = nameHeight*(len(t.Shades)+1) - 2
			m.Y = m.NameY + 3
			t.Shades = append(t.Shades, m)
		}
	}
	top := nameHeight*len(t.Shades) + 4
	lanes := map[uint32]*lane{}
	for i, c := range calls {
		l := lanes[c.Client]
		if l == nil {
			l = &lane{Name: or(printable.Name(c.Name), fmt.Sprintf("client %d", c.Client)), Proves: i < len(w.Calls)}
			lanes[c.Client] = l
		}
		if c.InvokeNS > to || c.ReturnNS != 0 && c.ReturnNS < from && !granted(c) {
			continue
		}
		end := laneLeft + laneWidth // open: to the edge
		if c.ReturnNS != 0 {
			end = x(c.ReturnNS)
		}
		title := fmt.Sprintf("%s: %s, %s to %s", c.Kind, c.Outcome, stamp(c.InvokeNS), pick(c.ReturnNS != 0, stamp(c.ReturnNS), "no return"))
		if c.Fence != 0 {
			title += fmt.Sprintf(", token %d", c.Fence)
		}
		l.Bars = append(l.Bars, stretch(x(c.InvokeNS), end, pick(asks(c), "asking", "other"), title))
		if granted(c) {
			l.Bars = append(l.Bars, stretch(end, holdEnd(calls, c, x), "holding", "holds the lock"))
		}
	}
	for i, client := range slices.Sorted(maps.Keys(lanes)) {
		l := lanes[client]
		l.Y = top + 16 + laneHeight*i
		t.Lanes = append(t.Lanes, *l)
	}
	bottom := top + laneHeight*len(t.Lanes)
	t.Height = bottom + 28
	for i := range t.Shades {
		t.Shades[i].Height = bottom - t.Shades[i].Y
	}
	if start, ok := clashed(w); ok {
		c := stretch(x(start), x(start+w.LengthNS), "clash", "both held the key for "+nanos(float64(w.LengthNS)))
		t.Clash = &mark{bar: c, Y: top, Height: bottom - top}
	}
	for i := range 5 {
		ns := float64(from) + length*float64(i)/4
		t.Ticks = append(t.Ticks, tick{laneLeft + int((0.04+0.92*float64(i)/4)*laneWidth), nanos(ns)})
	}
	return t, true
}

// pictured is the time that a picture shows: all calls of the violation, but a long
// wait before it is cut.
func pictured(w scenario.Witness, calls []scenario.WitnessCall) (from, to int64) {
	first, last := answered(w.Calls[0]), answered(w.Calls[0])
	from, to = w.Calls[0].InvokeNS, last
	for _, c := range w.Calls {
		first, last = min(first, answered(c)), max(last, answered(c))
	}
	for _, c := range calls {
		from, to = min(from, c.InvokeNS), max(to, c.InvokeNS, c.ReturnNS)
	}
	if len(w.Around) > 0 && first-int64(aroundPicture) < first && last < last+int64(aroundPicture) {
		from, to = max(from, first-int64(aroundPicture)), min(to, last+int64(aroundPicture))
	}
	if to <= from {
		to = from + 1
	}
	return from, to
}

// answered is when a call returned, or else when it began.
func answered(c scenario.WitnessCall) int64 {
	if c.ReturnNS == 0 {
		return c.InvokeNS
	}
	return c.ReturnNS
}

func asks(c scenario.WitnessCall) bool { return c.Kind == "acquire" || c.Kind == "try" }

func granted(c scenario.WitnessCall) bool { return asks(c) && c.Outcome == "held" }

// clashed is when the second of two holders was granted the key; ok is false if
// the witness does not have two holders at once. The holders of a stuck key did not
// hold it at once.
func clashed(w scenario.Witness) (at int64, ok bool) {
	n := 0
	for _, c := range w.Calls {
		if granted(c) {
			n++
			at = max(at, c.ReturnNS)
		}
	}
	return at, n == 2 && w.LengthNS > 0 && w.Class != string(checker.StuckKey)
}

// shadeOf marks the time of a fault; an instant fault is a line. ok is false if it
// was not in force in the time that is shown.
func shadeOf(f scenario.FaultResult, from, to int64, x func(int64) int) (mark, bool) {
	end := max(f.HealedNS, f.InjectedNS)
	if f.InjectedNS == 0 || f.InjectedNS > to || end < from {
		return mark{}, false
	}
	what := clean(f.Kind)
	if f.Step != "" {
		what += " at " + clean(f.Step)
	}
	if f.Target != "" {
		what += " of " + clean(f.Target)
	}
	if f.Status != "effective" {
		what += " (missed)"
	}
	title := fmt.Sprintf("%s, at %s", what, stamp(f.InjectedNS))
	if end > f.InjectedNS {
		title = fmt.Sprintf("%s, %s to %s", what, stamp(f.InjectedNS), stamp(end))
	}
	m := mark{bar: stretch(x(f.InjectedNS), x(end), "fault", title), Name: what, Anchor: "start"}
	if m.X > laneLeft+laneWidth/2 { // its name would not fit to the right of it
		m.Anchor = "end"
	}
	return m, true
}

// holdEnd is where a hold ends in the picture: at its release, or at the edge if
// that is not known.
func holdEnd(calls []scenario.WitnessCall, grant scenario.WitnessCall, x func(int64) int) int {
	for _, c := range calls {
		if c.Attempt == grant.Attempt && c.Client == grant.Client && c.InvokeNS >= grant.ReturnNS && (c.Kind == "release" || c.Kind == "cleanup" || c.Kind == "lost") {
			return x(c.InvokeNS)
		}
	}
	return laneLeft + laneWidth
}

func stretch(from, to int, kind, title string) bar {
	return bar{X: from, Width: max(to-from, 2), Kind: kind, Title: clean(title)}
}
