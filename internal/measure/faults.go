package measure

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// fault is one fault of the schedule, from its events.
type fault struct {
	id        string
	what      scenario.FaultKind
	effective bool
	step      string
	planned   scenario.Duration // how long it was to last
	injected  int64             // stamps; 0: it did not come to that
	confirmed int64             // to be in force
	healing   int64
	healed    int64

	// Of a fault on a client:
	aimed   bool // the log names the target
	client  uint32
	pid     int
	keyed   bool
	key     uint32
	attempt history.Attempt

	nodes  []scenario.Node      // of one on servers
	rounds []int64              // when each of them was hit, of one that hits them one after another
	effect *scenario.WireEffect // of one of the wire
}

// kills reports whether the fault ends a client's process, which nothing
// undoes.
func (f fault) kills() bool { return f.what.KillsClient() }

// end is when the fault was over: at the latest stamp that is known of it. One
// without a duration is over when it is done.
func (f fault) end() int64 {
	if f.kills() || f.healing == 0 {
		return max(f.injected, f.died())
	}
	return max(f.healing, f.healed)
}

// died is the latest that a client can have been killed, of those that die
// after something else was done to them; else 0.
func (f fault) died() int64 {
	if diesLater(f.what) {
		return f.confirmed
	}
	return 0
}

// diesLater reports whether a fault kills a client that it has cut off before.
func diesLater(k scenario.FaultKind) bool { return k.KillsClient() && k.About().Wire }

// findFaults compares each fault of the schedule with the history. A fault is
// effective only if the history shows that it hit its intended target, whatever
// the fault log says.
func (d *derivation) findFaults() {
	// Faults are numbered in the order of their times.
	schedule := slices.Clone(d.scenario.Faults)
	slices.SortStableFunc(schedule, func(a, b scenario.Fault) int { return cmp.Compare(a.At, b.At) })
	for i, planned := range schedule {
		what, known := chaos.ParseKind(planned.Kind)
		f := fault{id: planned.Kind + "-" + strconv.Itoa(i+1), what: what, step: planned.Step, planned: planned.For}
		out := scenario.FaultResult{ID: f.id, Kind: planned.Kind, Step: planned.Step, Status: "missed"}
		if out.Reason = d.follows(&f, &out); out.Reason == "" && !known {
			out.Reason = fmt.Sprintf("nothing is known of a fault %q", planned.Kind)
		}
		if out.Reason == "" {
			out.Reason = d.hit(f)
		}
		if out.Reason == "" {
			f.effective = true
			out.Status = "effective"
		} else {
			d.missed = append(d.missed, fmt.Sprintf("%s: %s", f.id, out.Reason))
		}
		d.doubtful(f)
		d.faults = append(d.faults, f)
		d.result.Faults = append(d.result.Faults, out)
	}
	for i, f := range d.faults {
		if f.effective {
			d.faultEffects(f, &d.result.Faults[i])
		}
	}
	d.recovery()
}

// follows reads a fault's events into f and out, and returns why the log alone
// shows that it missed, or "".
func (d *derivation) follows(f *fault, out *scenario.FaultResult) string {
	armed, missed := false, ""
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
			f.targets(e)
		case "effective":
			f.confirmed = e.AtNS
			if f.targets(e); out.Mechanism == "" {
				out.Mechanism = mechanism(e.How)
			}
		case "heal_started":
			f.healing = e.AtNS
		case "healed":
			f.healed, out.HealedNS = e.AtNS, at
		case "missed":
			missed = e.Reason
			if missed == "" {
				missed = "it found no target"
			}
		case "note":
			if f.what.Target == scenario.TargetEach && len(e.Nodes) > 0 {
				f.rounds = append(f.rounds, e.AtNS)
			}
		}
		if e.Effect != nil {
			f.effect, out.Effect = e.Effect, chaos.EffectText(*e.Effect)
		}
	}
	out.Target = f.target()
	switch {
	case missed != "":
		return missed
	case !armed && f.injected == 0:
		return "it was never armed: the run ended before its time"
	case f.injected == 0:
		return "it was armed but never injected: the run ended before its time"
	case f.what.OnClient() && !f.aimed, !f.what.OnClient() && len(f.nodes) == 0:
		return "the fault log does not name its target"
	case f.kills() && f.what.Instant():
		out.HealedNS = 0
		return ""
	case f.what.Instant():
		return ""
	case f.healing == 0:
		return "the fault log does not say when it was lifted"
	}
	if lasted := f.healing - f.injected; lasted < int64(f.planned) {
		return fmt.Sprintf("it was lifted after %s, planned were %s", length(lasted), f.planned)
	}
	return ""
}

// targets copies the targets that an event names.
func (f *fault) targets(e scenario.FaultEvent) {
	if len(e.Nodes) > 0 {
		f.nodes = e.Nodes
	}
	if e.Client == nil {
		return
	}
	// A client that neither holds nor waits has no attempt to name.
	a, err := history.ParseAttempt(e.Attempt)
	if e.Key != nil && err == nil {
		f.keyed, f.key, f.attempt = true, *e.Key, a
	} else if f.what.Target != scenario.TargetNonholder {
		return
	}
	f.aimed, f.client, f.pid = true, *e.Client, e.PID
}

// target names the client or the servers that the fault hit.
func (f fault) target() string {
	if f.aimed && f.what.OnClient() {
		return fmt.Sprintf("client %d (pid %d)", f.client, f.pid)
	}
	var list []string
	for _, n := range f.nodes {
		name := n.Name
		if n.Leader {
			name += " (leader)"
		}
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}

// mechanism is the first part of how a fault was injected.
func mechanism(how string) string {
	first, _, _ := strings.Cut(how, ";")
	return first
}
