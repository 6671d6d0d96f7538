package scenario

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"
)

// maxFaults bounds a schedule: more is a slip of the pen.
const maxFaults = 200

// end is when a fault is over, if it finds its target at once. One that hits the
// servers of a topology one after another gives each time to get well.
func (f Fault) end(topology string) Duration {
	if !strings.HasPrefix(f.Kind, TargetEach+"-") {
		return f.At + f.For
	}
	servers, room := Duration(3), electionRoom
	switch topology {
	case topologyGalera:
		room = rejoinRoom
	case TopologySingle:
		servers = 1
	case topologyQuorum:
		servers = 5
	}
	return f.At + servers*(f.For+room)
}

// aimsAtClient reports whether a fault hits one client, and so needs that client
// alone in its process. The workload takeover is there to kill many holders
// atomically.
func aimsAtClient(sc Scenario, k FaultKind) bool {
	return k.OnClient() && !(sc.Workload.Kind == Takeover && k.String() == HolderKill)
}

// OutlivesLease is the least that a holder must be paused for a lease to have
// certainly run out: one that was renewed just before, the server's own
// slack, and time for a successor to be seen.
func OutlivesLease(ttl Duration) Duration { return 2*ttl + Duration(2*time.Second) }

// resolveFaults fills in what the schedule leaves open, in the order of the
// times; origin maps each fault to its spec. A takeover without faults gets one
// kill, at a time that the seed decides, so that it comes at any point of a
// server's tick or of a session's extensions. Repeated faults have until window
// for it.
func resolveFaults(specs []FaultSpec, sc Scenario, r RecipeFacts, window Duration) (list []Fault, origin []int) {
	if sc.Workload.Kind == Takeover && specs == nil {
		span := uint64(max(1, sc.TTL.D()/4/time.Millisecond))
		return []Fault{{Kind: HolderKill, At: Duration(sc.Seed%span) * Duration(time.Millisecond)}}, []int{0}
	}
	type resolved struct {
		fault Fault
		from  int
	}
	var all []resolved
	for i, spec := range specs {
		for _, f := range occurrences(spec, i, sc, r, window) {
			all = append(all, resolved{f, i})
		}
	}
	slices.SortStableFunc(all, func(a, b resolved) int { return int(a.fault.At - b.fault.At) })
	for _, x := range all {
		list, origin = append(list, x.fault), append(origin, x.from)
	}
	return list, origin
}

// occurrences are the faults that one spec, the i-th, stands for.
func occurrences(spec FaultSpec, i int, sc Scenario, r RecipeFacts, window Duration) []Fault {
	first, kind := withDefaults(spec, sc, r.actions)
	most := 1
	if spec.Every > 0 {
		most = maxFaults + 1
		if spec.gives("count") {
			most = spec.Count
		}
	}
	var list []Fault
	for n := range min(most, maxFaults+1) {
		f := first
		f.At += Duration(n) * spec.Every
		// Without a count the window decides, by the latest time that the seed may
		// choose, so that another seed does not make another number of faults.
		if !spec.gives("count") && n > 0 && f.end(sc.Topology)+spec.Within+recovery(sc, kind, r) > window {
			break
		}
		f.At += drawn(sc.Seed, i, n, spec.Within)
		list = append(list, f)
	}
	return list
}

// drawn is a time from 0 to most, the same for the same seed and fault whatever
// else the suite holds.
func drawn(seed uint64, fault, occurrence int, most Duration) Duration {
	if most <= 0 {
		return 0
	}
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/within/%d/%d", seed, fault, occurrence)
	// By the millisecond, so that a person can read it.
	return Duration(spread(h.Sum64())%uint64(most.D()/time.Millisecond+1)) * Duration(time.Millisecond)
}

// withDefaults fills in what a fault leaves open.
func withDefaults(spec FaultSpec, sc Scenario, actions Actions) (f Fault, k FaultKind) {
	setDefaults(&spec, "")
	f = spec.Fault
	f.Kind = spec.faultKind()
	k, ok := actions.Parse(f.Kind)
	if !ok {
		return f, k
	}
	about := k.About()
	if f.For == 0 && !about.Instant {
		f.For = cmp.Or(about.For, OutlivesLease(sc.TTL))
	}
	if !spec.gives("by") {
		f.By = about.By.Default
		if about.By.AddTTL {
			f.By += sc.TTL
		}
	}
	if !spec.gives("rate") {
		f.Rate = about.Rate
	}
	return f, k
}

// electionRoom is the time that servers may take to agree on another leader, and
// clients to find it, once a fault is over.
const electionRoom = Duration(3 * time.Second)

// rejoinRoom is the time that a server of a Galera group may take to be of it again
// after a crash: it starts twice, once to see what it has, and is let in when the
// others have left it behind and sent it the rest.
const rejoinRoom = Duration(15 * time.Second)

// recovery is the time that must be left after a fault's end to observe its
// effects: the paused holder ends its hold, and another client gets the lock. If
// the holder died or its release did not arrive, that takes up to the recipe's
// bound. A lock without a bound is watched for two TTLs.
func recovery(sc Scenario, k FaultKind, r RecipeFacts) Duration {
	rest := max(Duration(2*time.Second), 2*Duration(sc.Workload.longestHold()))
	if !k.OnClient() {
		rest += electionRoom
	}
	switch {
	case k.OnClient() && !k.KillsClient() && !k.About().Wire:
		return rest
	case r.Takeover != nil:
		return rest + Duration(r.Takeover(sc.TTL.D())) + sc.LockDelay
	case r.Bound == "none":
		return rest + 2*sc.TTL
	}
	return rest
}

// faultsEnd is the least duration that has room for all faults, and the one that
// needs it.
func faultsEnd(sc Scenario, r RecipeFacts) (end Duration, last Fault) {
	for _, f := range sc.Faults {
		k, _ := r.actions.Parse(f.Kind)
		if ends := f.end(sc.Topology) + recovery(sc, k, r); ends > end {
			end, last = ends, f
		}
	}
	return end, last
}
