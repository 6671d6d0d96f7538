package history

import (
	"encoding/hex"
	"fmt"
)

// Attempt is the random owner id of one attempt to acquire. It is new for
// every acquire, and the release, renewals and clean-up of that attempt carry
// it too, so that a call whose outcome is unknown can be matched later without
// guessing by program order.
type Attempt [16]byte

// String returns the id in lower-case hexadecimal, 32 digits.
func (a Attempt) String() string {
	var digits [2 * len(a)]byte // on the stack: this is on the way of every call
	hex.Encode(digits[:], a[:])
	return string(digits[:])
}

// IsZero reports whether a is the zero id, which no attempt has.
func (a Attempt) IsZero() bool { return a == Attempt{} }

// ParseAttempt reads what String wrote.
func ParseAttempt(s string) (Attempt, error) {
	var a Attempt
	if len(s) != 2*len(a) {
		return a, fmt.Errorf("attempt %q: want %d hexadecimal digits", s, 2*len(a))
	}
	if _, err := hex.Decode(a[:], []byte(s)); err != nil {
		return a, fmt.Errorf("attempt %q: %w", s, err)
	}
	return a, nil
}

// Kind is the kind of a call.
type Kind uint8

// The kinds of calls. The numbers are part of the file format.
const (
	KindAcquire  Kind = 1 + iota // blocks until held, or until its deadline
	KindTry                      // answers held or busy at once
	KindRelease                  // of a hold
	KindCleanup                  // a release, by attempt, after an acquire that did not end in held
	KindExtend                   // renews a hold
	KindLost                     // not a call: the client observed that its hold was gone; invoke and return are that moment
	KindRead                     // of the guarded register
	KindWrite                    // to the guarded register
	KindFinal                    // by the controller, after the last client: what the register held
	KindAlso                     // not a call: the attempt's next acquire is of this key too (a batch); stamped before that acquire's invoke; Accepted
	KindEnqueued                 // not a call: the attempt has its place in the queue; stamped within its acquire; Accepted
)

var kindNames = [...]string{"", "acquire", "try", "release", "cleanup", "extend", "lost", "read", "write", "final", "also", "enqueued"}

// String returns the kind's word, as exports and reports use it.
func (k Kind) String() string {
	if k == 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// isPoint reports whether k has no duration.
func (k Kind) isPoint() bool {
	return k == KindLost || k == KindFinal || k == KindAlso || k == KindEnqueued
}

// Valid reports whether k is a kind of this format.
func (k Kind) Valid() bool { return k != 0 && int(k) < len(kindNames) }

// Outcome is what a call came to. Only what is certain has a name of its own;
// everything else is Unknown.
type Outcome uint8

// The outcomes. The numbers are part of the file format.
const (
	Open     Outcome = 0 // no return was recorded: the client was killed, or the run ended, in the middle of the call
	Held     Outcome = 1 // an acquire or try that got the lock
	Busy     Outcome = 2 // a try that the lock refused, since another holds it
	Released Outcome = 3 // a release or clean-up that freed the attempt's lock
	Extended Outcome = 4 // a renewal that the server confirmed
	Lost     Outcome = 5 // a release, clean-up or renewal whose lock was no longer (or never) the attempt's
	Failed   Outcome = 6 // certainly without effect
	Unknown  Outcome = 7 // may or may not have had its effect, now or later
	Accepted Outcome = 8 // a read or write that the guarded register carried out
	Rejected Outcome = 9 // a write (or read) that the guarded register refused for its stale token
)

var outcomeNames = [...]string{"open", "held", "busy", "released", "extended", "lost", "failed", "unknown", "accepted", "rejected"}

// String returns the outcome's word, as exports and reports use it.
func (o Outcome) String() string {
	if int(o) >= len(outcomeNames) {
		return fmt.Sprintf("outcome(%d)", uint8(o))
	}
	return outcomeNames[o]
}

// Valid reports whether o is an outcome of this format.
func (o Outcome) Valid() bool { return int(o) < len(outcomeNames) }

// Flags qualify a call.
type Flags uint8

// The flags. The numbers are part of the file format.
const (
	// FlagWarmup marks a call begun before the measured window.
	FlagWarmup Flags = 1 << iota
	// FlagFenced marks a call on the register that enforces fencing tokens;
	// without it a register call went to the plain one.
	FlagFenced
	// FlagStale marks a write that the register accepted although its token
	// was below the highest the register had seen.
	FlagStale
	// FlagLeaseTimer marks a KindLost that the client's own lease timer
	// reported, not the lock.
	FlagLeaseTimer
	// FlagDrain marks a call made after the measured window, to leave the
	// lock free.
	FlagDrain
	// FlagShared marks the calls of an attempt that takes the lock for
	// reading: readers share it, and exclude writers.
	FlagShared
	// FlagInferred marks a call whose source names no attempt: which one it
	// belongs to follows from the order of its client's calls alone.
	FlagInferred
)

// Call is one record of a history.
//
// Stamps are nanoseconds of CLOCK_MONOTONIC, the same for all processes of one
// machine. Two stamps that are equal count as concurrent.
type Call struct {
	Client  uint32 // the client's number in its scenario, from 0; Controller for the controller itself
	Seq     uint32 // from 0, the order within the client
	Kind    Kind
	Outcome Outcome
	Flags   Flags
	Key     uint32 // the key's number in its scenario, from 0
	Attempt Attempt

	Intended int64 // when the load wanted the call to start; Invoke if it had no schedule
	Invoke   int64 // before the request was sent
	Return   int64 // after the answer was there; 0 while Outcome is Open

	// Fence is the fencing token: of a grant, the one the lock gave; of a
	// read, write or final, the one presented or seen. 0 means none.
	Fence uint64
	// LeaseEnd is the stamp until which the client may trust the hold, as the
	// recipe computed it when the call returned. 0 means that it cannot say.
	LeaseEnd int64
	// Arg is, of a write, the value written; of a final, the number of writes
	// that the register accepted.
	Arg uint64
	// Value is, of a read, the value read; of a final, the last value.
	Value uint64
}

// Controller is the client number of the controller's own records.
const Controller = ^uint32(0)
