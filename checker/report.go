package checker

import "github.com/lockbench/lockbench/history"

// The three answers, each with Unknown as its third value.
const (
	Safe    = "safe"
	Unsafe  = "unsafe"
	Kept    = "kept"
	Broken  = "broken"
	Live    = "live"
	Stuck   = "stuck"
	Unknown = "unknown"
)

// Answer is one answer with its reason.
type Answer struct {
	Value string
	Why   string // a sentence
}

// Class names a kind of finding.
type Class string

// The classes. Overlap, LostUpdate, StaleWrite decide the verdict; StuckKey
// decides the liveness; the others are breaches, which decide the promise.
const (
	Overlap    Class = "overlap"     // two clients held the key at once
	LostUpdate Class = "lost-update" // the register accepted more increments than it shows
	StaleWrite Class = "stale-write" // a write with an outdated token was accepted
	StuckKey   Class = "stuck"       // free, wanted, not granted

	// DoubleHold: the lock's own answers prove that two attempts held at once.
	DoubleHold Class = "double-hold"
	// ZombieSuccess: a release or renewal succeeded although the lock had
	// passed to another, and back, since.
	ZombieSuccess Class = "zombie-success"
	// EarlyExpiry: another was granted the lock within the lease's time.
	EarlyExpiry Class = "early-expiry"
	// LostLock: the lock was gone while it was certainly the attempt's.
	LostLock Class = "lost-lock"
	// TokenRegression: a later grant's token is not greater.
	TokenRegression Class = "token-regression"
	// FalseDefinite: an acquire was told for certain that it had not got the lock,
	// and a release or renewal of its attempt was confirmed later: an unknown
	// outcome was reported as a definite one.
	FalseDefinite Class = "false-definite"
	// UnexplainedBusy: a try was refused while nobody can have held the lock.
	UnexplainedBusy Class = "unexplained-busy"
	// MissingToken: a grant without a token, of a lock that promises one.
	MissingToken Class = "missing-token"
)

// classes lists all classes, in the order of reports.
var classes = [...]Class{
	Overlap, LostUpdate, StaleWrite, DoubleHold, ZombieSuccess, EarlyExpiry, LostLock, FalseDefinite, UnexplainedBusy, TokenRegression, MissingToken, StuckKey,
}

// NoKnownCause is the cause of what no suspect explains.
const NoKnownCause = "no known cause"

// Outlived is the cause of an overlap of a holder whose lease, by its TTL, was
// over when another was granted the key.
const Outlived = "the hold lasted longer than its lease"

// Report is what a history shows. Stamps and times are nanoseconds.
type Report struct {
	Verdict  Answer // safe, unsafe, unknown
	Promise  Answer // kept, broken, unknown
	Liveness Answer // live, stuck, unknown

	Grants          int64 // acquires and tries that got the lock
	ContendedGrants int64 // of those, with another client's acquire or hold of the key open

	Overlaps int64 // pairs that certainly held at once
	// UncertainOverlaps are pairs of which the clocks' uncertainty leaves open
	// whether they held at once. They are not in Overlaps.
	UncertainOverlaps int64
	Incidents         int64 // groups of holds connected by overlaps, with a certain one among them
	OverlapNS         int64 // time during which two or more held, over these groups

	Breaches         map[Class]int64
	TokenRegressions int64
	// Undecided counts the "busy" answers of which it was not decided whether
	// they fit the lock's model; UndecidedWhy says what stopped the search.
	Undecided    int64
	UndecidedWhy string
	// Malformed counts attempts whose records contradict one another (two
	// acquires, a release without an acquire). They are left out.
	Malformed int64

	Registers []Register // those that occur in the history: plain, then fenced
	Stuck     StuckPeriod
	// UnservedWait is the same, where clients that gave up and soon asked again count
	// as wanting in between: it accuses nobody, but such a key was not live.
	UnservedWait StuckPeriod

	Causes    []Cause
	Witnesses []Witness
}

// BreachTotal is the number of breaches of all classes.
func (r Report) BreachTotal() int64 {
	var n int64
	for _, c := range r.Breaches {
		n += c
	}
	return n
}

// Register is the account of one guarded register, over all its keys.
type Register struct {
	Fenced       bool
	Accepted     int64 // writes accepted, by the register's own count
	Acknowledged int64 // writes that clients know to be accepted
	Uncertain    int64 // writes whose clients do not know
	Final        int64 // sum of the keys' last values
	LostUpdates  int64 // Accepted less Final, key by key
	StaleWrites  int64 // accepted with an outdated token
	Rejected     int64 // reads and writes refused for an outdated token
	// Known is false if the register's own account is missing for a key that
	// was written: then LostUpdates may be too small.
	Known bool
	// Contradiction tells that the register's account cannot be true.
	Contradiction string
}

// StuckPeriod is the longest time during which a key was free, by the
// clients' view, and wanted throughout.
type StuckPeriod struct {
	Key      uint32
	From, To int64
}

// Length of the period in ns.
func (s StuckPeriod) Length() int64 { return s.To - s.From }

// Cause counts what one cause explains: overlaps, lost updates and stale writes
// together, and breaches apart, since a breach mostly shows as an overlap too.
type Cause struct {
	Cause    string
	Count    int64
	Breaches int64
}

// Witness is one finding with the calls that prove it.
type Witness struct {
	Class Class
	Key   uint32
	// Calls that prove it: for a pair of holds the two grants, the earlier
	// first, then how each ended, where that is recorded; for a try that was
	// refused the try, then how the hold before it ended and the grant after
	// it, where there are such, or the holder's own grant; for a stuck key the
	// acquire that waited longest, then the one that may have left the key taken
	// and its release, where there are such.
	Calls []history.Call
	// Around has all calls of the attempts of Calls, those on the guarded
	// register included, by their invoke: enough to tell the story.
	Around []history.Call
	// From and To bound the violation: of a pair, the time both held.
	From, To int64
	// Count, of lost updates, how many.
	Count int64
	Cause string // of an overlap, lost update or stale write
}

// Length of the violation in ns.
func (w Witness) Length() int64 { return w.To - w.From }
