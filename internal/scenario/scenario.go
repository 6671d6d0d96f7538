package scenario

import "time"

// Scenario is one resolved experiment: one recipe, one topology, one load.
// The YAML of a suite (see File) expands to a list of these, and that list is
// what suite.yaml in a run's folder holds.
type Scenario struct {
	Name        string  `json:"name" yaml:"name"`   // unique in the run, fit for a folder's name
	Group       string  `json:"group" yaml:"group"` // the block of the suite it came from
	Recipe      string  `json:"recipe" yaml:"recipe"`
	Topology    string  `json:"topology" yaml:"topology"`       // single, quorum...
	Environment string  `json:"environment" yaml:"environment"` // process
	Workload    Load    `json:"workload" yaml:"workload"`
	Clients     int     `json:"clients" yaml:"clients"`
	Workers     int     `json:"workers" yaml:"workers"` // processes that host the clients
	Repeat      int     `json:"repeat" yaml:"repeat"`   // 1, 2, 3... of the same experiment
	Seed        uint64  `json:"seed" yaml:"seed"`       // of this scenario, derived from the suite's
	Faults      []Fault `json:"faults,omitempty" yaml:"faults,omitempty"`

	TTL      Duration `json:"ttl_ns" yaml:"ttl"`
	Poll     Poll     `json:"poll" yaml:"poll"`
	Warmup   Duration `json:"warmup_ns" yaml:"warmup"`
	Duration Duration `json:"duration_ns" yaml:"duration"`
	Timeout  Duration `json:"timeout_ns" yaml:"timeout"` // of one request on the wire

	// Wire says what carries the faults between clients and servers: dialer, or
	// kernel (packets dropped in a network namespace of the run); "": kernel
	// where this machine has it, for the faults that it can do.
	Wire string `json:"wire,omitempty" yaml:"wire,omitempty"`

	// Servers are settings that differ from the servers' production defaults,
	// by backend: {redis: {appendonly: "yes"}}.
	Servers map[string]map[string]string `json:"servers,omitempty" yaml:"servers,omitempty"`

	Expect Expect `json:"expect" yaml:"expect"`
}

// Load is what the clients do.
type Load struct {
	Kind string `json:"kind" yaml:"kind"` // see Workloads

	Keys         int      `json:"keys" yaml:"keys"`                                          // number of keys
	Distribution string   `json:"distribution,omitempty" yaml:"distribution,omitempty"`      // uniform, zipf (keys only)
	ZipfS        float64  `json:"zipf_s,omitempty" yaml:"zipf_s,omitempty"`                  // > 1
	Hold         Dist     `json:"hold" yaml:"hold"`                                          // time between grant and release
	Think        Dist     `json:"think" yaml:"think"`                                        // closed loop: time between release and the next acquire
	Arrival      string   `json:"arrival" yaml:"arrival"`                                    // closed, constant, poisson
	Rate         float64  `json:"rate,omitempty" yaml:"rate,omitempty"`                      // arrivals a second, all clients together (open loop)
	MaxInFlight  int      `json:"max_in_flight,omitempty" yaml:"max_in_flight,omitempty"`    // open loop: started or queued arrivals; more are dropped and counted
	AcquireLimit Duration `json:"acquire_limit_ns,omitempty" yaml:"acquire_limit,omitempty"` // how long one acquire may wait; 0: until the end of the run

	// WatchLease: the client stops working at its lease's end, by its own
	// timer, and counts the hold as lost from then on.
	WatchLease bool `json:"watch_lease" yaml:"watch_lease"`
	// Guard (guarded-counter): which registers each critical section reads
	// and writes: plain (carries tokens, enforces nothing), fenced (enforces
	// them), or both, side by side under the very same faults.
	Guard string `json:"guard,omitempty" yaml:"guard,omitempty"`

	// Readers (read-write) is the share of acquires that are for reading.
	Readers float64 `json:"readers,omitempty" yaml:"readers,omitempty"`
	// Depth (reentrant) is how often a client locks before it works; it then
	// releases as often, the work done while one hold is left.
	Depth int `json:"depth,omitempty" yaml:"depth,omitempty"`
	// Batch (batch) is how many keys an acquire takes at once.
	Batch int `json:"batch,omitempty" yaml:"batch,omitempty"`
	// Connections, of a worker's pool, which its clients share; 0: every
	// client has connections of its own. For recipes that pin a connection.
	Connections int `json:"connections,omitempty" yaml:"connections,omitempty"`
}

// Fault is one fault of a scenario's schedule. Nothing in it is left to chance:
// what the seed decides has been decided when the suite was expanded.
type Fault struct {
	Kind string   `json:"kind" yaml:"kind"`                      // TARGET-ACTION, see FaultKind
	At   Duration `json:"at_ns" yaml:"at"`                       // after the measured window began; with Step or After: not before that
	For  Duration `json:"for_ns,omitempty" yaml:"for,omitempty"` // until it is healed; 0: it has no duration, see FaultKind.Instant
	// Step is a named step of the recipe, or a place of the workload (acquiring,
	// held, releasing): the fault fires while the Nth client to come there stands
	// there. The target step is that client itself.
	Step string `json:"step,omitempty" yaml:"step,omitempty"`
	Nth  int    `json:"nth,omitempty" yaml:"nth,omitempty"` // 0: the first
	// After is a share of the TTL: a fault on a holder fires when its hold is as
	// old as that.
	After float64 `json:"after,omitempty" yaml:"after,omitempty"`
	// By is how far a clock jumps (backwards if negative), how late a delayed
	// link is in each direction, how long a slow disk's fsync takes.
	By Duration `json:"by_ns,omitempty" yaml:"by,omitempty"`
	// Jitter is added to a delay: uniform from 0, by the seed.
	Jitter Duration `json:"jitter_ns,omitempty" yaml:"jitter,omitempty"`
	// Rate is what a throttled link lets through, in bytes a second.
	Rate int64 `json:"rate,omitempty" yaml:"rate,omitempty"`
}

// Expect is what a scenario is expected to answer. An empty field expects
// nothing.
type Expect struct {
	Verdict    string   `json:"verdict,omitempty" yaml:"verdict,omitempty"`       // safe, unsafe
	Promise    string   `json:"promise,omitempty" yaml:"promise,omitempty"`       // kept, broken
	Liveness   string   `json:"liveness,omitempty" yaml:"liveness,omitempty"`     // live, stuck
	Thresholds []string `json:"thresholds,omitempty" yaml:"thresholds,omitempty"` // "acquire.p99 < 20ms", "throughput > 1000/s"
}

// Dist is a distribution of times: "1ms" (constant), "uniform(1ms,3ms)",
// "exponential(2ms)" (by its mean).
type Dist struct {
	Kind string        // constant, uniform, exponential
	A, B time.Duration // constant: A; uniform: A to B; exponential: mean A
}

// Poll is the wait policy of polling recipes: uniform from Min to Max.
type Poll struct{ Min, Max time.Duration }

// Duration is a time.Duration written in YAML as Go writes it ("1.5s") and in
// JSON as integer nanoseconds.
type Duration time.Duration

// D returns d as a time.Duration.
func (d Duration) D() time.Duration { return time.Duration(d) }
