package scenario

import "time"

// SchemaVersion is that of Document; it grows when a field changes its
// meaning. result.schema.json describes the current one.
const SchemaVersion = 1

// Document is result.json: everything that a run measured. Each number can
// be derived again from the other files of the run's folder.
type Document struct {
	Schema    int       `json:"schema"`
	Lockbench string    `json:"lockbench"` // version
	Suite     string    `json:"suite"`
	Seed      uint64    `json:"seed"`
	Started   time.Time `json:"started"`
	Finished  time.Time `json:"finished"`
	// Interrupted: the run was stopped before its end.
	Interrupted bool     `json:"interrupted,omitempty"`
	Host        Host     `json:"host"`
	DiskBytes   int64    `json:"disk_bytes"` // of the run's folder
	Scenarios   []Result `json:"scenarios"`
	Warnings    []string `json:"warnings"`
	// NotTried are the faults that the suite has for a recipe and that a time budget
	// left out.
	NotTried []NotTried `json:"not_tried,omitempty"`
}

// NotTried are faults that a run left out.
type NotTried struct {
	Recipe   string   `json:"recipe"`
	Topology string   `json:"topology"`
	Faults   []string `json:"faults"`
}

// Host is the machine that a run ran on.
type Host struct {
	OS        string `json:"os"`
	Arch      string `json:"arch"`
	Kernel    string `json:"kernel"`
	CPUs      int    `json:"cpus"`
	CPUModel  string `json:"cpu_model"`
	MemoryB   int64  `json:"memory_bytes"`
	GoVersion string `json:"go_version"`
	Root      bool   `json:"root"`
}

// Status is how far a scenario came.
type Status string

// The statuses of a scenario.
const (
	StatusDone        Status = "done"
	StatusMissing     Status = "missing"     // the backend is not available here; Reason says how to get it
	StatusFailed      Status = "failed"      // an error of lockbench or of a server; Reason
	StatusInterrupted Status = "interrupted" // stopped by the user, or not started because of that
)

