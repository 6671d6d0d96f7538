package chaos

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/internal/scenario"
)

// move asks the leader to hand over, while all servers live.
type move struct{}

func (move) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "move", Group: scenario.GroupServer, Targets: []string{scenario.TargetLeader},
		Summary: "asked to hand over the lead, while all live",
		Means:   "the server's own commands", Did: "was asked to hand over the lead",
		Instant: true, Needs: scenario.AbilityMove, Peers: true,
	}
}

// hitServers has the lead handed over. Which server had it the servers report.
func (move) hitServers(ctx context.Context, f *fault, in *injection) error {
	from, to, err := f.Servers.Move(ctx)
	if err != nil {
		return fmt.Errorf("move the lead: %w", err)
	}
	if from == to {
		return errors.New("the lead stayed where it was")
	}
	in.aim.nodes = []int{from}
	in.event.Nodes = f.named(in.aim.nodes, from)
	in.by("asked to move")
	in.confirmed = f.Servers.Nodes()[to].Name + " leads"
	return nil
}

func (move) Expect(s scenario.Situation) scenario.Expect {
	return serverFault{keeps: survivesFailover(s), goesOn: true}.expect(s)
}

func (move) cause(s Suspicion) string {
	if !s.Servers.Failover {
		return ""
	}
	return away(s)
}

func (move) absence(k scenario.FaultKind, _ scenario.ServerFacts) (Absence, bool) {
	return Absence{Unseats: k.MayLead(), HandsOver: true}, true
}
