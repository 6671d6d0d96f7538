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
	maxInFlight = 1_000_000
	maxRate     = 10_000_000
)

// oneKey lists the workloads whose clients all want the same key.
var oneKey = []string{HotKey, TryStorm, ReadWrite, Reentrant, Churn, Properties}

// finding is a problem of a scenario; its path is that of Settings.
type finding struct{ path, message, hint string }

// findings collects them.
type findings []finding

func (f *findings) add(path, hint, format string, args ...any) {
	*f = append(*f, finding{path, fmt.Sprintf(format, args...), hint})
}

// check finds what is wrong with a resolved scenario, whose faults come from
// those of its specification as origin lists (nil: one by one). If the recipe's
// facts are not known it leaves out what depends on them.
func check(sc Scenario, r RecipeFacts, known bool, origin []int) []finding {
	var f findings
	checkFields(&f, &sc, "", sc.Workload.Kind)
	if sc.Poll.Min <= 0 || sc.Poll.Max < sc.Poll.Min {
		f.add("poll", "write 5ms..15ms, for example", "%s is not a valid poll interval", sc.Poll)
	}
	switch sc.Environment {
	case EnvProcess:
	case EnvDocker:
		if sc.Wire == WireKernel {
			f.add("wire", "leave wire out: proxies cut and delay connections", "the kernel can drop packets only between clients and servers that are processes")
		}
	case EnvExternal:
		checkExternal(&f, sc, r.actions, origin)
	default:
		f.add("environment", "choose process, docker or external", "invalid environment %q", sc.Environment)
	}
	checkLoad(&f, sc)
	checkFaults(&f, sc, r, origin)
	checkWorkers(&f, sc, r.actions)
	if known {
		checkRecipe(&f, sc, r)
	}
	return f
}

// checkExternal rejects what needs servers that lockbench started. Faults on the
// clients' side are left: their processes, their clocks, their own connections; and
// those that a server's own commands do, which the user has to allow.
func checkExternal(f *findings, sc Scenario, actions Actions, origin []int) {
	for i, fault := range sc.Faults {
		if k, ok := actions.Parse(fault.Kind); ok && !k.OnClient() && k.About().Needs != AbilityClose {
			f.add(fmt.Sprintf("faults[%d].kind", from(origin, i)), "use process, whose servers lockbench starts itself; or node:1-close, or a fault on a holder, waiter or client",
				"%s hits servers, and those of the environment external are not lockbench's to hurt", fault.Kind)
		}
	}
	if len(sc.Servers) > 0 {
		f.add("servers", "leave them out", "lockbench changes no settings of external servers")
	}
	if sc.Wire == WireKernel {
		f.add("wire", "leave it out", "the kernel can drop packets only to servers that lockbench started; those to external ones go through a proxy")
	}
	if sc.Workload.Kind == Properties {
		f.add("workload.kind", "use process", "the workload properties stops servers, and those of the environment external are not lockbench's to stop")
	}
}

// checkLoad checks what the fields of a load cannot say by themselves.
func checkLoad(f *findings, sc Scenario) {
	l := sc.Workload
	known := names(Workloads())
	if !slices.Contains(known, l.Kind) {
		message := fmt.Sprintf("no workload %q", l.Kind)
		if l.Kind == "" {
			message = "missing workload"
		}
		f.add("workload.kind", Suggest(l.Kind, known), "%s", message)
		return // the rest depends on the kind
	}
	checkFields(f, &l, "workload", l.Kind)
	checkKeys(f, sc)
	switch {
	case l.Distribution == KeysZipf && (!(l.ZipfS > 1) || l.ZipfS > 100):
		f.add("workload.zipf_s", "write 1.1, for example", "the exponent of zipf must be more than 1 and at most 100, not %v", l.ZipfS)
	case l.Distribution != KeysZipf && l.ZipfS != 0:
		f.add("workload.zipf_s", "add distribution: zipf, or leave zipf_s out", "an exponent without zipf")
	}
	checkArrival(f, l)
	// A Dist that a program made need not be one that ParseDist reads.
	if _, err := ParseDist(l.Hold.String()); err != nil {
		f.add("workload.hold", "", "%s", err)
	}
	if _, err := ParseDist(l.Think.String()); err != nil {
		f.add("workload.think", "", "%s", err)
	}
	switch {
	case l.Kind == Batch && l.Batch > l.Keys:
		f.add("workload.batch", "write fewer, or add keys", "a batch of %d of %d keys", l.Batch, l.Keys)
	case l.Kind == Churn && l.AcquireLimit == 0:
		f.add("workload.acquire_limit", "write 20ms, for example", "churn needs a limit for its waits")
	case l.Kind == TryStorm && l.AcquireLimit != 0:
		f.add("workload.acquire_limit", "leave it out", "a try does not wait")
	case l.Kind == Takeover:
		checkTakeover(f, sc)
	}
}

