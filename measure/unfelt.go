package measure

import (
	"slices"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/scenario"
)

const (
	topologySharded = "sharded" // each server has keys of its own
	topologyMasters = "quorum"  // of redis: they know nothing of one another
)

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
	if f.what.Action != scenario.ActFull || d.info.Backend == "redis" && d.scenario.Topology == topologyMasters {
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
	forgets := []string{scenario.ActKill, scenario.ActRestart, scenario.ActFlush, scenario.ActEvict}
	if d.agree() {
		return
	}
	held := func(h checker.Hold) bool { return h.Start <= f.injected && h.End > f.injected }
	if slices.Contains(forgets, f.what.Action) && d.loss(f) != "" && !slices.ContainsFunc(d.holds, held) {
		d.warning("%s: nobody held a lock at that moment, so there was none to be lost; with the step %s it waits for a holder", f.id, stepHeld)
	}
}

// agree reports whether the servers keep a lock by agreeing on it, on disk: a
// restart of theirs takes it from nobody.
func (d *derivation) agree() bool {
	return d.info.Backend == "etcd" || d.info.Backend == "zookeeper"
}
