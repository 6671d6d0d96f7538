package scenario

// File is a suite as a person writes it: blocks of settings whose lists
// expand to scenarios. Programs may build one as well (from flags); ParseFile
// reads one from YAML. A File is a value: methods do not change it.
type File struct {
	Name        string `yaml:"name"` // fit for a folder's name
	Description string `yaml:"description"`
	// Seed decides all random choices of the run. 0 means 1.
	Seed uint64 `yaml:"seed"`
	// Parallel is how many scenarios may run side by side, those on different
	// servers only; 0 means 1. What is measured of speed then means little.
	Parallel int `yaml:"parallel"`
	// Defaults hold where a block says nothing.
	Defaults Settings `yaml:"defaults"`
	// Scenarios are the blocks, run in this order.
	Scenarios []Block `yaml:"scenarios"`

	source string              // the file's name, for messages
	places map[string]position // where each value stood in it
	over   map[string]bool     // settings that With put over it
}

// Block is an experiment on every combination of its recipes, topologies and
// clients, each repeated. Repeats are interleaved: every combination runs
// once before any runs a second time, so that a slow minute of the machine
// hits all alike.
type Block struct {
	Name        string `yaml:"name"` // unique in the suite; it becomes Scenario.Group
	Description string `yaml:"description"`
	// Tells ranks the block among the others of the suite: 1 tells most, and is
	// the last to be left out of a budget. 0: it has no rank, and is left out
	// first.
	Tells    int `yaml:"tells"`
	Settings `yaml:",inline"`
}

// Settings are those of a block. A field that is nil (or empty) was not said,
// and comes from the file's defaults, else from the default given here. In
// YAML a list may be written as its only element.
type Settings struct {
	Recipes []string `yaml:"recipes"` // required
	// Clients lists numbers of clients; default 16.
	Clients []int `yaml:"clients"`
	// Repeat is how often everything is run; default 1.
	Repeat *int `yaml:"repeat"`
	// Topology lists topologies; default single.
	Topology []string `yaml:"topology"`
	// Environment is where servers run; default process.
	Environment string `yaml:"environment"`
	// Workers is the number of processes that host the clients. Default: one
	// for each client if a fault aims at a client or lies on the wire, else 2 (1
	// for one client).
	// Takeover has 2 by default: one holds, the other waits.
	Workers *int `yaml:"workers"`

	Workload *Workload `yaml:"workload"`

	// Faults is the schedule; default none, but for takeover, which has one
	// holder-kill. An empty list (not nil) stands for none.
	Faults []FaultSpec `yaml:"faults"`

	// TTL is the lease that clients ask for; default 4s, the shortest that
	// all backends serve with their production defaults.
	TTL *Duration `yaml:"ttl"`
	// Poll is the wait policy of polling recipes; default 5ms..15ms.
	Poll *Poll `yaml:"poll"`
	// Warmup comes before the measured window; default 1s, of takeover half a
	// TTL.
	Warmup *Duration `yaml:"warmup"`
	// Duration is that of the measured window; default 10s, or what the
	// faults need if that is more.
	Duration *Duration `yaml:"duration"`
	// Timeout limits one request on the wire; default 2s.
	Timeout *Duration `yaml:"timeout"`

	// Wire is what carries the faults between clients and servers: dialer or
	// kernel; default kernel where the machine has it.
	Wire string `yaml:"wire"`

	// Servers are settings that differ from the servers' production defaults,
	// by backend; default none.
	Servers map[string]map[string]string `yaml:"servers"`

	// Expect replaces the default expectations, field by field; "any" expects
	// nothing. The defaults:
	//
	//	uncontended, or one client    promise kept
	//	contended                     verdict safe, promise kept, liveness live
	//	holder-pause                  the same, but verdict unsafe for leased
	//	                              recipes
	//	holder-cut, -cut-out, -stall  the same, but verdict unsafe where a hold is
	//	                              longer than its lease and nobody tells
	//	other faults on clients       as contended, less what depends on chance,
	//	                              or on a hold that nothing ends
	//	faults at a step              nothing; of reply-lost promise kept
	//	faults on servers             nothing where they may lose a lock; else as
	//	                              contended, and liveness only where the
	//	                              other servers go on
	//	a control wrong on purpose,   verdict unsafe, promise broken
	//	contended
	//
	// Where a hold may outlast a TTL that nobody renews, safe is not expected
	// by default, for that is the user's experiment; nor are safe and kept of a
	// recipe that does not promise to exclude, nor, under a fault, of one that
	// frees what another holds.
	Expect *Expect `yaml:"expect"`
	// ExpectFor does the same for single recipes, over Expect.
	ExpectFor map[string]Expect `yaml:"expect_for"`
}

