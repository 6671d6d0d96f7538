package reports

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/scenario"
)

// timeline is a witness as a picture: a lane per client, what it asked and
// what it held. Lengths are pixels.
type timeline struct {
	Width, Height int
	Lanes         []lane
	Shades        []bar // faults
	Ticks         []tick
}

type lane struct {
	Name string
	Y    int // of the middle
	Bars []bar
}

type bar struct {
	X, Width int
	Kind     string // asking, holding, other, fault
	Title    string
}

type tick struct {
	X    int
	Text string
}

const (
	laneLeft   = 90
	laneWidth  = 560
	laneHeight = 34
)

// drawWitness lays the calls of a witness out by time. ok is false where there
// is nothing to draw.
func drawWitness(w scenario.Witness, faults []scenario.FaultResult) (timeline, bool) {
	if len(w.Calls) == 0 {
		return timeline{}, false
	}
	from, to := w.Calls[0].InvokeNS, w.Calls[0].InvokeNS
	for _, c := range w.Calls {
		from, to = min(from, c.InvokeNS), max(to, c.InvokeNS, c.ReturnNS)
	}
	if to <= from {
		to = from + 1
	}
	// Some air on both sides, in which an open end can be seen. The sums are
	// done in floats: stamps of a damaged history may be anything.
	length := float64(to) - float64(from)
	x := func(ns int64) int {
		f := (float64(ns)-float64(from))/length*0.92 + 0.04
		return laneLeft + int(min(max(f, 0), 1)*laneWidth)
	}
	t := timeline{Width: laneLeft + laneWidth + 10}
	clients := map[uint32]int{}
	for _, c := range w.Calls {
		if _, ok := clients[c.Client]; !ok {
			clients[c.Client] = len(t.Lanes)
			t.Lanes = append(t.Lanes, lane{Name: fmt.Sprintf("client %d", c.Client)})
		}
	}
	for _, f := range faults {
		if f.HealedNS > f.InjectedNS && f.InjectedNS < to && f.HealedNS > from {
			t.Shades = append(t.Shades, stretch(x(f.InjectedNS), x(f.HealedNS), "fault", fmt.Sprintf("%s of %s", f.Kind, f.Target)))
		}
	}
	for _, c := range w.Calls {
		l := &t.Lanes[clients[c.Client]]
		end := laneLeft + laneWidth // open: to the edge
		if c.ReturnNS != 0 {
			end = x(c.ReturnNS)
		}
		title := fmt.Sprintf("%s: %s, %s to %s", c.Kind, c.Outcome, stamp(c.InvokeNS), pick(c.ReturnNS != 0, stamp(c.ReturnNS), "no return"))
		if c.Fence != 0 {
			title += fmt.Sprintf(", token %d", c.Fence)
		}
		asks := c.Kind == "acquire" || c.Kind == "try"
		l.Bars = append(l.Bars, stretch(x(c.InvokeNS), end, pick(asks, "asking", "other"), title))
		if asks && c.Outcome == "held" {
			l.Bars = append(l.Bars, stretch(end, holdEnd(w.Calls, c, x), "holding", "holds the lock"))
		}
	}
	slices.SortStableFunc(t.Lanes, func(a, b lane) int { return cmp.Compare(a.Name, b.Name) })
	for i := range t.Lanes {
		t.Lanes[i].Y = 22 + laneHeight*i
	}
	t.Height = laneHeight*len(t.Lanes) + 34
	for i := range 5 {
		ns := float64(from) + length*float64(i)/4
		t.Ticks = append(t.Ticks, tick{laneLeft + int((0.04+0.92*float64(i)/4)*laneWidth), nanos(ns)})
	}
	return t, true
}

// holdEnd is where a hold ends on the picture: at the release the witness
// shows, else at the edge, for it is not known.
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
