package measure

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// A violation names what its servers went through, one or several of them.
func TestInForce(t *testing.T) {
	one := scenario.FaultEvent{Nodes: []scenario.Node{{Name: "redis-1", Leader: true}}}
	three := scenario.FaultEvent{Nodes: []scenario.Node{{Name: "redis-1"}, {Name: "redis-2"}, {Name: "redis-3"}}}
	for want, tt := range map[string]struct {
		kind string
		hit  scenario.FaultEvent
	}{
		"; redis-1 (leader) was paused from 0.101 s to 2.204 s":                    {"leader-pause", one},
		"; redis-1, redis-2, redis-3 were paused from 0.101 s to 2.204 s":          {"majority-pause", three},
		"; redis-1, redis-2, redis-3 had their clocks set from 0.101 s to 2.204 s": {"majority-clock", three},
	} {
		s := struck(leased(), tt.kind, lasting(tt.hit, nil)...)
		s.call(2, "d", history.KindAcquire, history.Held, 500, 501) // beside the holder
		s.call(2, "d", history.KindRelease, history.Released, 900, 901)
		r := s.result()
		if !slices.ContainsFunc(r.Safety.Witnesses, func(w scenario.Witness) bool { return strings.Contains(w.Sentence, want) }) {
			t.Errorf("no witness says %q: %+v", want, r.Safety.Witnesses)
		}
	}
}
