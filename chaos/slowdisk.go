package chaos

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// slowDisk makes every fsync of servers take longer.
type slowDisk struct{}

func (slowDisk) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "slow-disk", Group: scenario.GroupServer, Targets: scenario.ServerTargets(),
		Summary: "every fsync takes longer, by 500ms by default",
		Means:   "the server's calls held up",
		By:      scenario.Measure{Name: "time of an fsync", Summary: "how long an fsync takes (default 500ms)", Default: scenario.Duration(500 * time.Millisecond)},
		Needs:   scenario.AbilitySlowDisk, Prepared: true, Exclusive: true, KeepsLeader: true,
	}
}

func (slowDisk) claims() []claim { return []claim{{"the disk", true}} }

func (slowDisk) hitServers(ctx context.Context, f *fault, in *injection) error {
	return f.onEach(ctx, in, "the disk is fast again", f.Servers.FastDisk, func(ctx context.Context, n int) error {
		return in.saying(f.Servers.SlowDisk(ctx, n, f.By.D()))
	})
}

func (slowDisk) Expect(s scenario.Situation) scenario.Expect {
	return serverFault{keeps: true, goesOn: s.Scenario.Topology == scenario.TopologySingle}.expect(s)
}

func (slowDisk) cause(s Suspicion) string { return unreachable(s) }
