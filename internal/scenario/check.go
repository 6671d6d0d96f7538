package scenario

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
)

// The largest numbers that make sense on one machine.
const (
	maxClients  = 10_000
	maxKeys     = 1_000_000
	maxInFlight = 1_000_000
	maxRate     = 10_000_000
)

// finding is a problem of a scenario; its path is that of Settings.
type finding struct{ path, message, hint string }

// findings collects them.
type findings []finding

func (f *findings) add(path, hint, format string, args ...any) {
	*f = append(*f, finding{path, fmt.Sprintf(format, args...), hint})
}

// check tells what is wrong with a resolved scenario, whose faults come from
// those of its specification as origin tells (nil: one by one). Without known
// facts of the recipe it leaves out what depends on them.
func check(sc Scenario, r RecipeFacts, known bool, origin []int) []finding {
	var f findings
	if sc.Clients < 1 || sc.Clients > maxClients {
		f.add("clients", fmt.Sprintf("write 1 to %d", maxClients), "%d clients", sc.Clients)
	}
	if sc.Duration <= 0 {
		f.add("duration", "write 10s, for example", "a duration of 0s measures nothing")
	}
	if sc.Warmup < 0 {
		f.add("warmup", "write 0s for none", "%s is negative", sc.Warmup)
	}
	if sc.TTL <= 0 {
		f.add("ttl", "write 4s, for example", "a lease of 0s can never be held")
	}
	if sc.Timeout <= 0 {
		f.add("timeout", "write 2s, for example", "no request is answered within 0s")
	}
	if sc.Poll.Min <= 0 || sc.Poll.Max < sc.Poll.Min {
		f.add("poll", "write 5ms..15ms, for example", "%s is no wait policy", sc.Poll)
	}
	checkEnvironment(&f, sc)
	checkLoad(&f, sc)
	checkFaults(&f, sc, r, origin)
	checkWorkers(&f, sc)
	if known {
		checkRecipe(&f, sc, r)
	}
	return f
}

func checkEnvironment(f *findings, sc Scenario) {
	switch sc.Environment {
	case EnvProcess:
	case EnvDocker, EnvExternal:
		f.add("environment", "use process", "%q is not available in this version", sc.Environment)
	default:
		f.add("environment", "there is process", "no environment %q", sc.Environment)
	}
}

func checkLoad(f *findings, sc Scenario) {
	l := sc.Workload
	known := names(Workloads())
	if !slices.Contains(known, l.Kind) {
		message := fmt.Sprintf("no workload %q", l.Kind)
		if l.Kind == "" {
			message = "names no workload"
		}
		f.add("workload.kind", didYouMean(Nearest(l.Kind, known), known), "%s", message)
		return // what fits an unknown kind cannot be known
	}
	checkKeys(f, sc)
	checkKind(f, sc)
	checkDistribution(f, l)
	checkArrival(f, l)
	switch {
	case l.Guard != "" && l.Kind != GuardedCounter:
		f.add("workload.guard", "use the workload guarded-counter, or leave guard out", "%s has no guarded register", l.Kind)
	case l.Guard != "" && !slices.Contains([]string{GuardPlain, GuardFenced, GuardBoth}, l.Guard):
		f.add("workload.guard", "there is plain, fenced, both", "no guard %q", l.Guard)
	}
	for _, t := range []struct {
		field string
		dist  Dist
	}{{"hold", l.Hold}, {"think", l.Think}} {
		// A Dist that a program made need not be one that ParseDist reads.
		if _, err := ParseDist(t.dist.String()); err != nil {
			f.add("workload."+t.field, "", "%s", err)
		}
	}
	if l.AcquireLimit < 0 {
		f.add("workload.acquire_limit", "write 0s for no limit", "%s is negative", l.AcquireLimit)
	}
}

func checkDistribution(f *findings, l Load) {
	switch {
	case l.Distribution == "":
	case l.Kind != Keys:
		f.add("workload.distribution", "use the workload keys, or leave distribution out", "%s does not draw keys", l.Kind)
	case l.Distribution != KeysUniform && l.Distribution != KeysZipf:
		f.add("workload.distribution", "there is uniform, zipf", "no distribution %q", l.Distribution)
	}
	switch {
	case l.Distribution == KeysZipf && (!(l.ZipfS > 1) || l.ZipfS > 100):
		f.add("workload.zipf_s", "write 1.1, for example", "the exponent of zipf must be more than 1 and at most 100, not %v", l.ZipfS)
	case l.Distribution != KeysZipf && l.ZipfS != 0:
		f.add("workload.zipf_s", "add distribution: zipf, or leave zipf_s out", "an exponent without zipf")
	}
}

