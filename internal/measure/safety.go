package measure

import (
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/printable"
	"github.com/lockbench/lockbench/internal/scenario"
)

// serverSlack is taken off a lease for the coarseness of servers' clocks: they
// read the time once per round of their loop, which a busy machine may delay,
// or in whole milliseconds. It hides only expiries that are early by less.
const serverSlack = 200 * time.Millisecond

// takeoverSlack is added to a recipe's takeover bound for a machine on which
// servers, clients and waiters share few cores.
const takeoverSlack = 500 * time.Millisecond

// handoffSlack is the room that a handoff has above what the recipe needs. A wake-up
// takes a millisecond; a server that a busy machine does not let run, or whose disk is
// slow, over a second, and the stalls of workers do not show that.
const handoffSlack = 3 * time.Second

// unboundTTLs judges the liveness of a recipe that declares no takeover bound:
// after waiting this long for a lock without a holder, users call it stuck.
const unboundTTLs = 2

// judge lets the checker answer, and puts its answers into the result's words.
func (d *derivation) judge(survey *checker.Survey) error {
	o := d.promised()
	judge := survey.Judge(o)
	if err := d.calls.Keys(judge.Open); err != nil {
		return err
	}
	rep := judge.Report()
	d.answers(rep, o)
	return d.surround(rep.Witnesses)
}

// promised returns the guarantees that the lock is judged by, and what is known of
// the run.
func (d *derivation) promised() checker.Options {
	s, info := d.scenario, d.info
	o := checker.Options{
		Leased: info.Bound.Leased(), Fencing: info.FencedOn(s.Topology), Reentrant: s.Workload.Kind == scenario.Reentrant,
		ReleaseIgnoresOwner: info.Properties != nil && !info.Promises(impls.Symmetric),
		// Recipes with several servers or a queue reject a try in favour of a
		// client that does not hold the lock yet.
		TriesYield: info.Promises(impls.Available) || info.Promises(impls.Ordered),

		End: d.samples.End, Paused: d.paused(), Exceptions: d.boundedExceptions(), Died: d.deathList(), Suspects: d.suspects(),
		FaultMissed: d.missed, Incomplete: d.incomplete(),
		LeaseEndsDoubtful: slices.ContainsFunc(d.faults, func(f fault) bool { return f.what.OnClient() && f.what.About().Misleads }),
	}
	// The limits of a churn are drawn anew for each acquire, and are not recorded.
	o.JudgeClients, o.GivesUpAfter = s.Workload.Kind != scenario.Churn, s.Workload.AcquireLimit.D()
	if limit := s.Workload.AcquireLimit.D(); limit > 0 {
		// The request under way ends by its own timeout, and so does its clean-up.
		o.AcquireLimit = limit + 2*s.Timeout.D() + takeoverSlack
	}
	if info.Bound == impls.BoundTTL {
		o.TTL, o.Slack = s.TTL.D(), serverSlack
	}
	switch {
	case info.Takeover != nil:
		o.Takeover = info.Takeover(s.TTL.D()) + s.LockDelay.D() + takeoverSlack
	case info.Bound == impls.BoundNone:
		o.Takeover = unboundTTLs*s.TTL.D() + takeoverSlack
	}
	if info.Polls && o.Takeover > 0 {
		o.Takeover += s.Poll.Max
	}
	d.boundHandoff(&o)
	return o
}

// boundHandoff sets the bound of a handoff, and when it does not count: during a fault,
// and for a takeover bound after it, which what the fault left may last.
func (d *derivation) boundHandoff(o *checker.Options) {
	if d.info.Handoff < 0 {
		return
	}
	bound := d.info.Handoff + handoffSlack
	if d.info.Polls {
		bound += d.scenario.Poll.Max
	}
	if bound >= o.Takeover {
		return // a longer wait is stuck anyway
	}
	o.Handoff = bound
	for _, f := range d.faults {
		if f.injected != 0 {
			o.Disturbed = append(o.Disturbed, checker.Interval{From: f.injected, To: d.lasted(f) + int64(o.Takeover)})
		}
	}
}

