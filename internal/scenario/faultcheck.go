package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// The steps of the workload at which a client of any recipe can be stopped.
const (
	StepAcquiring = "acquiring" // an acquire is about to be sent
	StepHeld      = "held"      // it has been granted
	StepReleasing = "releasing" // the release is about to be sent
)

// Places lists them.
func Places() []string { return []string{StepAcquiring, StepHeld, StepReleasing} }

// The carriers of the faults between clients and servers.
const (
	WireProxy  = "proxy"
	WireKernel = "kernel"
)

// faultCheck looks at one fault of a scenario.
type faultCheck struct {
	*findings
	sc    Scenario
	r     RecipeFacts
	at    string // its path
	fault Fault
	kind  FaultKind
	about ActionInfo
}

// checkFaults checks a schedule; origin maps each fault to its fault of the
// specification.
func checkFaults(f *findings, sc Scenario, r RecipeFacts, origin []int) {
	if r.actions == nil {
		return // nothing is known of faults
	}
	if len(sc.Faults) > maxFaults {
		f.add("faults", "repeat them less often", "more than %d faults", maxFaults)
		return
	}
	valid := true
	dead := 0
	for i, fault := range sc.Faults {
		kind, ok := r.actions.Parse(fault.Kind)
		at := fmt.Sprintf("faults[%d]", from(origin, i))
		if !ok {
			message, hint := r.actions.unknown(fault.Kind)
			f.add(at+".kind", hint, "%s", message)
			valid = false
			continue
		}
		c := faultCheck{f, sc, r, at, fault, kind, kind.About()}
		valid = c.times() && valid
		c.trigger()
		c.quantities()
		c.target()
		c.wire()
		valid = c.overlaps(sc.Faults[:i]) && valid
		if kind.KillsClient() {
			dead++
		}
	}
	if dead > 0 && sc.Workload.open() {
		f.add("workload.arrival", "leave it out: a closed loop needs no record of arrivals", "a process that is killed takes its record of arrivals with it")
	}
	if dead > 1 && sc.Clients <= dead {
		f.add("clients", fmt.Sprintf("write %d or more", dead+1), "the kill faults leave no client alive: %d of %d are killed", dead, sc.Clients)
	}
	if need, last := faultsEnd(sc, r); valid && sc.Duration > 0 && sc.Duration < need {
		f.add("duration", fmt.Sprintf("write %s or more, or leave it out", need),
			"%s leaves no room in %s for %s, which ends at %s, and the recovery after it", sc.Duration, sc.Name, last.Kind, last.end(sc.Topology))
	}
}

// from is the place in the specification of the i-th fault.
func from(origin []int, i int) int {
	if i < len(origin) {
		return origin[i]
	}
	return i
}

// times reports whether the fault's own times make sense.
func (c faultCheck) times() (valid bool) {
	valid = true
	if c.fault.At < 0 {
		c.add(c.at+".at", "write 1s, for example", "%s is before the measured window", c.fault.At)
		valid = false
	}
	least := Duration(0)
	if s, ok := c.kind.Action.(ShortestDuration); ok {
		least = s.ShortestFor(c.kind.Target, c.sc.TTL)
	}
	switch {
	case c.about.Kills && c.about.Instant && c.fault.For != 0:
		c.add(c.at+".for", "leave it out", "%s has no end: what is killed stays dead", c.kind)
	case c.about.Instant && c.fault.For != 0:
		c.add(c.at+".for", "leave it out", "%s happens at once and does not last", c.kind)
	case least > 0 && c.fault.For < least:
		c.add(c.at+".for", fmt.Sprintf("write %s or more, or leave it out", least),
			"a %s of %s is too short to outlive a lease of %s for certain", c.about.Name, c.fault.For, c.sc.TTL)
		valid = false
	case !c.about.Instant && c.fault.For <= 0:
		c.add(c.at+".for", "write 5s, for example, or leave it out", "a %s of %s is none", c.about.Name, c.fault.For)
		valid = false
	}
	return valid
}

// trigger checks what the fault waits for besides its time.
func (c faultCheck) trigger() {
	f := c.fault
	steps := slices.Concat(c.r.Steps, Places())
	slices.Sort(steps)
	steps = slices.Compact(steps)
	switch {
	case f.Step == "" && c.kind.Target == TargetStep:
		id := c.r.ID
		if id == "" {
			id = c.sc.Recipe
		}
		c.add(c.at+".step", strings.TrimSpace("lockbench list recipes "+id)+" shows them; there are "+strings.Join(Places(), ", ")+" besides", "%s needs the name of a step", c.kind)
	case f.Step != "" && c.r.Steps != nil && !slices.Contains(steps, f.Step):
		c.add(c.at+".step", didYouMean(Nearest(f.Step, steps), steps), "%s has no step %q", c.r.ID, f.Step)
	}
	switch {
	case f.Nth < 0:
		c.add(c.at+".nth", "write 1 for the first", "there is no client that comes as number %d", f.Nth)
	case f.Nth > 0 && f.Step == "":
		c.add(c.at+".nth", "add a step, or leave nth out", "nth counts the clients that come to a step, and none is named")
	}
	oldest := Duration(f.After * float64(c.sc.TTL))
	switch {
	case f.After == 0:
	case f.After < 0 || !(f.After <= 100):
		c.add(c.at+".after", "write 0.8, for example", "%v is no share of a TTL", f.After)
	case c.kind.Target != TargetHolder && c.kind.Target != TargetServing:
		c.add(c.at+".after", "use a fault on the holder, or leave after out", "%s does not wait for the age of a hold", c.kind)
	case f.Step != "":
		c.add(c.at+".after", "leave one of them out", "a fault that waits for a step does not wait for the age of a hold too")
	case c.sc.Workload.Kind != Takeover && oldest >= Duration(c.sc.Workload.longestHold()):
		c.add(c.at+".after", "make the hold longer, or write a smaller share", "no hold gets %s old, for it lasts %s at most", oldest, Duration(c.sc.Workload.longestHold()))
	}
}

