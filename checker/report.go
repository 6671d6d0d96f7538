package checker

import (
	"fmt"
	"time"

	"github.com/lockbench/lockbench/history"
)

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

// The classes. Overlap, LostUpdate and StaleWrite decide the verdict; StuckKey,
// SlowHandoff and ShutOut decide the liveness; the others are breaches of the guarantee.
const (
	Overlap    Class = "overlap"     // two clients held the key at once
	LostUpdate Class = "lost-update" // the register accepted more increments than its value shows
	StaleWrite Class = "stale-write" // a write with an outdated token was accepted
	StuckKey   Class = "stuck"       // free and wanted, but not granted
	// SlowHandoff: the same, after a confirmed release.
	SlowHandoff Class = "slow-handoff"
	ShutOut     Class = "shut-out" // granted to others, and to one client no more

	// DoubleHold: the lock's own answers prove that two attempts held at once.
	DoubleHold Class = "double-hold"
	// ZombieSuccess: a release or renewal succeeded although the lock had passed
	// to another attempt and back.
	ZombieSuccess Class = "zombie-success"
	// EarlyExpiry: another attempt was granted the lock within the lease's TTL.
	EarlyExpiry Class = "early-expiry"
	// LostLock: the lock was gone while it certainly belonged to the attempt.
	LostLock Class = "lost-lock"
	// TokenRegression: a later grant's token is not greater.
	TokenRegression Class = "token-regression"
	// FalseDefinite: an acquire returned failed or busy, and later a release or
	// renewal of its attempt was confirmed: an unknown outcome was reported as a
	// definite one.
	FalseDefinite Class = "false-definite"
	// UnexplainedBusy: a try returned busy while no client can have held the lock.
	UnexplainedBusy Class = "unexplained-busy"
	// LateGrant: an acquire returned held after its own lease had ended.
	LateGrant Class = "late-grant"
	// LateAnswer: an acquire returned long after the limit that its client had set.
	LateAnswer Class = "late-answer"
	// MissingToken: a grant without a token, of a lock with fencing.
	MissingToken Class = "missing-token"
)

// classes lists all classes, in the order of reports.
var classes = [...]Class{
	Overlap, LostUpdate, StaleWrite, DoubleHold, ZombieSuccess, EarlyExpiry, LostLock, FalseDefinite, UnexplainedBusy, TokenRegression, MissingToken, LateGrant, LateAnswer, StuckKey, SlowHandoff, ShutOut,
}

// NoKnownCause is the cause of a violation that no suspect explains.
const NoKnownCause = "no known cause"

// Outlived is the cause of an overlap whose holder's lease, by its TTL, had ended
// when the other client was granted the key.
const Outlived = "the hold lasted longer than its lease"

// Report is the result of judging a history. Stamps and times are nanoseconds.
type Report struct {
	Verdict  Answer // safe, unsafe, unknown
	Promise  Answer // kept, broken, unknown
	Liveness Answer // live, stuck, unknown

	Grants          int64 // acquires and tries that got the lock
	ContendedGrants int64 // those during which another client wanted or held the key

	Overlaps int64 // pairs that certainly held at once
	// UncertainOverlaps are pairs that may have held at once, within the clocks'
	// uncertainty. They are not in Overlaps.
	UncertainOverlaps int64
	Incidents         int64 // groups of holds connected by overlaps, at least one of them certain
	OverlapNS         int64 // time during which two or more clients held, over these groups

	Breaches         map[Class]int64
	TokenRegressions int64
	// Undecided counts the busy answers for which it was not decided whether they
	// fit the lock's model; UndecidedWhy is what stopped the search.
	Undecided    int64
	UndecidedWhy string
	// Malformed counts attempts whose records contradict one another (two acquires,
	// a release without an acquire). They are left out.
	Malformed int64
	// Disordered is a client whose calls of a key, which name no attempts, contradict
	// one another; nil without such a client.
	Disordered *Disorder
	// Unended counts the holds without an end in the record that another client's
	// grant followed.
	Unended int64
	// NoToken counts the grants without a fencing token, if the lock has them.
	NoToken int64

	Registers []Register // those in the history: unfenced, then fenced
	Stuck     StuckPeriod
	// Handoff is the longest such period after a confirmed release, if there is a bound.
	Handoff StuckPeriod
	// UnservedWait is the longest such period if a client that gave up counts as
	// waiting until it asks again. It makes no key stuck, but rules out live.
	UnservedWait StuckPeriod
	// EndlessHold is the longest such period if a hold without an end in the record
	// was over at once. It makes no key stuck either.
	EndlessHold StuckPeriod
	// ShutOut is the longest time in which one client asked for a key without success while
	// others were granted it.
	ShutOut ShutOutPeriod

	Causes    []Cause
	Witnesses []Witness
}

// Disorder is where the calls of a client contradict one another.
type Disorder struct{ Key, Client uint32 }

// BreachTotal is the number of breaches of all classes.
func (r Report) BreachTotal() int64 {
	var n int64
	for _, c := range r.Breaches {
		n += c
	}
	return n
}

// Register is the counts of one guarded register, over all its keys.
type Register struct {
	Fenced       bool
	Accepted     int64 // writes accepted, by the register's own count
	Acknowledged int64 // writes that clients know to be accepted
	Uncertain    int64 // writes of unknown outcome
	Final        int64 // sum of the keys' last values
	LostUpdates  int64 // Accepted less Final, key by key
	StaleWrites  int64 // accepted with an outdated token
	Rejected     int64 // reads and writes refused for an outdated token
	// Known is false if the register's own count is missing for a written key:
	// then LostUpdates may be too small.
	Known bool
	// Contradiction is why the register's counts cannot be true.
	Contradiction string
}

// StuckPeriod is the longest time during which a key was free, in the clients'
// view, and wanted throughout.
type StuckPeriod struct {
	Key        uint32
	From, To   int64
	Exceptions int64 // ns of it that faults on servers permit
}

// Length of the period in ns, less the liveness exceptions.
func (s StuckPeriod) Length() int64 { return s.To - s.From - s.Exceptions }

// String names the length, and the liveness exceptions in it.
func (s StuckPeriod) String() string {
	if s.Exceptions == 0 {
		return time.Duration(s.Length()).String()
	}
	return fmt.Sprintf("%v, %v of it a liveness exception for faults", time.Duration(s.To-s.From), time.Duration(s.Exceptions))
}

// Cause counts the violations with one cause: overlaps, lost updates and stale
// writes together, and breaches apart, since most breaches are also overlaps.
type Cause struct {
	Cause    string
	Count    int64
	Breaches int64
}

// Witness is one violation with the calls that prove it.
type Witness struct {
	Class Class
	Key   uint32
	// Calls that prove it. For a pair of holds: the two grants, the earlier first,
	// then how each ended, if recorded. For a busy try: the try, then how the hold
	// before it ended and the grant after it, if any, or the holder's own grant.
	// For a stuck key: the acquire that waited longest, then the attempt that may
	// have left the key taken and its release, if any.
	Calls []history.Call
	// Around has all calls of the attempts of Calls, register calls included, by
	// their invoke.
	Around []history.Call
	// From and To bound the violation: for a pair, the time both held.
	From, To int64
	// Count is the number of lost updates, or of failed acquires of a client that was
	// shut out, or the ns of a stuck key that are liveness exceptions.
	Count int64
	Cause string // of an overlap, lost update, stale write or breach
}

// Length of the violation in ns.
func (w Witness) Length() int64 { return w.To - w.From }