// checkKeys checks the number of keys against the kind of load.
func checkKeys(f *findings, sc Scenario) {
	l := sc.Workload
	switch {
	case l.Kind == Uncontended && l.Keys != sc.Clients:
		f.add("workload.keys", "leave keys out", "uncontended gives each of the %d clients its own key, not %d keys to all", sc.Clients, l.Keys)
	case l.Kind == Takeover && sc.Clients >= 2 && l.Keys != sc.Clients/2:
		f.add("workload.keys", "leave keys out", "takeover has a key for each pair of its %d clients, not %d keys", sc.Clients, l.Keys)
	case slices.Contains(oneKey, l.Kind) && l.Keys != 1:
		f.add("workload.keys", "leave keys out, or use the workload keys", "%s has one key, not %d", l.Kind, l.Keys)
	}
}

// checkTakeover: holders acquire in the warm-up, and no process may host both a
// holder and a waiter.
func checkTakeover(f *findings, sc Scenario) {
	if sc.Clients%2 != 0 {
		f.add("clients", "write an even number", "takeover has pairs of a holder and a waiter, not %d clients", sc.Clients)
	}
	if sc.Warmup <= 0 {
		f.add("warmup", "write 2s, for example, or leave it out", "takeover needs a warm-up, in which the holders acquire their locks")
	}
	if sc.Workers > 0 && sc.Workers != 2 && sc.Workers != sc.Clients {
		f.add("workers", "write 2, or leave it out", "one of %d worker processes would host holders and waiters, and a kill would hit both", sc.Workers)
	}
}

func checkArrival(f *findings, l Load) {
	switch {
	case l.open() && (l.Kind == Takeover || l.Kind == Properties):
		f.add("workload.arrival", "leave it out", "%s has no arrivals", l.Kind)
	case l.open():
		if l.MaxRate != 0 {
			f.add("workload.max_rate", "leave it out", "an open loop has its own rate")
		}
		if !(l.Rate > 0) || l.Rate > maxRate || math.IsInf(l.Rate, 0) {
			f.add("workload.rate", "write arrivals per second of all clients together, such as rate: 500", "%s arrivals need a rate above 0 and at most %d, not %v", l.Arrival, maxRate, l.Rate)
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
	}
}

func checkWorkers(f *findings, sc Scenario, actions Actions) {
	if sc.Clients < 1 {
		return // reported already
	}
	switch {
	case sc.Workers < 1:
		f.add("workers", "write 1 or more, or leave it out", "%d worker processes", sc.Workers)
	case sc.Workers > sc.Clients:
		f.add("workers", "write fewer, or leave it out", "%d worker processes for %d clients", sc.Workers, sc.Clients)
	case sc.Workers < sc.Clients:
		for _, fault := range sc.Faults {
			if k, _ := actions.Parse(fault.Kind); aimsAtClient(sc, k) {
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
	if sc.LockDelay > 0 && !r.LockDelay {
		f.add("lock_delay", "leave it out; lockbench list recipes --format json shows which have it", "%s has no lock delay", r.ID)
	}
	if r.CheckTTL != nil && sc.TTL > 0 {
		if err := r.CheckTTL((sc.TTL + sc.LockDelay).D(), sc.Servers[r.Backend]); err != nil {
			reason := err.Error()
			switch {
			case strings.Contains(reason, r.ID):
			case strings.HasPrefix(reason, "cannot serve "):
				reason = r.ID + " " + reason
			default:
				reason = fmt.Sprintf("%s cannot serve a lease of %s: %s", r.ID, sc.TTL, reason)
			}
			f.add("ttl", "", "%s", reason)
		}
	}
	needs := map[string]string{ReadWrite: "read-write", Batch: "batch", TryStorm: "nonblocking"}[sc.Workload.Kind]
	if needs != "" && !r.Has(needs) {
		f.add("workload.kind", "lockbench list recipes shows which have the property "+needs, "%s cannot serve the workload %s: %s", r.ID, sc.Workload.Kind, errors.ErrUnsupported)
	}
	// A recipe that can lock again may do it wrong, so its property is no answer.
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
	checkFields(&f, &e, path, "")
	for i, t := range e.Thresholds {
		if _, err := ParseThreshold(t); err != nil {
			f.add(fmt.Sprintf("%s.thresholds[%d]", path, i), "", "%s", err)
		}
	}
	return f
}
