package chaos

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

// A client that flaps is cut off and connected in turn, and connected in the end.
func TestFlap(t *testing.T) {
	played, events := clientRun(t, Schedule{Gate: &fakeGate{comes: 2}}, scenario.Fault{Kind: "holder-flap", For: 1000 * ms}, faultnet.Effect{HeldBytes: 12})
	times := len(played.played("apply"))
	want := strings.Repeat("apply holder-flap-1 [2] [], lift holder-flap-1, ", times)
	if got := strings.Join(played.played("apply", "lift"), ", ") + ", "; times < 2 || got != want {
		t.Errorf("did %s, want %s", got, want)
	}
	if !slices.Equal(names(events), lasting) {
		t.Fatalf("events %v", names(events))
	}
	if e := events[4]; e.Effect == nil || e.Effect.HeldBytes != int64(12*times) {
		t.Errorf("the heal does not add up the effects: %+v", e)
	}
}
