package reports

import (
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

func TestPictureOfTheSecondsAround(t *testing.T) {
	w, faults := late()
	p, ok := drawWitness(w, faults)
	if !ok {
		t.Fatal("no picture")
	}
	var names []string
	for _, l := range p.Lanes {
		names = append(names, l.Name)
		if l.Proves != (l.Name != "client 7") {
			t.Errorf("%s: proves %v", l.Name, l.Proves)
		}
	}
	if want := []string{"client 3", "client 7", "client 10"}; !slices.Equal(names, want) {
		t.Errorf("the lanes are %v, not %v", names, want)
	}
	if first := p.Ticks[0].Text; first != "3.90s" {
		t.Errorf("the picture begins at %s: 2 s before the first of what it is about", first)
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
	if p.Clash == nil || !strings.Contains(p.Clash.Title, "200ms") || p.Clash.X < p.Shades[0].X+p.Shades[0].Width {
		t.Errorf("%+v", p.Clash)
	}
	for _, l := range p.Lanes {
		for _, b := range l.Bars {
			if b.X < laneLeft || b.X+b.Width > p.Width {
				t.Errorf("%s: %+v lies outside", l.Name, b)
			}
		}
	}
}

// That lockbench reads a register in the end is no client's doing, and would
// make the picture many seconds long.
func TestPictureHasClientsOnly(t *testing.T) {
	w, faults := late()
	end := scenario.WitnessCall{Client: history.Controller, Kind: "final", Outcome: "accepted", InvokeNS: 60 * sec, ReturnNS: 60 * sec}
	w.Calls = append(w.Calls, end)
	p, ok := drawWitness(w, faults)
	if want, _ := drawWitness(late()); !ok || !reflect.DeepEqual(p, want) {
		t.Errorf("%+v", p)
	}
	if _, ok := drawWitness(scenario.Witness{Calls: []scenario.WitnessCall{end}}, nil); ok {
		t.Error("a picture without a client")
	}
	if got := viewCall(end); strings.Contains(got, "client") {
		t.Error(got)
	}
}

// Stamps of a damaged history may be anything.
func TestPictureOfAnyStamps(t *testing.T) {
	w, faults := late()
	odd := []int64{math.MinInt64, math.MaxInt64, 0, -1}
	for i := range w.Calls {
		for _, a := range odd {
			for _, b := range odd {
				w.Calls[i].InvokeNS, w.Calls[i].ReturnNS = a, b
				p, ok := drawWitness(w, faults)
				if !ok || p.Width > 1000 || p.Height > 1000 {
					t.Fatalf("%d x %d", p.Width, p.Height)
				}
				for _, m := range p.Shades {
					if m.X < laneLeft || m.X > p.Width || m.Width > p.Width {
						t.Fatalf("%d, %d: %+v", a, b, m)
					}
				}
			}
		}
	}
}
