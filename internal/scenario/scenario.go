package scenario

import "time"

// Scenario is one experiment: one recipe, one topology, one workload. The blocks
// of a suite hold Scenarios too, as far as they are written there (see Settings);
// the expansion fills in the rest. suite.yaml in a run's folder lists the result.
//
// The tags of a field declare a parameter for every use of it; see field.
type Scenario struct {
	Name        string  `json:"name" yaml:"name"`   // unique in the run, fit for a folder's name
	Group       string  `json:"group" yaml:"group"` // the block of the suite it came from
	Recipe      string  `json:"recipe" yaml:"recipe"`
	Topology    string  `json:"topology" yaml:"topology"` // single, quorum...
	Environment string  `json:"environment" yaml:"environment" flag:"env" default:"process" help:"use servers of this environment: process, docker, external"`
	Workload    Load    `json:"workload" yaml:"workload" help:"what the clients do: a kind, or the keys below"`
	Clients     int     `json:"clients" yaml:"clients" range:"1..10000"`
	Workers     int     `json:"workers" yaml:"workers" flag:"workers" help:"host clients in N processes (default 2, or 1 per client a fault targets)"` // see defaultWorkers
	Repeat      int     `json:"repeat" yaml:"repeat" flag:"repeat" default:"1" help:"run everything N times; 10 to compare runs"`                      // of a block: how often; then: 1, 2, 3... of the same experiment
	Seed        uint64  `json:"seed" yaml:"seed"`                                                                                                      // derived from the suite's and the name
	Faults      []Fault `json:"faults,omitempty" yaml:"faults,omitempty"`

	// TTL defaults to the shortest that all backends serve with their production
	// settings.
	TTL Duration `json:"ttl_ns" yaml:"ttl" flag:"ttl" default:"4s" range:">0s" help:"request leases of this length"`
	// LockDelay is how long a key stays closed after its holder's session was lost, as
	// in Chubby. A release opens it at once.
	LockDelay Duration `json:"lock_delay_ns,omitempty" yaml:"lock_delay,omitempty" flag:"lock-delay" range:"0s" help:"keep the key of a holder whose session was lost closed for this long (etcd)"`
	Poll      Poll     `json:"poll" yaml:"poll" flag:"poll" default:"5ms..15ms" help:"wait this long between attempts, for recipes that poll"`
	// Warmup of takeover is half a TTL by default.
	Warmup Duration `json:"warmup_ns" yaml:"warmup" flag:"warmup" default:"1s" range:"0s" help:"apply load for this long before measuring"`
	// Duration grows by default to what the faults need.
	Duration Duration `json:"duration_ns" yaml:"duration" flag:"duration" default:"10s" range:">0s" help:"measure for this long"`
	Timeout  Duration `json:"timeout_ns" yaml:"timeout" flag:"timeout" default:"2s" range:">0s" help:"limit each request on the wire"`

	// Wire carries the faults between clients and servers: proxy, or kernel
	// (packets dropped in a network namespace of the run). By default the kernel,
	// where the machine and the fault allow it.
	Wire string `json:"wire,omitempty" yaml:"wire,omitempty" flag:"wire" choices:"proxy kernel" help:"inject network faults by proxy or kernel (default kernel if possible)"`

	// Alone: no other scenario runs at the same time, however many the suite runs
	// in parallel. For those whose speed is to be measured.
	Alone bool `json:"alone,omitempty" yaml:"alone,omitempty" help:"run no other scenario at the same time"`

	// Servers are settings that differ from the servers' production defaults,
	// by backend: {redis: {appendonly: "yes"}}.
	Servers map[string]map[string]string `json:"servers,omitempty" yaml:"servers,omitempty" help:"settings of the servers by backend, where they differ from production defaults"`

	// Expect in a block replaces the default expectations, field by field; "any"
	// expects nothing. The defaults:
	//
	//	uncontended, or one client    promise kept
	//	contended                     verdict safe, promise kept, liveness live
	//	faults                        see underFaults
	//	a control that is wrong on    verdict unsafe, promise broken
	//	purpose, contended
	//
	// Where a hold may outlast a TTL that is not renewed, "safe" is not expected by
	// default: that is the user's experiment. Nor are "safe" and "kept" of a recipe
	// that does not promise exclusion, nor, under a fault, of one whose release
	// can free another client's lock.
	Expect Expect `json:"expect" yaml:"expect" help:"what the scenarios must answer; replaces the default expectations key by key"`

	zero zeros
}