// Result has the figures of one scenario. A nil pointer was not measured;
// Unmeasured has the reason, by the field's JSON name.
type Result struct {
	Name        string            `json:"name"`
	Group       string            `json:"group"`
	Repeat      int               `json:"repeat"`
	Recipe      string            `json:"recipe"`
	Backend     string            `json:"backend"`
	Topology    string            `json:"topology"`
	Environment string            `json:"environment"`
	Status      Status            `json:"status"`
	Reason      string            `json:"reason,omitempty"`
	Server      string            `json:"server"`         // "MariaDB", "redis": the product that ran
	Version     string            `json:"server_version"` // as the server reports it
	Durability  string            `json:"durability"`     // one line, from the settings read back
	Settings    map[string]string `json:"settings,omitempty"`
	Workload    Load              `json:"workload"`
	Seed        uint64            `json:"seed"`
	TTL         Duration          `json:"ttl_ns"`
	LockDelay   Duration          `json:"lock_delay_ns,omitempty"`
	TTLApplies  bool              `json:"ttl_applies"` // false where the recipe's bound is a connection, or none
	Bound       string            `json:"bound"`
	WaitPolicy  string            `json:"wait_policy"` // "poll 5ms..15ms", or "woken by the server"
	Faults      []FaultResult     `json:"faults"`
	Workers     int               `json:"workers"`
	Clients     int               `json:"clients"`
	DurationNS  int64             `json:"duration_ns"`        // of the measured window
	WindowAt    time.Time         `json:"window_at,omitzero"` // its start by the wall clock

	Acquired           int64    `json:"acquired"` // grants of acquires that began after the warm-up, returned within the window
	Failed             int64    `json:"failed"`   // acquires that ended without the lock, definitely; includes Busy
	Busy               int64    `json:"busy"`     // tries that returned busy
	Unknown            int64    `json:"unknown"`  // calls whose outcome stayed unknown
	Settled            int64    `json:"settled"`  // acquires of unknown outcome that a clean-up confirmed as not held
	Throughput         *float64 `json:"throughput_per_s"`
	TriesPerSecond     *float64 `json:"tries_per_s"` // tries answered, held or busy
	PerSecond          []int64  `json:"acquired_per_second"`
	Acquire            *Latency `json:"acquire_ns"`  // service time: from the invoke to the grant
	Response           *Latency `json:"response_ns"` // from the intended start to the grant
	Release            *Latency `json:"release_ns"`
	Handoff            *Latency `json:"handoff_ns"` // release sent to the next grant, where the holder changed
	HoldNS             *Latency `json:"hold_ns"`
	FairnessJain       *float64 `json:"fairness_jain"`
	PerClientMin       *int64   `json:"acquired_per_client_min"`
	PerClientMax       *int64   `json:"acquired_per_client_max"`
	RequestsPerAcquire *float64 `json:"requests_per_acquire"`
	// RenewalsPerAcquire are the requests that renewed leases. RequestsPerAcquire
	// includes those of a lease (bound ttl), not those of a session.
	RenewalsPerAcquire *float64 `json:"renewals_per_acquire,omitempty"`
	// RequestsPerSecond counts both, whether or not a client acquired a lock meanwhile.
	RequestsPerSecond *float64  `json:"requests_per_s,omitempty"`
	ClientCPU         *float64  `json:"client_cpu_s_per_1000"` // CPU seconds of the workers per 1000 acquires
	ServerCPU         *float64  `json:"server_cpu_s_per_1000"`
	UnavailableNS     *int64    `json:"unavailable_ns"` // longest time without any grant while a client waited for one
	RecoveryNS        *int64    `json:"recovery_ns"`    // from a fault's heal to the next grant, the longest
	Arrivals          *Arrivals `json:"arrivals"`       // open loop only
	// WokenPerRelease is how many waiting clients the server woke, for each
	// release: 1 is what a queue needs, more is a herd. Null: the recipe polls.
	WokenPerRelease *float64 `json:"woken_per_release"`
	// OrderInversions counts grants that overtook a client which had its place
	// in the queue for longer. Null: the recipe has no queue that shows.
	OrderInversions *int64         `json:"order_inversions"`
	Takeover        *TakeoverTimes `json:"takeover"` // null: no holder was killed
	// Leased has the holds whose end was compared with that of their lease; absent,
	// with a reason in Unmeasured, if no hold had a lease whose end its client knew.
	Leased *LeasedHolds `json:"leased,omitempty"`

	// CodeLines is the size of the recipe's code. Null: it is not one of ours.
	CodeLines *CodeLines `json:"code_lines"`

	// Properties is what conformance measured; empty for a scenario with a
	// load.
	Properties []Property `json:"properties,omitempty"`

	Safety     Safety   `json:"safety"`
	Expect     Expect   `json:"expect"`
	AsExpected *bool    `json:"as_expected"`         // null: unknown where an answer was expected
	Surprises  []string `json:"surprises,omitempty"` // each expectation that was not met, or not decided, in words
	// KnownFailure is why the user accepts that AsExpected is not true; "" if the
	// failure is not accepted.
	KnownFailure string            `json:"known_failure,omitempty"`
	Unmeasured   map[string]string `json:"unmeasured,omitempty"`
	Warnings     []string          `json:"warnings"`
}

// Latency summarises a histogram, in nanoseconds.
type Latency struct {
	P50   int64   `json:"p50"`
	P90   int64   `json:"p90"`
	P95   int64   `json:"p95"`
	P99   int64   `json:"p99"`
	P999  int64   `json:"p999"`
	Max   int64   `json:"max"`
	Mean  float64 `json:"mean"`
	Count int64   `json:"count"`
}

// LeasedHolds counts the holds with a lease that ended within the window.
type LeasedHolds struct {
	Holds    int64 `json:"holds"`
	Outlived int64 `json:"outlived"` // that ended after their lease
	// WorstNS is by how much the worst of them outlived its lease.
	WorstNS int64 `json:"worst_ns"`
}

// CodeLines counts lines of code, without comments, blank lines and tests.
type CodeLines struct {
	Recipe int64 `json:"recipe"` // of the recipe's own file
	Shared int64 `json:"shared"` // of the files of its backend's package that belong to no recipe
}

// TakeoverTimes is what happened to the holds of killed clients.
type TakeoverTimes struct {
	Holds   int64 `json:"holds"`    // holds whose client was killed
	Granted int64 `json:"granted"`  // of those, keys that another client got before the end
	BoundNS int64 `json:"bound_ns"` // the takeover bound that the recipe declares; 0: none
	// FromDeath is the time from the death to the next grant of the key.
	FromDeath *Latency `json:"from_death_ns"`
	// Lifetime is the real lease: the time from when the last confirmed
	// acquire or renewal of the dead client was sent to the next grant.
	Lifetime *Latency `json:"lifetime_ns"`
	// UnansweredNS is the longest time that a dead client's key stayed taken
	// at the end of the run, counted from the death; 0 if all were granted.
	UnansweredNS int64 `json:"unanswered_ns"`
	// Each is what the two distributions summarise, in the order of the deaths.
	Each []OneTakeover `json:"each,omitempty"`
}

