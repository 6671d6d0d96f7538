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
	defaultKeys     = 100
	defaultZipfS    = 1.1
	inFlightEach    = 4

	defaultReaders    = 0.8
	defaultDepth      = 2
	defaultBatch      = 3
	defaultBatchKeys  = 10
	defaultChurnLimit = 20 * time.Millisecond
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

// resolve fills every default in, and tells which of the settings' faults each
// of the scenario's comes from. It accepts nonsense; check finds it.
func resolve(suiteSeed uint64, group string, s Settings, c choice) (sc Scenario, origin []int) {
	sc = Scenario{
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
		Wire:        s.Wire,
	}
	sc.Name = name(sc)
	sc.Seed = seed(suiteSeed, sc.Name)
	sc.Workload = resolveLoad(valueOr(s.Workload, Workload{}), c)
	sc.Faults, origin = resolveFaults(s.Faults, sc, c.recipe, valueOr(s.Duration, Duration(defaultDuration)))
	if sc.Workload.Kind == Takeover && s.Warmup == nil {
		sc.Warmup = sc.TTL / 2
	}
	end, _ := faultsEnd(sc, c.recipe)
	sc.Duration = valueOr(s.Duration, max(Duration(defaultDuration), end))
	sc.Workers = valueOr(s.Workers, defaultWorkers(sc))
	if settings := s.Servers[c.recipe.Backend]; len(settings) > 0 {
		sc.Servers = map[string]map[string]string{c.recipe.Backend: settings}
	}
	sc.Expect = expectation(sc, s, c.recipe)
	return sc, origin
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
	case Batch:
		keys = defaultBatchKeys
	case Takeover:
		keys = max(1, c.clients/2)
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
		Readers:      valueOr(w.Readers, 0),
		Depth:        valueOr(w.Depth, 0),
		Batch:        valueOr(w.Batch, 0),
		Connections:  valueOr(w.Connections, 0),
	}
	switch {
	case w.Kind == ReadWrite && w.Readers == nil:
		l.Readers = defaultReaders
	case w.Kind == Reentrant && w.Depth == nil:
		l.Depth = defaultDepth
	case w.Kind == Batch && w.Batch == nil:
		l.Batch = defaultBatch
	case w.Kind == Churn && w.AcquireLimit == nil:
		l.AcquireLimit = Duration(defaultChurnLimit)
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

// shortestHold is the shortest hold that is not an oddity.
func (l Load) shortestHold() time.Duration {
	if l.Hold.Kind == DistExponential {
		return 0
	}
	return l.Hold.A
}

func defaultWorkers(sc Scenario) int {
	for _, f := range sc.Faults {
		// A dialer belongs to a process, and so does what it does to the wire.
		if k := f.kind(); aimsAtClient(sc, k) || k.Wire() {
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
