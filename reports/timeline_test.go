package reports

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// late is a violation by a third: client 7, cut off from 1 s to 6 s, frees at
// 6.01 s what client 3 was granted meanwhile.
func late() (scenario.Witness, []scenario.FaultResult) {
	w := scenario.Witness{Class: "overlap", LengthNS: 200 * msec, Sentence: "both held it",
		Calls: []scenario.WitnessCall{
			{Client: 3, Seq: 1, Kind: "acquire", Outcome: "held", Attempt: "a", InvokeNS: 5500 * msec, ReturnNS: 5900 * msec},
			{Client: 10, Seq: 1, Kind: "acquire", Outcome: "held", Attempt: "b", InvokeNS: -30 * sec, ReturnNS: 6020 * msec},
			{Client: 3, Seq: 2, Kind: "release", Outcome: "released", Attempt: "a", InvokeNS: 6220 * msec, ReturnNS: 6221 * msec},
			{Client: 10, Seq: 2, Kind: "release", Outcome: "released", Attempt: "b", InvokeNS: 6900 * msec, ReturnNS: 6901 * msec},
		},
		Around: []scenario.WitnessCall{
			{Client: 7, Seq: 1, Kind: "acquire", Outcome: "held", Attempt: "c", InvokeNS: 100 * msec, ReturnNS: 200 * msec},
			{Client: 7, Seq: 2, Kind: "release", Outcome: "released", Attempt: "c", InvokeNS: 5950 * msec, ReturnNS: 6010 * msec},
			{Client: 7, Name: "seven", Seq: 3, Kind: "acquire", Outcome: "held", Attempt: "d", InvokeNS: 20 * sec, ReturnNS: 21 * sec},
		}}
	return w, []scenario.FaultResult{
		{ID: "holder-cut-1", Kind: "holder-cut", Status: "effective", Target: "client 7 (pid 5)", InjectedNS: sec, HealedNS: 6 * sec},
		{ID: "leader-reset-2", Kind: "leader-reset", Status: "missed", InjectedNS: 6500 * msec},
		{ID: "leader-kill-3", Kind: "leader-kill", Status: "effective", InjectedNS: 40 * sec},
		{ID: "leader-kill-4", Kind: "leader-kill", Status: "missed"},
	}
}

func TestTimelineOfTheSecondsAround(t *testing.T) {
	w, faults := late()
	w.Calls[0].LeaseEndNS = 6100 * msec // before its release
	w.Calls[1].LeaseEndNS = 6990 * msec // after it
	p, ok := drawTimeline("s1", []scenario.Witness{w}, faults)
	if !ok {
		t.Fatal("no timeline")
	}
	var names []string
	kinds := map[string]int{}
	for _, l := range p.Lanes {
		names = append(names, l.Name)
		if l.Proves != (l.Name != "client 7") {
			t.Errorf("%s: proves %v", l.Name, l.Proves)
		}
		for _, b := range l.Bars {
			kinds[b.Kind]++
			if b.X < laneLeft || b.X+b.Width > p.Width || b.Width < 2 {
				t.Errorf("%s: %+v lies outside", l.Name, b)
			}
			if (b.ID != "") != (l.Proves && b.Kind != "holding" && b.Kind != "lease") {
				t.Errorf("%s: %+v: the calls that prove the violation can be linked, and no others", l.Name, b)
			}
		}
	}
	if want := []string{"client 3", "client 10", "client 7"}; !slices.Equal(names, want) {
		t.Errorf("the lanes are %v, not %v", names, want)
	}
	// Of client 7 the hold and its release are in these seconds, the acquires are not.
	if want := map[string]int{"asking": 2, "holding": 3, "other": 3, "lease": 1}; !maps.Equal(kinds, want) {
		t.Errorf("bars %v, want %v", kinds, want)
	}
	if first := p.Ticks[0].Text; first != "5.400s" || p.From != 5.4 {
		t.Errorf("the timeline begins at %s: 500 ms before the first answer that it is about", first)
	}
	// The fault that lasted has its time, the one of a moment a line, whether it
	// missed or not; those of another time, or of none, have nothing.
	if len(p.Shades) != 2 {
		t.Fatalf("%+v", p.Shades)
	}
	for i, want := range []string{"holder-cut of client 7 (pid 5)", "leader-reset (missed)"} {
		if m := p.Shades[i]; m.Name != want || m.Y+m.Height > p.Height || m.NameY >= p.Lanes[0].Y-8 {
			t.Errorf("%+v", m)
		}
	}
	if a, b := p.Shades[0], p.Shades[1]; a.Width < 100 || b.Width > 2 || b.X <= a.X+a.Width || a.NameY == b.NameY {
		t.Errorf("%+v and %+v", a, b)
	}
	if len(p.Violations) != 1 {
		t.Fatalf("%+v", p.Violations)
	}
	v := p.Violations[0]
	if v.Kind != "clash" || v.Name != "two holders" || v.Title != "both held it" || v.X < p.Shades[0].X+p.Shades[0].Width || v.Y > p.Lanes[0].Y || v.Y+v.Height < p.Lanes[2].Y {
		t.Errorf("%+v", v)
	}
	if v.From != 6.02 || math.Abs(v.To-6.22) > 1e-9 {
		t.Errorf("the band is from %v to %v", v.From, v.To)
	}
}