// answers copies the checker's findings into the result.
func (d *derivation) answers(rep checker.Report, o checker.Options) {
	if d.info.Bound == impls.BoundNone {
		rep.Liveness.Why += fmt.Sprintf("; the recipe declares no bound, so it is judged by %d TTLs", unboundTTLs)
	}

	if rep.Liveness.Value == checker.Stuck {
		rep.Liveness.Why += d.blamed(rep.Stuck)
	}
	rep.Liveness.Why += d.leftOut()

	safety := &d.result.Safety
	*safety = scenario.Safety{
		Verdict: rep.Verdict.Value, Promise: rep.Promise.Value, Liveness: rep.Liveness.Value,
		Why:      map[string]string{"verdict": rep.Verdict.Why, "promise": rep.Promise.Why, "liveness": rep.Liveness.Why},
		Overlaps: rep.Overlaps, OverlapIncidents: rep.Incidents, OverlapNS: rep.OverlapNS, Breaches: rep.BreachTotal(),
		ContendedGrants: rep.ContendedGrants, LongestStuckNS: rep.Stuck.Length(), TakeoverBoundNS: int64(o.Takeover),
		Causes: []scenario.Cause{},
	}
	switch {
	case d.info.FencedOn(d.scenario.Topology):
		safety.TokenRegressions = ptr(rep.TokenRegressions)
	case d.info.Fencing:
		d.unmeasured("token_regressions", "on %s servers the recipe does not promise that its tokens grow", d.scenario.Topology)
	default:
		d.unmeasured("token_regressions", "the recipe has no fencing tokens")
	}
	d.registers(rep)
	d.lossSignals()
	d.orphans()
	for _, c := range rep.Causes {
		safety.Causes = append(safety.Causes, scenario.Cause{Cause: c.Cause, Count: c.Count, Breaches: c.Breaches})
	}
	for _, w := range rep.Witnesses {
		safety.Witnesses = append(safety.Witnesses, d.witness(w))
	}
	for _, x := range d.history.Damage {
		safety.Damage = append(safety.Damage, printable.Line(x.String()))
	}
	if n := int(rep.UncertainOverlaps); n > 0 {
		d.warning("the clocks leave open whether %s overlapped", counted(n, "more pair of holds", "more pairs of holds"))
	}
}

// registers copies the accounts of the guarded registers.
func (d *derivation) registers(rep checker.Report) {
	safety := &d.result.Safety
	if len(rep.Registers) == 0 {
		d.unmeasured("lost_updates", "the load guards no register")
		d.unmeasured("stale_writes", "the load guards no register")
		return
	}
	var lost, stale int64
	known := true
	for _, reg := range rep.Registers {
		lost += reg.LostUpdates
		stale += reg.StaleWrites
		known = known && reg.Known
		out := scenario.Register{Name: "plain", Acknowledged: reg.Accepted, Final: reg.Final, LostUpdates: reg.LostUpdates, Rejected: reg.Rejected}
		if reg.Fenced {
			out.Name = "fenced"
		}
		if d.info.Fencing {
			out.StaleWrites = ptr(reg.StaleWrites)
		}
		if reg.Known {
			safety.Registers = append(safety.Registers, out)
		}
		if reg.Contradiction != "" {
			d.warning("the %s register's account cannot be true, %s", out.Name, reg.Contradiction)
		}
	}
	// Certain losses count, even if more may be missing.
	if known || lost > 0 {
		safety.LostUpdates = ptr(lost)
	} else {
		d.unmeasured("lost_updates", "what the guarded register held in the end was not recorded")
	}
	if d.info.Fencing {
		safety.StaleWrites = ptr(stale)
	} else {
		d.unmeasured("stale_writes", "the recipe has no fencing tokens")
	}
}

func (d *derivation) witness(w checker.Witness) scenario.Witness {
	out := scenario.Witness{Class: string(w.Class), Key: w.Key, KeyName: printable.Name(d.history.Keys[w.Key]), Sentence: d.sentence(w), LengthNS: max(0, w.Length()), Cause: w.Cause, Calls: []scenario.WitnessCall{}}
	for _, f := range d.around(w) {
		out.Faults = append(out.Faults, f.id)
	}
	for _, c := range w.Calls {
		out.Calls = append(out.Calls, d.witnessCall(c))
	}
	return out
}

// witnessCall is a call as witnesses show it.
func (d *derivation) witnessCall(c history.Call) scenario.WitnessCall {
	call := scenario.WitnessCall{
		Client: c.Client, Name: printable.Name(d.history.Clients[c.Client]), Seq: c.Seq, Kind: c.Kind.String(), Outcome: c.Outcome.String(), Attempt: c.Attempt.String(),
		Fence: c.Fence, InvokeNS: c.Invoke - d.samples.Start,
	}
	if c.Outcome != history.Open && c.Return >= c.Invoke {
		call.ReturnNS = c.Return - d.samples.Start
	}
	if c.LeaseEnd != 0 {
		call.LeaseEndNS = c.LeaseEnd - d.samples.Start
	}
	return call
}
