package scenario

import (
	"strings"
	"time"
)

// The defaults of Settings and Workload; each is told beside its field.
const (
	defaultClients  = 16
	defaultTTL      = 4 * time.Second
	defaultWarmup   = time.Second
	defaultDuration = 10 * time.Second
	defaultTimeout  = 2 * time.Second
	defaultHold     = time.Millisecond
	defaultFaultAt  = time.Second
	defaultKeys     = 100
	defaultZipfS    = 1.1
	inFlightEach    = 4
)

// defaultPoll is the wait policy of polling recipes.
var defaultPoll = Poll{Min: 5 * time.Millisecond, Max: 15 * time.Millisecond}

// choice is one combination of a block's lists.
type choice struct {
	recipe   RecipeFacts
	topology string
	clients  int
	repeat   int
}

// resolve fills every default in. It accepts nonsense; check finds it.
func resolve(group string, s Settings, c choice) Scenario {
	sc := Scenario{
		Group:       group,
		Recipe:      c.recipe.ID,
		Topology:    c.topology,
		Environment: firstText(s.Environment, EnvProcess),
		Clients:     c.clients,
		Repeat:      c.repeat,
		TTL:         valueOr(s.TTL, Duration(defaultTTL)),
		Poll:        valueOr(s.Poll, defaultPoll),
		Warmup:      valueOr(s.Warmup, Duration(defaultWarmup)),
		Timeout:     valueOr(s.Timeout, Duration(defaultTimeout)),
	}
	sc.Workload = resolveLoad(valueOr(s.Workload, Workload{}), c)
	for _, f := range s.Faults {
		fault := Fault{Kind: f.Kind, At: valueOr(f.At, Duration(defaultFaultAt)), For: valueOr(f.For, 0)}
		if fault.For == 0 && fault.Kind == HolderPause {
			fault.For = shortestPause(sc.TTL)
		}
		sc.Faults = append(sc.Faults, fault)
	}
	sc.Duration = valueOr(s.Duration, max(Duration(defaultDuration), faultsEnd(sc)))
	sc.Workers = valueOr(s.Workers, defaultWorkers(sc))
	if settings := s.Servers[c.recipe.Backend]; len(settings) > 0 {
		sc.Servers = map[string]map[string]string{c.recipe.Backend: settings}
	}
	sc.Expect = expectation(sc, s, c.recipe)
	return sc
}

func resolveLoad(w Workload, c choice) Load {
	keys := 1
	hold := Constant(defaultHold)
	switch w.Kind {
	case Uncontended:
		keys = c.clients
		hold = Constant(0)
	case Keys:
		keys = defaultKeys
	}
	l := Load{
		Kind:         w.Kind,
		Keys:         valueOr(w.Keys, keys),
		Distribution: w.Distribution,
		ZipfS:        valueOr(w.ZipfS, 0),
		Hold:         valueOr(w.Hold, hold),
		Arrival:      firstText(w.Arrival, ArrivalClosed),
		Rate:         valueOr(w.Rate, 0),
		MaxInFlight:  valueOr(w.MaxInFlight, 0),
		AcquireLimit: valueOr(w.AcquireLimit, 0),
		WatchLease:   valueOr(w.WatchLease, false),
		Guard:        w.Guard,
	}
	if w.Kind == Keys && l.Distribution == "" {
		l.Distribution = KeysUniform
	}
	if l.Distribution == KeysZipf && w.ZipfS == nil {
		l.ZipfS = defaultZipfS
	}
	think := l.Hold
	if l.open() {
		think = Constant(0)
		if w.MaxInFlight == nil {
			l.MaxInFlight = inFlightEach * c.clients
		}
	}
	l.Think = valueOr(w.Think, think)
	if w.Kind == GuardedCounter && l.Guard == "" {
		l.Guard = GuardPlain
		if c.recipe.Fencing {
			l.Guard = GuardBoth
		}
	}
	return l
}

// open reports whether acquires arrive by the clock rather than when the last
// one is done.
func (l Load) open() bool { return l.Arrival == ArrivalConstant || l.Arrival == ArrivalPoisson }

// longestHold is the longest hold that is not an oddity.
func (l Load) longestHold() time.Duration {
	switch l.Hold.Kind {
	case DistUniform:
		return l.Hold.B
	case DistExponential:
		return 5 * l.Hold.A
	}
	return l.Hold.A
}

func defaultWorkers(sc Scenario) int {
	for _, f := range sc.Faults {
		if aimsAtClient(f.Kind) {
			return sc.Clients
		}
	}
	return min(2, sc.Clients)
}

// aimsAtClient reports whether a fault hits the process of one client, and so
// needs that client alone in it.
func aimsAtClient(fault string) bool { return fault == HolderPause }

// shortestPause is the least that a holder must be paused for a lease to have
// certainly run out: one that was renewed just before, the server's own
// slack, and time for a successor to be seen.
func shortestPause(ttl Duration) Duration { return 2*ttl + Duration(2*time.Second) }

// recovery is the time that must be left after a fault's end for what follows
// to be seen: the paused holder ends its hold, and somebody else gets the lock.
func recovery(l Load) Duration {
	return max(Duration(2*time.Second), 2*Duration(l.longestHold()))
}

// faultsEnd is the least duration that has room for all faults.
func faultsEnd(sc Scenario) Duration {
	var end Duration
	for _, f := range sc.Faults {
		end = max(end, f.At+f.For+recovery(sc.Workload))
	}
	return end
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
