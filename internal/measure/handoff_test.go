package measure

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// A key that stays free after a confirmed release is judged by a bound shorter than
// that of a takeover, apart from faults and what they leave.
func TestHandoffHasABoundOfItsOwn(t *testing.T) {
	for _, tt := range []struct {
		name    string
		granted float64 // ms after the window's start; the release is confirmed at 1011
		change  func(s *story)
		want    string
	}{
		{"within the room", 3900, nil, scenario.Live},
		{"longer", 4100, nil, scenario.Stuck},
		{"the wait policy takes longer", 4100, func(s *story) { s.in.scenario.Poll.Max = time.Second }, scenario.Live},
		{"the recipe declares more", 4100, func(s *story) { s.in.info.Handoff = time.Second }, scenario.Live},
		{"the recipe declares that nothing bounds it", 9000, func(s *story) { s.in.info.Handoff = -1 }, scenario.Live},
		{"a fault before it", 9000, func(s *story) { s.pause(0, "p", 1002, 1005) }, scenario.Live},
	} {
		s := newStory(leased(), 2)
		s.in.scenario.TTL = scenario.Duration(20 * time.Second)
		s.hold(0, "p", 1000, 1001, 1010)
		s.hold(1, "q", 1005, tt.granted, tt.granted+1)
		if tt.change != nil {
			tt.change(s)
		}
		got := s.result().Safety
		if got.Liveness != tt.want {
			t.Errorf("%s: %s, %s", tt.name, got.Liveness, got.Why["liveness"])
		}
		if tt.want == scenario.Stuck && (len(got.Witnesses) != 1 || !strings.Contains(got.Witnesses[0].Sentence, "its release at 1.011 s was confirmed; no fault was in force")) {
			t.Errorf("%s: %+v", tt.name, got.Witnesses)
		}
	}
}