// Load is what the clients do. In a suite it may be written as its kind alone:
// "workload: hot-key".
type Load struct {
	Kind string `json:"kind" yaml:"kind" flag:"workload" help:"select what clients do (see lockbench list workloads)"`

	// Keys of uncontended is the number of clients, of takeover half of it.
	Keys         int     `json:"keys" yaml:"keys" flag:"keys" default:"1 keys=100 batch=10" range:"1..1000000" help:"use N keys"`
	Distribution string  `json:"distribution,omitempty" yaml:"distribution,omitempty" flag:"distribution" for:"keys" choices:"uniform zipf" default:"uniform" help:"draw keys from this distribution: uniform or zipf"`
	ZipfS        float64 `json:"zipf_s,omitempty" yaml:"zipf_s,omitempty" flag:"zipf" help:"set the exponent of zipf, more than 1 (default 1.1)"`
	// Hold is the time between grant and release.
	Hold Dist `json:"hold" yaml:"hold" flag:"hold" default:"1ms uncontended=0s" help:"hold for 1ms, uniform(1ms,3ms), exponential(2ms)"`
	// Think is the time between a release and the next acquire of a closed loop.
	// With less than the hold the releaser takes the lock again and starves the
	// others.
	Think   Dist   `json:"think" yaml:"think" flag:"think" help:"wait between release and next acquire (default: same as --hold)"`
	Arrival string `json:"arrival" yaml:"arrival" flag:"arrival" choices:"closed constant poisson" default:"closed" help:"start acquires closed (loop), constant or poisson"`
	// Rate and MaxInFlight belong to open loops.
	Rate        float64 `json:"rate,omitempty" yaml:"rate,omitempty" flag:"rate" help:"start N acquires per second over all clients (open loop)"`
	MaxInFlight int     `json:"max_in_flight,omitempty" yaml:"max_in_flight,omitempty" flag:"max-in-flight" help:"drop and count arrivals beyond N in flight (default 4 per client)"`
	// MaxRate spaces the acquires of a closed loop; on external servers it has a
	// default, externalRate. 0: no limit.
	MaxRate float64 `json:"max_rate,omitempty" yaml:"max_rate,omitempty" flag:"max-rate" range:"0..10000000" help:"limit acquires/s of a closed loop (default 1000 for external, else none)"`
	// AcquireLimit 0 lets an acquire wait until the end of the run. Churn draws
	// each limit uniformly from 0 to it.
	AcquireLimit Duration `json:"acquire_limit_ns,omitempty" yaml:"acquire_limit,omitempty" flag:"acquire-limit" default:"churn=20ms" range:"0s" help:"limit the wait of one acquire"`

	// WatchLease: the client stops working at its lease's end, by its own
	// timer, and counts the hold as lost from then on.
	WatchLease bool `json:"watch_lease" yaml:"watch_lease" flag:"watch-lease" help:"stop working when the lease ends, by the client's own timer"`
	// Guard selects the registers that each critical section reads and writes:
	// plain (carries tokens, enforces nothing), fenced (enforces them), or both,
	// side by side under the same faults.
	Guard string `json:"guard,omitempty" yaml:"guard,omitempty" flag:"guard" for:"guarded-counter" choices:"plain fenced both" help:"use plain, fenced or both counters (default both if fencing)"`

	Readers float64 `json:"readers,omitempty" yaml:"readers,omitempty" flag:"readers" for:"read-write" default:"0.8" range:"0..1" help:"acquire this share of locks for reading"`
	// Depth is how often a client locks before it works; it releases as often,
	// and works while one hold is left.
	Depth int `json:"depth,omitempty" yaml:"depth,omitempty" flag:"depth" for:"reentrant" default:"2" range:"2..100" help:"lock N times before working"`
	Batch int `json:"batch,omitempty" yaml:"batch,omitempty" flag:"batch" for:"batch" default:"3" range:"1..100" help:"take N keys in each acquire"`
	// Connections 0 gives every client connections of its own.
	Connections int `json:"connections,omitempty" yaml:"connections,omitempty" flag:"connections" range:"0..10000" help:"share N connections per worker (default: one or more per client)"`

	zero zeros
}