// Time is warped, but its order is kept, and a short hold is visible beside a pause of
// seconds.
func TestTimelineKeepsTheOrder(t *testing.T) {
	w, faults := late()
	w.Calls[0].InvokeNS, w.Calls[0].ReturnNS = -3600*sec, -3599*sec
	x := newAxis(w.Calls, w.Calls, faults)
	last := -1
	for _, ns := range x.at {
		if at := x.place(ns); at <= last {
			t.Errorf("%d is at %d, and the event before it at %d", ns, at, last)
		} else {
			last = at
		}
	}
	if a, b := x.place(6220*msec), x.place(6221*msec); b-a < 10 {
		t.Errorf("a millisecond in an hour has %d pixels", b-a)
	}
}

// Each violation of a key is in its timeline, once, and those of another key are not.
func TestTimelineOfSeveralViolations(t *testing.T) {
	w, faults := late()
	write := scenario.WitnessCall{Client: 3, Seq: 9, Kind: "write", Outcome: "accepted", Attempt: "a", InvokeNS: 6300 * msec, ReturnNS: 6301 * msec}
	stale := scenario.Witness{Class: "stale-write", Sentence: "late", Calls: []scenario.WitnessCall{w.Calls[1], write}}
	other := stale
	other.Key = 5
	p, _ := drawTimeline("s1", []scenario.Witness{w, stale, other}, faults)
	if len(p.Violations) != 2 || p.Violations[1].Kind != "point" || p.Violations[1].ID != "v-s1-2" {
		t.Errorf("%+v", p.Violations)
	}
	n := 0
	for _, l := range p.Lanes {
		for _, b := range l.Bars {
			if b.Kind == "stale" {
				n++
				if l.Name != "client 3" || b.ID != "op-s1-3-9" {
					t.Errorf("%s: %+v", l.Name, b)
				}
			}
		}
	}
	if n != 1 {
		t.Errorf("%d late writes are marked, want 1", n)
	}
}

// That lockbench reads a register in the end is no client's doing, and would
// make the timeline many seconds long.
func TestTimelineHasClientsOnly(t *testing.T) {
	w, faults := late()
	want, _ := drawTimeline("s1", []scenario.Witness{w}, faults)
	end := scenario.WitnessCall{Client: history.Controller, Kind: "final", Outcome: "accepted", InvokeNS: 60 * sec, ReturnNS: 60 * sec}
	w.Calls = append(w.Calls, end)
	p, ok := drawTimeline("s1", []scenario.Witness{w}, faults)
	if !ok || !reflect.DeepEqual(p, want) {
		t.Errorf("%+v", p)
	}
	if _, ok := drawTimeline("s1", []scenario.Witness{{Calls: []scenario.WitnessCall{end}}}, nil); ok {
		t.Error("a timeline without a client")
	}
	if got := viewCall(end); strings.Contains(got, "client") {
		t.Error(got)
	}
}

// Stamps of a damaged history may be anything.
func TestTimelineOfAnyStamps(t *testing.T) {
	w, faults := late()
	odd := []int64{math.MinInt64, math.MaxInt64, 0, -1}
	for i := range w.Calls {
		for _, a := range odd {
			for _, b := range odd {
				w.Calls[i].InvokeNS, w.Calls[i].ReturnNS, w.Calls[i].LeaseEndNS = a, b, a
				p, ok := drawTimeline("s1", []scenario.Witness{w}, faults)
				if !ok || p.Width > 1000 || p.Height > 1000 {
					t.Fatalf("%d x %d", p.Width, p.Height)
				}
				for _, m := range slices.Concat(p.Shades, p.Violations) {
					if m.X < laneLeft || m.X > p.Width || m.Width > p.Width {
						t.Fatalf("%d, %d: %+v", a, b, m)
					}
				}
			}
		}
	}
}