func checkArrival(f *findings, l Load) {
	switch {
	case l.open():
		if !(l.Rate > 0) || l.Rate > maxRate || math.IsInf(l.Rate, 0) {
			f.add("workload.rate", "write arrivals a second of all clients together, such as rate: 500", "%s arrivals need a rate above 0 and at most %d, not %v", l.Arrival, maxRate, l.Rate)
		}
		if l.MaxInFlight < 1 || l.MaxInFlight > maxInFlight {
			f.add("workload.max_in_flight", fmt.Sprintf("write 1 to %d", maxInFlight), "%d in flight", l.MaxInFlight)
		}
		if !l.Think.IsZero() {
			f.add("workload.think", "leave think out, or use arrival: closed", "an open loop does not wait between acquires, its rate decides")
		}
	case l.Arrival == ArrivalClosed:
		const hint = "add arrival: constant or poisson, or leave it out"
		if l.Rate != 0 {
			f.add("workload.rate", hint, "a closed loop has no rate")
		}
		if l.MaxInFlight != 0 {
			f.add("workload.max_in_flight", hint, "a closed loop has one acquire in flight for each client")
		}
	default:
		f.add("workload.arrival", "there is closed, constant, poisson", "no arrival %q", l.Arrival)
	}
}

func checkWorkers(f *findings, sc Scenario) {
	if sc.Clients < 1 {
		return // told already
	}
	switch {
	case sc.Workers < 1:
		f.add("workers", "write 1 or more, or leave it out", "%d worker processes", sc.Workers)
	case sc.Workers > sc.Clients:
		f.add("workers", "write fewer, or leave it out", "%d worker processes for %d clients", sc.Workers, sc.Clients)
	case sc.Workers < sc.Clients:
		for _, fault := range sc.Faults {
			if aimsAtClient(sc, fault.kind()) {
				f.add("workers", "leave it out", "%s hits a whole process, so each of the %d clients needs its own, not %d in all", fault.Kind, sc.Clients, sc.Workers)
				return
			}
		}
	}
}

func checkRecipe(f *findings, sc Scenario, r RecipeFacts) {
	if !slices.Contains(r.Topologies, sc.Topology) {
		f.add("topology", "it runs on "+strings.Join(r.Topologies, ", "), "%s does not run on %q", r.ID, sc.Topology)
	}
	if r.CheckTTL != nil && sc.TTL > 0 {
		if err := r.CheckTTL(sc.TTL.D(), sc.Servers[r.Backend]); err != nil {
			reason := err.Error()
			switch {
			case strings.Contains(reason, r.ID):
			case strings.HasPrefix(reason, "cannot serve "): // who cannot is all that is missing
				reason = r.ID + " " + reason
			default:
				reason = fmt.Sprintf("%s cannot serve a lease of %s: %s", r.ID, sc.TTL, reason)
			}
			f.add("ttl", "", "%s", reason)
		}
	}
	needs := map[string]string{ReadWrite: "read-write", Batch: "batch", TryStorm: "nonblocking"}[sc.Workload.Kind]
	if needs != "" && !r.has(needs) {
		f.add("workload.kind", "lockbench list recipes shows which have the property "+needs, "%s cannot serve the workload %s: %s", r.ID, sc.Workload.Kind, errors.ErrUnsupported)
	}
	// Whoever can lock again need not do it right, so the property is no answer.
	if sc.Workload.Kind == Reentrant && r.Properties != nil && !r.Reenters {
		f.add("workload.kind", "use one whose name says reentrant", "%s cannot serve the workload %s: its holder would wait for itself", r.ID, sc.Workload.Kind)
	}
	if sc.Workload.Kind == GuardedCounter && !r.Fencing && (sc.Workload.Guard == GuardFenced || sc.Workload.Guard == GuardBoth) {
		f.add("workload.guard", "use plain, or leave guard out: recipes with tokens get both registers", "%s has no fencing tokens for a fenced register", r.ID)
	}
}

// checkExpect checks answers and thresholds as the user wrote them.
func checkExpect(path string, e Expect) []finding {
	var f findings
	for _, a := range []struct {
		field, answer string
		choices       []string
	}{
		{"verdict", e.Verdict, []string{Safe, Unsafe, expectAny}},
		{"promise", e.Promise, []string{Kept, Broken, expectAny}},
		{"liveness", e.Liveness, []string{Live, Stuck, expectAny}},
	} {
		if a.answer != "" && !slices.Contains(a.choices, a.answer) {
			f.add(path+"."+a.field, "there is "+strings.Join(a.choices, ", "), "no such answer %q", a.answer)
		}
	}
	for i, t := range e.Thresholds {
		if _, err := ParseThreshold(t); err != nil {
			f.add(fmt.Sprintf("%s.thresholds[%d]", path, i), "", "%s", err)
		}
	}
	return f
}
