package measure

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// topologySharded is where each server has keys of its own.
const topologySharded = "sharded"

// idle returns that nobody can have noticed a fault on servers, since nobody
// held a lock meanwhile or sent them anything; else "". What was over at once is
// noticed by whoever asks within a request's time.
func (d *derivation) idle(f fault) string {
	to := f.end()
	if f.healing == 0 || f.what.Instant() || f.what.Action == scenario.ActRestart {
		to += int64(d.scenario.Timeout)
	}
	busy := func(c history.Call) bool {
		return c.Client != history.Controller && !isPoint(c.Kind) && c.Invoke <= to && d.ended(&c) >= f.injected
	}
	held := func(h checker.Hold) bool { return h.Start <= to && h.End >= f.injected }
	if slices.ContainsFunc(d.history.Calls, busy) || slices.ContainsFunc(d.holds, held) {
		return ""
	}
	return "nobody held a lock or asked for one while it lasted"
}

// spared returns that a full server refused nobody, else "". Who asks a majority of
// masters need not notice one of them.
func (d *derivation) spared(f fault) string {
	if f.what.Action != scenario.ActFull || d.info.Backend == "redis" && d.scenario.Topology == topologyQuorum {
		return ""
	}
	refused := func(c history.Call) bool {
		return (c.Outcome == history.Failed || c.Outcome == history.Unknown) && c.Client != history.Controller &&
			c.Invoke >= f.injected && c.Invoke <= f.healing
	}
	if slices.ContainsFunc(d.history.Calls, refused) {
		return ""
	}
	return "nobody was refused anything while it was full"
}

// doubtful warns of a fault on servers that hit them, and yet may have had
// nothing to spoil.
func (d *derivation) doubtful(f fault) {
	if f.what.OnClient() || !f.effective {
		return
	}
	if _, one := f.what.Node(); one && d.scenario.Topology == topologySharded {
		d.warning("%s: each server has keys of its own, and nothing shows which of them %s had; aim at %s to hit the one with a lock that is held", f.id, f.target(), scenario.TargetServing)
	}
	held := func(h checker.Hold) bool { return h.Start <= f.injected && h.End > f.injected }
	if slices.ContainsFunc(d.holds, held) {
		return
	}
	forgets := []string{scenario.ActKill, scenario.ActRestart, scenario.ActFlush, scenario.ActEvict}
	if !d.agree() && slices.Contains(forgets, f.what.Action) && d.loss(f) != "" {
		d.warning("%s: nobody held a lock at that moment, so there was none to be lost; with the step %s it waits for a holder", f.id, stepHeld)
	} else if share := d.heldShare(); share < seldomHeld {
		d.warning("%s: nobody held a lock when it came, and somebody did for %.0f %% of the time only, so that safe says little; make the hold longer, or let it wait for the step %s", f.id, 100*share, stepHeld)
	}
}

// seldomHeld is the share of the time below which it is luck that a fault meets
// a holder.
const seldomHeld = 0.5

// heldShare is the share of the window in which somebody held a lock.
func (d *derivation) heldShare() float64 {
	held := slices.SortedFunc(slices.Values(d.holds), func(a, b checker.Hold) int { return cmp.Compare(a.Start, b.Start) })
	sum, until := int64(0), d.samples.Start
	for _, h := range held { // which may overlap
		end := min(h.End, d.samples.End)
		sum += max(0, end-max(h.Start, until))
		until = max(until, end)
	}
	return float64(sum) / float64(max(1, d.samples.End-d.samples.Start))
}

// agree reports whether the servers keep a lock by agreeing on it, on disk: a
// restart of theirs takes it from nobody.
func (d *derivation) agree() bool {
	return d.info.Backend == "etcd" || d.info.Backend == "zookeeper"
}
