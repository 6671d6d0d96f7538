package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// clientKill ends a client's process for good.
type clientKill struct{}

func (clientKill) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "kill", Group: scenario.GroupClient, Targets: scenario.ClientTargets(),
		Summary: "SIGKILL of its process, stopped before, so that the hold or the place is certain; holder-kill in the workload takeover kills all holders at once",
		Means:   "signals", Did: "was killed",
		Instant: true, StopsProcess: true, Kills: true,
	}
}

func (clientKill) hitClient(ctx context.Context, f *fault, in *injection) error {
	if err := f.stop(ctx, in); err != nil {
		return err
	}
	return f.end(in)
}

func (clientKill) Expect(s scenario.Situation) scenario.Expect {
	switch {
	case atStep(s):
		return anything()
	case s.Kind.Target == scenario.TargetNonholder:
		return s.Calm
	}
	return lostGrant(s) // and of a dead holder nothing else is lost
}

func (clientKill) missed(e Evidence) string { return e.Alive() }

// serverKill ends servers as a crash does, and starts them again with their data
// after a while.
type serverKill struct{}

func (serverKill) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "kill", Group: scenario.GroupServer, Targets: scenario.ServerTargets(),
		Summary: "SIGKILL, and started again with its data after 3s by default",
		Means:   "signals", Did: "was dead",
		For: scenario.Duration(3 * time.Second), Lasts: "after what time it is started again (default 3s)",
		Needs: scenario.AbilityKill, Forgets: true,
	}
}

func (serverKill) claims() []claim { return []claim{{"the process", true}} }

func (serverKill) hitServers(ctx context.Context, f *fault, in *injection) error {
	return f.crash(ctx, in)
}

func (serverKill) Expect(s scenario.Situation) scenario.Expect {
	return serverFault{keeps: durable(s), endsConnections: true, goesOn: othersGoOn(s)}.expect(s)
}

func (serverKill) cause(s Suspicion) string { return restarted(s) }

func (serverKill) absence(k scenario.FaultKind, _ scenario.ServerFacts) (Absence, bool) {
	return Absence{Unseats: k.MayLead()}, true
}

// restart ends servers as a crash does, and starts them again at once.
type restart struct{}

func (restart) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "restart", Group: scenario.GroupServer, Targets: append(scenario.ServerTargets(), scenario.TargetEach),
		Summary: "SIGKILL, and started again with its data at once",
		Means:   "signals", Did: "was killed and started again",
		Instant: true, Needs: scenario.AbilityKill, Forgets: true,
	}
}

func (restart) claims() []claim { return serverKill{}.claims() }

func (restart) hitServers(ctx context.Context, f *fault, in *injection) error {
	return f.crash(ctx, in)
}

func (restart) Expect(s scenario.Situation) scenario.Expect { return serverKill{}.Expect(s) }

func (restart) cause(s Suspicion) string { return restarted(s) }

func (restart) absence(k scenario.FaultKind, s scenario.ServerFacts) (Absence, bool) {
	return serverKill{}.absence(k, s)
}

// crash kills the servers. They are started again side by side, for members of a
// quorum serve only when enough of them are there.
func (f *fault) crash(ctx context.Context, in *injection) error {
	in.by("SIGKILL")
	var dead []int
	again := func(ctx context.Context) error {
		errs := make([]error, len(dead))
		var wg sync.WaitGroup
		for i, n := range dead {
			wg.Go(func() {
				errs[i] = guarded(func() error { return f.Servers.Restart(ctx, n) })
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	return in.do("started again", again, func() error {
		for _, n := range in.aim.nodes {
			dead = append(dead, n)
			if err := f.Servers.Kill(ctx, n); err != nil {
				if !f.ends(n) {
					dead = dead[:len(dead)-1]
				}
				return fmt.Errorf("kill: %w", err)
			}
		}
		in.confirmed = "the processes have ended"
		return nil
	})
}

// ends reports whether a server whose kill failed dies of it nevertheless; one
// that lives on need not be started again.
func (f *fault) ends(node int) bool {
	p := f.Servers.Process(node)
	return p == nil || ended(p)
}