// OneTakeover is one hold of a killed client that another client succeeded.
type OneTakeover struct {
	Key         uint32 `json:"key"`
	FromDeathNS int64  `json:"from_death_ns"`
	LifetimeNS  int64  `json:"lifetime_ns"`
}

// The answers to whether a recipe has a property.
const (
	Yes           = "yes"
	No            = "no"
	NotApplicable = "n/a"
	// Beside them Undecided, of a measured property: no answer could be had.
)

// Property is one property of a recipe, promised and measured.
type Property struct {
	Property string `json:"property"`
	Claim    string `json:"claim,omitempty"` // "prop-exclusive"
	Promised string `json:"promised"`        // yes, no
	Measured string `json:"measured"`        // yes, no, n/a, unknown
	// Evidence is what was seen, in a sentence.
	Evidence string `json:"evidence"`
}

// AsPromised reports whether what was measured is what was promised. What is
// not applicable is as promised if it was not; what is unknown never is.
func (p Property) AsPromised() bool {
	return p.Measured == p.Promised || p.Measured == NotApplicable && p.Promised == No
}

// Arrivals is the book of an open loop: Arrived = Completed + Dropped +
// InFlight, exactly.
type Arrivals struct {
	Arrived   int64 `json:"arrived"`
	Completed int64 `json:"completed"`
	Dropped   int64 `json:"dropped"`
	InFlight  int64 `json:"in_flight"` // when the window closed
	// PacerLateNS is the 99th percentile of how late the load generator
	// itself was.
	PacerLateNS int64 `json:"pacer_late_p99_ns"`
}

// The three answers, each with "unknown" as its third value.
const (
	Safe      = "safe"
	Unsafe    = "unsafe"
	Kept      = "kept"
	Broken    = "broken"
	Live      = "live"
	Stuck     = "stuck"
	Undecided = "unknown"
)

// Safety is what the checker answered.
type Safety struct {
	Verdict  string `json:"verdict"`
	Promise  string `json:"promise"`
	Liveness string `json:"liveness"`
	// Why gives the reason of each answer in a sentence, by answer, and how orphans
	// were looked for.
	Why map[string]string `json:"why"`

	Overlaps         int64      `json:"overlaps"` // pairs
	OverlapIncidents int64      `json:"overlap_incidents"`
	OverlapNS        int64      `json:"overlap_ns"` // time during which two or more held, summed
	Breaches         int64      `json:"breaches"`
	TokenRegressions *int64     `json:"token_regressions"` // null: the recipe has no tokens
	LostUpdates      *int64     `json:"lost_updates"`      // null: no guarded resource; of all registers
	StaleWrites      *int64     `json:"stale_writes"`
	Registers        []Register `json:"registers,omitempty"`
	ContendedGrants  int64      `json:"contended_grants"`
	LongestStuckNS   int64      `json:"longest_stuck_ns"`
	// LossSignals is null if the recipe sends no signals, or no client lost a lock.
	LossSignals *LossSignals `json:"loss_signals"`
	// Orphans are the keys that no client held after the load and that the orphan
	// probe did not get within the takeover bound, or of which a server still had an
	// entry of an attempt that was over; null: the probe did not run, or found none
	// where it did not look at every key.
	Orphans         *int64 `json:"orphans"`
	TakeoverBoundNS int64  `json:"takeover_bound_ns"`

	Causes    []Cause   `json:"causes"`
	Witnesses []Witness `json:"witnesses,omitempty"` // the first few of each class
	Damage    []string  `json:"history_damage,omitempty"`
}

// LossSignals counts the holds that were lost, by whether their clients learned
// it from the lock.
type LossSignals struct {
	InTime int64 `json:"in_time"` // before another was granted the key
	Late   int64 `json:"late"`    // after that
	// Missing: never, though another was granted the key while they held it.
	Missing     int64 `json:"missing"`
	WorstLateNS int64 `json:"worst_late_ns"` // after the other's grant
}