// Fault is one fault of a scenario's schedule. Nothing in it is left to chance:
// what the seed decides has been decided when the suite was expanded.
type Fault struct {
	Kind string `json:"kind" yaml:"kind" help:"TARGET-ACTION, or the action with target (see lockbench list faults)"` // TARGET-ACTION, see FaultKind
	// At is the time after the start of the measured window; with Step or After it
	// comes no earlier. The default fault of takeover comes within the first quarter
	// of a TTL.
	At Duration `json:"at_ns" yaml:"at" flag:"fault-at" default:"1s" help:"inject them this long after the measured window starts"`
	// For is how long it lasts. Default: two leases and 2s, and for holder-pause no
	// less, because a shorter pause proves nothing; 3s for a killed server. Instant
	// faults have none, see FaultKind.Instant.
	For Duration `json:"for_ns,omitempty" yaml:"for,omitempty" flag:"fault-for" help:"heal them after this time (default 2 TTL + 2s; killed servers 3s)"`
	// Step is a named step of the recipe, as lockbench list recipes shows them, or a
	// place of the workload (acquiring, held, releasing): the fault fires while the
	// Nth client to come there stands there. The target step is that client itself.
	Step string `json:"step,omitempty" yaml:"step,omitempty" flag:"step" help:"inject while a client is at this step of its recipe, or acquiring, held..."`
	Nth  int    `json:"nth,omitempty" yaml:"nth,omitempty" help:"with step: which client, by order of arrival (default 1)"` // 0: the first
	// After is a share of the TTL: a fault on a holder fires when its hold is as
	// old as that.
	After float64 `json:"after,omitempty" yaml:"after,omitempty" help:"inject it when the hold is as old as this share of the TTL"`
	// By is how far a clock jumps (backwards if negative), how late a delayed
	// link is in each direction, how long a slow disk's fsync takes. Its default is
	// the action's, and so is that of Rate.
	By Duration `json:"by_ns,omitempty" yaml:"by,omitempty" flag:"by" signed:"true" help:"shift clocks (default TTL + 1s), delay links (50ms) or fsync (500ms)"`
	// Jitter is added to a delay: uniform from 0, by the seed.
	Jitter Duration `json:"jitter_ns,omitempty" yaml:"jitter,omitempty" help:"add up to this to a delay"`
	// Rate is what a throttled link lets through, in bytes a second.
	Rate int64 `json:"rate,omitempty" yaml:"rate,omitempty" help:"bytes per second of a throttled link"`

	zero zeros
}

// Expect is what a scenario is expected to answer. An empty field expects
// nothing.
type Expect struct {
	Verdict  string `json:"verdict,omitempty" yaml:"verdict,omitempty" choices:"safe unsafe any" help:"one holder at a time"`
	Promise  string `json:"promise,omitempty" yaml:"promise,omitempty" choices:"kept broken any" help:"the lock's guarantee"`
	Liveness string `json:"liveness,omitempty" yaml:"liveness,omitempty" choices:"live stuck any" help:"waiting clients are granted the lock"`
	// Thresholds are such as "acquire.p99 < 20ms" and "throughput > 1000/s".
	Thresholds []string `json:"thresholds,omitempty" yaml:"thresholds,omitempty" help:"limits such as 'acquire.p99 < 20ms'"`
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
