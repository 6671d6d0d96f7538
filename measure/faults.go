package measure

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/scenario"
)

// fault is one fault of the schedule, from its events.
type fault struct {
	id        string
	kind      string
	effective bool
	client    uint32
	pid       int
	key       uint32
	attempt   history.Attempt
	step      string
	injected  int64 // stamps; 0: it did not come to that
	healing   int64
	healed    int64
}

// kills reports whether the fault ends a process, which nothing undoes.
func (f fault) kills() bool { return f.kind == scenario.HolderKill || f.kind == scenario.StepKill }

// end is when the fault was over: at the latest stamp that is known of it. A
// kill is over when it is done.
func (f fault) end() int64 {
	if f.kills() {
		return f.injected
	}
	return max(f.healing, f.healed)
}

// findFaults holds each fault of the schedule against the history. Effective is
// only what the history shows to have hit whom it was meant to hit; whatever
// else the fault log may say.
func (d *derivation) findFaults() {
	// Faults are numbered in the order of their times.
	schedule := slices.Clone(d.scenario.Faults)
	slices.SortStableFunc(schedule, func(a, b scenario.Fault) int { return cmp.Compare(a.At, b.At) })
	for i, planned := range schedule {
		f := fault{id: planned.Kind + "-" + strconv.Itoa(i+1), kind: planned.Kind, step: planned.Step}
		out := scenario.FaultResult{ID: f.id, Kind: f.kind, Step: planned.Step, Status: "missed"}
		out.Reason = d.follows(planned, &f, &out)
		if out.Reason == "" {
			out.Reason = d.hit(f)
		}
		if out.Reason == "" {
			f.effective = true
			out.Status = "effective"
			d.aftermath(f, &out)
		} else {
			d.missed = append(d.missed, fmt.Sprintf("%s: %s", f.id, out.Reason))
		}
		d.faults = append(d.faults, f)
		d.result.Faults = append(d.result.Faults, out)
	}
	d.recovery()
}

// follows reads a fault's events into f and out, and returns why the log alone
// shows that it missed, or "".
func (d *derivation) follows(planned scenario.Fault, f *fault, out *scenario.FaultResult) string {
	armed, missed := false, ""
	identified := false
	for _, e := range d.events {
		if e.ID != f.id {
			continue
		}
		at := e.AtNS - d.samples.Start
		switch e.Event {
		case "armed":
			armed, out.ArmedNS = true, at
		case "injected":
			f.injected, out.InjectedNS, out.Mechanism = e.AtNS, at, mechanism(e.How)
			if e.Client == nil || e.Key == nil {
				continue
			}
			a, err := history.ParseAttempt(e.Attempt)
			if err != nil {
				continue
			}
			identified = true
			f.client, f.pid, f.key, f.attempt = *e.Client, e.PID, *e.Key, a
			out.Target = fmt.Sprintf("client %d (pid %d)", *e.Client, e.PID)
		case "heal_started":
			f.healing = e.AtNS
		case "healed":
			f.healed, out.HealedNS = e.AtNS, at
		case "missed":
			missed = e.Reason
			if missed == "" {
				missed = "it found no target"
			}
		}
	}
	switch {
	case missed != "":
		return missed
	case !armed && f.injected == 0:
		return "it was never armed: the run ended before its time"
	case f.injected == 0:
		return "it was armed but never injected: the run ended before its time"
	case !identified:
		return "the fault log does not say whom it hit"
	case f.kills():
		out.HealedNS = 0
		return ""
	case f.healing == 0:
		return "the fault log does not say when it was lifted"
	}
	if lasted := f.healing - f.injected; lasted < int64(planned.For) {
		return fmt.Sprintf("it was lifted after %s, planned were %s", length(lasted), planned.For)
	}
	return ""
}

// mechanism is the first part of how a fault was injected.
func mechanism(how string) string {
	first, _, _ := strings.Cut(how, ";")
	return first
}
