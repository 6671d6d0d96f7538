package conformance

import (
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// The suite and its client processes talk in JSON, one value per line: first
// the settings, which the process answers with a greeting, then orders, each
// of which is answered once, in whatever order they are done.

// envClient, set to anything, makes a process one of clients.
const envClient = "LOCKBENCH_CONFORMANCE"

// greeting is the first line that a client process writes.
const greeting = "lockbench-conformance-1"

// settings is the first line that a client process reads: how to open clients.
type settings struct {
	Recipe    string
	Addresses []string
	Topology  string   `json:",omitempty"`
	Directory []string `json:",omitempty"`
	Account   impls.Account
	TTL       time.Duration
	Timeout   time.Duration
}

// hello answers the settings.
type hello struct {
	Greeting string
	Error    string `json:",omitempty"`
	// Unsure is by how much the process's stamps may be off, in nanoseconds.
	Unsure int64
}

// verb is what an order asks for. The first ones are calls of a client, which
// does them one after another; the others are done at once, beside them.
type verb string

const (
	doOpen        verb = "open"
	doAcquire     verb = "acquire"
	doTry         verb = "try"
	doAcquireRead verb = "acquire-read"
	doTryRead     verb = "try-read"
	doAcquireAll  verb = "acquire-all"
	doTryAll      verb = "try-all"
	doRelease     verb = "release"
	doExtend      verb = "extend"
	doCleanup     verb = "clean up"
	doCleanupAll  verb = "clean up all"
	doDepth       verb = "depth"
	doLook        verb = "look" // at a hold
	doHammer      verb = "hammer"
	doClose       verb = "close"

	doArm     verb = "arm"     // hold the client at a step
	doGo      verb = "go"      // let it go on, and hold it no more
	doAt      verb = "at"      // answered once it is held at the step
	doReach   verb = "reach"   // answered once it has come to a step so many times
	doSteps   verb = "steps"   // how often it has come to each step
	doLost    verb = "lost"    // answered once the lock has reported the loss of a hold
	doCancel  verb = "cancel"  // the call under way
	doNetwork verb = "network" // change the client's network
)

// order is what the suite asks of a client.
type order struct {
	N       uint64 // its number, which the answer carries
	Do      verb
	Client  string
	Keys    []string      `json:",omitempty"`
	Attempt impls.Attempt // of calls that acquire or clean up
	Hold    uint64        `json:",omitempty"` // the number of the order that acquired it
	Limit   time.Duration `json:",omitempty"` // of a call; 0 for none
	Step    impls.Step    `json:",omitempty"`
	Count   int           `json:",omitempty"` // reach: how often; hammer: rounds
	Network state         `json:",omitempty"`
	Proxied bool          `json:",omitempty"` // open: with a network that can be changed
}

// answer is what came of an order. Stamps are nanoseconds of CLOCK_MONOTONIC.
type answer struct {
	N       uint64
	Hello   *hello `json:",omitempty"` // the greeting: it has no number
	Outcome history.Outcome
	Error   string `json:",omitempty"`
	// Unsupported: the call, or the client, cannot do this.
	Unsupported bool `json:",omitempty"`

	Sent, Returned int64
	// LeaseEnd is 0 if the recipe does not know it. Lost is when the loss was
	// reported, 0 if it was not. Signals: there is a channel that could.
	LeaseEnd int64 `json:",omitempty"`
	Lost     int64 `json:",omitempty"`
	Signals  bool  `json:",omitempty"`

	Depth  int                `json:",omitempty"`
	Passed []impls.Step       `json:",omitempty"` // the steps that the call came to, each once
	Steps  map[impls.Step]int `json:",omitempty"`
	Spans  []span             `json:",omitempty"`
	Odd    map[string]int     `json:",omitempty"` // a hammer's failed calls
}

// ReplyTo implements worker.Reply.
func (a answer) ReplyTo() uint64 { return a.N }

// ok reports whether the call did what it was asked for.
func (a answer) ok() bool { return a.Error == "" && !a.Unsupported }

// span is a hold, from the grant's return until the release was sent or the
// lease's end, whichever came first.
type span struct {
	From, To int64
}
