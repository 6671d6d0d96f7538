package measure

import (
	"slices"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/scenario"
)

// idle returns that no client can have noticed a fault on servers, since none held
// a lock meanwhile or sent a request; else "". What was over at once is noticed by
// a client that asks within a request's time.
func (d *derivation) idle(f fault) string {
	to := f.end()
	if f.healing == 0 || f.what.Instant() {
		to += int64(d.scenario.Timeout)
	}
	busy := func(c history.Call) bool {
		return c.Client != history.Controller && !isPoint(c.Kind) && c.Invoke <= to && d.ended(&c) >= f.injected
	}
	held := func(h checker.Hold) bool { return h.Start <= to && h.End >= f.injected }
	if slices.ContainsFunc(d.history.Calls, busy) || slices.ContainsFunc(d.holds, held) {
		return ""
	}
	return "no client held a lock or asked for one while it lasted"
}

// rejected reports whether a call failed while a fault was in force, or its
// outcome is unknown.
func (d *derivation) rejected(f fault) bool {
	return slices.ContainsFunc(d.history.Calls, func(c history.Call) bool {
		return (c.Outcome == history.Failed || c.Outcome == history.Unknown) && c.Client != history.Controller &&
			c.Invoke >= f.injected && c.Invoke <= f.healing
	})
}

// doubtful warns of a fault on servers that hit them, and yet may have had
// nothing to spoil.
func (d *derivation) doubtful(f fault) {
	if f.what.OnClient() || !f.effective {
		return
	}
	if _, one := f.what.Node(); one && d.guarantees().KeysPerServer {
		d.warning("%s: each server has keys of its own, and nothing shows which of them %s had; aim at %s to hit the one with a lock that is held", f.id, f.target(), scenario.TargetServing)
	}
	held := func(h checker.Hold) bool { return h.Start <= f.injected && h.End > f.injected }
	if slices.ContainsFunc(d.holds, held) {
		return
	}
	if !d.guarantees().Consensus && f.what.About().Forgets {
		d.warning("%s: no client held a lock at that moment, so there was none to be lost; with the step %s it waits for a holder", f.id, stepHeld)
	} else if share := d.heldTime; share < seldomHeld {
		d.warning("%s: no client held a lock when it came, and one did for %.0f %% of the time only, so that safe proves little; make the hold longer, or let it wait for the step %s", f.id, 100*share, stepHeld)
	}
}

// seldomHeld is the share of the time below which it is luck that a fault meets
// a holder.
const seldomHeld = 0.5

// guarantees is what the servers guarantee for the locks that they granted.
func (d *derivation) guarantees() scenario.ServerFacts {
	return cluster.Guarantees(d.info.Backend, d.scenario.Topology, d.scenario.Servers[d.info.Backend])
}