// quantities checks how much of what the fault does.
func (c faultCheck) quantities() {
	f := c.fault
	is := func(trait func(ActionInfo) bool) string { return strings.Join(c.r.actions.where(trait), ", ") }
	switch by := c.about.By; {
	case by.Name == "" && f.By != 0:
		c.add(c.at+".by", "leave it out", "%s takes no by: it is a parameter of %s", c.kind, is(func(a ActionInfo) bool { return a.By.Name != "" }))
	case by.Signed && f.By == 0:
		c.add(c.at+".by", "write 5s or -5s, for example, or leave it out", "%s must not be zero", by.Name)
	case by.Name != "" && !by.Signed && f.By <= 0:
		c.add(c.at+".by", "write 50ms, for example, or leave it out", "%s must be positive, not %s", by.Name, f.By)
	}
	switch {
	case f.Jitter < 0:
		c.add(c.at+".jitter", "write 10ms, for example", "%s is negative", f.Jitter)
	case f.Jitter != 0 && !c.about.HasJitter:
		c.add(c.at+".jitter", "leave it out", "%s takes no jitter: it is a parameter of %s", c.kind, is(func(a ActionInfo) bool { return a.HasJitter }))
	}
	switch {
	case c.about.Rate > 0 && f.Rate <= 0:
		c.add(c.at+".rate", "write bytes a second, such as 10000", "a rate of %d bytes a second", f.Rate)
	case c.about.Rate == 0 && f.Rate != 0:
		c.add(c.at+".rate", "leave it out", "%s takes no rate: it is a parameter of %s", c.kind, is(func(a ActionInfo) bool { return a.Rate > 0 }))
	}
}

// target checks that the fault has a target.
func (c faultCheck) target() {
	k, sc := c.kind, c.sc
	switch sc.Workload.Kind {
	case Properties:
		c.add(c.at+".kind", "leave the faults out", "the conformance suite brings faults of its own")
		return
	case Uncontended:
		if k.OnClient() {
			c.add("workload.kind", "use hot-key or guarded-counter", "%s needs clients who want the same key, uncontended has none", k)
		}
	case TryStorm:
		if k.Target == TargetWaiter {
			c.add("workload.kind", "use hot-key or guarded-counter", "%s needs a client that waits, and in try-storm no client does", k)
		}
	}
	if sc.Clients < 2 && k.OnClient() {
		c.add("clients", "write 2 or more", "%s needs a second client, who wants the lock meanwhile", k)
	}
	if what, hint := c.r.Lacks(sc.Topology, k); what != "" {
		c.add(c.at+".kind", hint, "%s", what)
		return
	}
	if c.r.CanFault != nil {
		if err := c.r.CanFault(sc.Topology, k, sc.Servers[c.r.Backend]); err != nil {
			c.add(c.at+".kind", "lockbench list faults shows what there is", "%s on a %s %s: %s", k, sc.Topology, c.r.Backend, err)
		}
	}
}

// wire checks that what the scenario names can carry the fault.
func (c faultCheck) wire() {
	if c.sc.Wire == WireKernel && c.about.Wire && !c.about.DropsPackets {
		can := c.r.actions.where(func(a ActionInfo) bool { return a.DropsPackets })
		c.add("wire", "leave wire out, or write proxy", "the kernel cannot do %s by dropping packets: it can do %s", c.about.Name, strings.Join(can, ", "))
	}
}

// overlaps reports whether the fault does not interfere with those before it.
// Several may be in force at once, but not two that need the same resource: a
// client's process that one stops and the other continues, or a clock that the
// first one to end resets.
func (c faultCheck) overlaps(before []Fault) (valid bool) {
	for _, b := range slices.Backward(before) {
		k, ok := c.r.actions.Parse(b.Kind)
		end := b.end(c.sc.Topology)
		if !ok || c.fault.At >= end {
			continue
		}
		if what := inCommon(c.kind, k); what != "" {
			c.add(c.at+".at", fmt.Sprintf("write %s or later", end), "begins at %s, before %s at %s has ended, and both %s", c.fault.At, k, b.At, what)
			return false
		}
	}
	return true
}

// inCommon names the action that two faults cannot both do at a time, or "".
func inCommon(a, b FaultKind) string {
	switch {
	case holdsProcess(a) && holdsProcess(b):
		return "stop clients' processes"
	case a == b && !a.OnClient():
		return "do the same to the same servers"
	case a.Action == b.Action && a.About().Exclusive:
		return "set one thing, which the first to end sets right"
	}
	return ""
}

// holdsProcess reports whether a fault has a client's process stand still, for a
// while or to be sure of it.
func holdsProcess(k FaultKind) bool {
	return k.OnClient() && k.About().StopsProcess
}
