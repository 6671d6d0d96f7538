package scenario

import (
	"strings"
	"time"
)

// What Settings default to where a tag cannot say it.
const (
	defaultClients = 16
	defaultZipfS   = 1.1
	inFlightEach   = 4
	// externalRate spares servers that other users need, too.
	externalRate = 1000
)

// choice is one combination of a block's lists.
type choice struct {
	recipe   RecipeFacts
	topology string
	clients  int
	repeat   int
	given    map[string]bool // of the block's settings, see Settings.given
}

// resolve fills in the defaults that depend on the choice, and returns which of the settings' faults each
// of the scenario's faults comes from. It accepts nonsense; check finds it.
func resolve(suiteSeed uint64, group string, s Settings, c choice) (sc Scenario, origin []int) {
	sc = s.Scenario
	sc.Group, sc.Recipe, sc.Topology, sc.Clients, sc.Repeat = group, c.recipe.ID, c.topology, c.clients, c.repeat
	sc.Name = name(sc)
	sc.Seed = seed(suiteSeed, sc.Name)
	resolveLoad(&sc.Workload, c)
	if l := &sc.Workload; sc.Environment == EnvExternal && l.Arrival == ArrivalClosed && !c.given["workload.max_rate"] {
		l.MaxRate = externalRate
	}
	sc.Faults, origin = resolveFaults(s.Faults, sc, c.recipe, sc.Duration)
	if sc.Workload.Kind == Takeover && !c.given["warmup"] {
		sc.Warmup = sc.TTL / 2
	}
	if !c.given["duration"] {
		end, _ := faultsEnd(sc, c.recipe)
		sc.Duration = max(sc.Duration, end)
	}
	if !c.given["workers"] {
		sc.Workers = defaultWorkers(sc, c.recipe.actions)
	}
	sc.Servers = nil
	if settings := s.Servers[c.recipe.Backend]; len(settings) > 0 {
		sc.Servers = map[string]map[string]string{c.recipe.Backend: settings}
	}
	sc.Expect = expectation(sc, s, c.recipe)
	forgetZeros(&sc)
	return sc, origin
}

// forgetZeros: once resolved, everything is given.
func forgetZeros(sc *Scenario) {
	sc.zero, sc.Workload.zero = 0, 0
	for i := range sc.Faults {
		sc.Faults[i].zero = 0
	}
}

func resolveLoad(l *Load, c choice) {
	missing := func(name string) bool { return !c.given["workload."+name] }
	if missing("keys") {
		switch l.Kind {
		case Uncontended:
			l.Keys = c.clients
		case Takeover:
			l.Keys = max(1, c.clients/2)
		}
	}
	if l.Distribution == KeysZipf && missing("zipf_s") {
		l.ZipfS = defaultZipfS
	}
	if l.open() && missing("max_in_flight") {
		l.MaxInFlight = inFlightEach * c.clients
	}
	if missing("think") {
		l.Think = l.Hold
		if l.open() {
			l.Think = Constant(0)
		}
	}
	if l.Kind == GuardedCounter && l.Guard == "" {
		l.Guard = GuardPlain
		if c.recipe.Fencing {
			l.Guard = GuardBoth
		}
	}
}

// open reports whether acquires arrive by the clock rather than when the last
// one is done.
func (l Load) open() bool { return l.Arrival == ArrivalConstant || l.Arrival == ArrivalPoisson }

// longestHold is the longest hold to reckon with.
func (l Load) longestHold() time.Duration {
	switch l.Hold.Kind {
	case DistUniform:
		return l.Hold.B
	case DistExponential:
		return 5 * l.Hold.A
	}
	return l.Hold.A
}

// shortestHold is the shortest hold to reckon with.
func (l Load) shortestHold() time.Duration {
	if l.Hold.Kind == DistExponential {
		return 0
	}
	return l.Hold.A
}

// defaultWorkers is one process for each client if a fault targets a client or
// its connections, for it then hits the whole process; else two.
func defaultWorkers(sc Scenario, actions Actions) int {
	for _, f := range sc.Faults {
		if k, _ := actions.Parse(f.Kind); aimsAtClient(sc, k) || k.About().Wire {
			return sc.Clients
		}
	}
	return min(2, sc.Clients)
}

// slug makes a name fit for a folder: lower-case letters, digits, hyphens.
func slug(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s)
}