// Workload is a Load as it is written; nil and empty fields get the defaults
// given here. In YAML it may be the kind alone: "workload: hot-key".
type Workload struct {
	Kind string `yaml:"kind"` // required
	// Keys is the number of keys. Default: 100 for keys, 10 for batch, else 1;
	// of uncontended it is always the number of clients, of takeover half of
	// it.
	Keys *int `yaml:"keys"`
	// Distribution of the keys (keys only); default uniform.
	Distribution string `yaml:"distribution"`
	// ZipfS is the exponent of zipf, more than 1; default 1.1.
	ZipfS *float64 `yaml:"zipf_s"`
	// Hold is the time between grant and release; default 1ms, uncontended 0s.
	Hold *Dist `yaml:"hold"`
	// Think is the time between a release and the next acquire of a closed
	// loop. Default: the hold, for with less the releaser takes the lock again
	// and starves the rest.
	Think *Dist `yaml:"think"`
	// Arrival is closed, constant or poisson; default closed.
	Arrival string `yaml:"arrival"`
	// Rate is arrivals a second, all clients together; required by an open
	// loop, and by that only.
	Rate *float64 `yaml:"rate"`
	// MaxInFlight (open loop): arrivals beyond it are dropped and counted;
	// default 4 for each client.
	MaxInFlight *int `yaml:"max_in_flight"`
	// AcquireLimit is how long one acquire may wait; default 0s: until the
	// end of the run. Of churn, which draws each limit evenly from 0 to it, the
	// default is 20ms.
	AcquireLimit *Duration `yaml:"acquire_limit"`
	// WatchLease: the client stops at its lease's end; default false.
	WatchLease *bool `yaml:"watch_lease"`
	// Guard (guarded-counter): plain, fenced or both; default both if the
	// recipe has fencing tokens, else plain.
	Guard string `yaml:"guard"`
	// Readers (read-write) is the share of acquires that are for reading, 0 to
	// 1; default 0.8.
	Readers *float64 `yaml:"readers"`
	// Depth (reentrant) is how often a client locks before it works; default 2.
	Depth *int `yaml:"depth"`
	// Batch (batch) is how many keys an acquire takes at once; default 3.
	Batch *int `yaml:"batch"`
	// Connections is the size of a pool that the clients of each worker
	// process share; default 0: every client has connections of its own.
	Connections *int `yaml:"connections"`
}

// FaultSpec is a Fault as it is written. In YAML it may be the kind alone.
type FaultSpec struct {
	// Kind is required: TARGET-ACTION, or the action alone, with Target.
	Kind   string `yaml:"kind"`
	Target string `yaml:"target"`
	// At is when, after the measured window began; default 1s. The fault that
	// takeover brings with it comes within the first quarter of a TTL.
	At *Duration `yaml:"at"`
	// Within moves it by a time from 0 to Within that the seed decides.
	Within *Duration `yaml:"within"`
	// Every repeats it so often until the window has no more room, Count times
	// at most; by default it comes once.
	Every *Duration `yaml:"every"`
	Count *int      `yaml:"count"`
	// For is how long it lasts. Default: two leases and 2s, and for holder-pause
	// no less, for a shorter one proves nothing; 3s for a server that is killed.
	// What happens at once has none, see FaultKind.Instant.
	For *Duration `yaml:"for"`
	// Step is a named step, as lockbench list recipes shows them, or acquiring,
	// held, releasing; required of the target step. Nth is the how-manieth client
	// to come there.
	Step string `yaml:"step"`
	Nth  *int   `yaml:"nth"`
	// After is a share of the TTL, counted from a grant.
	After *float64 `yaml:"after"`
	// By, Jitter and Rate are those of Fault. By may be negative for a clock;
	// default a TTL and 1s for a clock, 50ms for a delay, 500ms for a slow disk.
	// Rate is 10000 by default.
	By     *Duration `yaml:"by"`
	Jitter *Duration `yaml:"jitter"`
	Rate   *int64    `yaml:"rate"`
}