// Register is the account of one guarded register, over all its keys.
type Register struct {
	Name         string `json:"name"` // plain, fenced
	Acknowledged int64  `json:"acknowledged"`
	Final        int64  `json:"final"`
	LostUpdates  int64  `json:"lost_updates"`
	StaleWrites  *int64 `json:"stale_writes"` // accepted; null without tokens
	Rejected     int64  `json:"rejected"`     // refused for a stale token
}

// Cause attributes violations to what made them.
type Cause struct {
	Cause    string `json:"cause"`              // "lease outlived by a paused holder", "no known cause"
	Count    int64  `json:"count"`              // overlaps, lost updates, stale writes
	Breaches int64  `json:"breaches,omitempty"` // of the promise
}

// Witness is one violation: the two or three calls that prove it.
type Witness struct {
	Class    string        `json:"class"` // overlap, double-hold, early-expiry, token-regression, lost-update, stale-write, stuck...
	Key      uint32        `json:"key"`
	KeyName  string        `json:"key_name,omitempty"` // where the history names its keys
	Sentence string        `json:"sentence"`           // what happened, for a person
	LengthNS int64         `json:"length_ns,omitempty"`
	Cause    string        `json:"cause,omitempty"`
	Faults   []string      `json:"faults,omitempty"` // ids of those that were in force for its clients, or for servers
	Calls    []WitnessCall `json:"calls"`
	// Around has what else the nearest attempts on its key did, in the two seconds
	// before and after: of the first witness of each class.
	Around []WitnessCall `json:"around,omitempty"`
}

// WitnessCall is one call of a witness; stamps are relative to the scenario's
// measured window.
type WitnessCall struct {
	Client   uint32 `json:"client"`
	Name     string `json:"client_name,omitempty"` // where the history names its clients
	Seq      uint32 `json:"seq"`
	Line     int    `json:"line,omitempty"` // of the log that has the call, if that is JSON lines
	Kind     string `json:"kind"`
	Outcome  string `json:"outcome"`
	Attempt  string `json:"attempt"`
	Fence    uint64 `json:"fence,omitempty"`
	InvokeNS int64  `json:"invoke_ns"`
	ReturnNS int64  `json:"return_ns,omitempty"`
	// LeaseEndNS is until when the client may trust the hold; 0: the recipe does not
	// know.
	LeaseEndNS int64 `json:"lease_end_ns,omitempty"`
}

// Asks reports whether the call asks for the lock.
func (c WitnessCall) Asks() bool { return c.Kind == "acquire" || c.Kind == "try" }

// Granted reports whether the call was granted the lock.
func (c WitnessCall) Granted() bool { return c.Asks() && c.Outcome == "held" }

// Ends reports whether a hold ends with the call at the latest.
func (c WitnessCall) Ends() bool {
	return c.Kind == "release" || c.Kind == "cleanup" || c.Kind == "lost"
}

// FaultResult is one fault as it came out.
type FaultResult struct {
	ID           string `json:"id"`
	Kind         string `json:"kind"`
	Step         string `json:"step,omitempty"` // of a fault at a named step
	Status       string `json:"status"`         // effective, missed
	Reason       string `json:"reason,omitempty"`
	Target       string `json:"target,omitempty"`    // "client 3 (pid 4711)", "redis-1 (leader)"
	Mechanism    string `json:"mechanism,omitempty"` // "SIGSTOP"
	Effect       string `json:"effect,omitempty"`    // of the wire: "held back 312 bytes and 2 new connections"
	ArmedNS      int64  `json:"armed_ns"`            // relative to the measured window, as the rest
	InjectedNS   int64  `json:"injected_ns,omitempty"`
	HealedNS     int64  `json:"healed_ns,omitempty"`
	FirstGrantNS int64  `json:"first_grant_ns,omitempty"` // the first grant of the key after the heal
	// OthersGrantedNS is the first grant of the key to another client during the
	// fault; 0: none got it, they waited.
	OthersGrantedNS int64 `json:"others_granted_ns,omitempty"`
	// LongestWaitNS is the longest that a client waited for the key, of those
	// whose wait touched the fault.
	LongestWaitNS int64 `json:"longest_wait_ns,omitempty"`
	// RecoveryNS is from the fault's end (of one without: from its injection) to
	// the first grant of a key that it touched; 0: there was none. OutageNS is the
	// longest time without a grant of such a key, from the injection on, until the
	// first grant after the fault's end.
	RecoveryNS int64 `json:"recovery_ns,omitempty"`
	OutageNS   int64 `json:"outage_ns,omitempty"`
}
