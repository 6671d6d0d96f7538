package chaos

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/scenario"
)

// clientPause stops a client's process for a while, as a long collection of
// garbage does.
type clientPause struct{}

func (clientPause) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "pause", Group: scenario.GroupClient, Targets: scenario.ClientTargets(),
		Summary: "SIGSTOP of its process, for two leases and 2s by default, then SIGCONT",
		Means:   "signals", Did: "was paused",
		StopsProcess: true, Freezes: true,
	}
}

// ShortestFor is what a holder must be paused for its lease to end for certain.
func (clientPause) ShortestFor(target string, ttl scenario.Duration) scenario.Duration {
	if target != scenario.TargetHolder {
		return 0
	}
	return scenario.OutlivesLease(ttl)
}

func (clientPause) hitClient(ctx context.Context, f *fault, in *injection) error {
	if in.keepsGate() { // undone last
		in.steps = append(in.steps, step{undo: func(context.Context) error { f.openGate(); return nil }})
	}
	return f.stop(ctx, in)
}

func (clientPause) Expect(s scenario.Situation) scenario.Expect {
	switch {
	case atStep(s):
		return anything()
	case !s.Kind.OnHolder():
		return lostGrant(s, "connection")
	}
	e := s.Calm
	if s.Recipe.Leased() {
		// A paused holder outlives its lease: the lock is within its guarantees, and
		// two clients hold it all the same.
		e.Verdict = scenario.Unsafe
	}
	return e
}

func (clientPause) missed(e Evidence) string { return ownProcess(e) }

func (clientPause) cause(s Suspicion) string {
	if s.Kind.Target == scenario.TargetStep && s.Step != scenario.StepHeld {
		return fmt.Sprintf("a client paused at its step %s", s.Step)
	}
	return outlived(s, "paused")
}

// serverPause stops servers' processes for a while.
type serverPause struct{}

func (serverPause) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "pause", Group: scenario.GroupServer, Targets: append(scenario.ServerTargets(), scenario.TargetEach),
		Summary: "SIGSTOP, then SIGCONT",
		Means:   "signals", Did: "was paused",
		Needs:        scenario.AbilityPause,
		StopsProcess: true, Freezes: true,
	}
}

func (serverPause) claims() []claim { return []claim{{"the process", true}} }

func (serverPause) hitServers(ctx context.Context, f *fault, in *injection) error {
	in.by(f.Servers.PausedBy())
	return f.onEach(ctx, in, goOn, f.Servers.Resume, f.Servers.Pause)
}

func (serverPause) Expect(s scenario.Situation) scenario.Expect {
	return serverFault{keeps: survivesFailover(s), goesOn: othersGoOn(s)}.expect(s)
}

func (serverPause) cause(s Suspicion) string { return away(s) }

func (serverPause) absence(k scenario.FaultKind, _ scenario.ServerFacts) (Absence, bool) {
	return Absence{Silent: true, Unseats: k.MayLead()}, true
}
