package checker

import (
	"time"

	"github.com/lockbench/lockbench/history"
)

// Options say what the lock promised and what else is known of the run.
type Options struct {
	// Leased: a hold may end while its owner lives but is silent (bound ttl
	// or session). Without it the lock is judged as a mutex, whose holds end
	// by a release, or by a loss that the client was told of.
	Leased bool
	// TTL, of a leased lock bound by the server's clock: a grant certainly
	// holds for TTL, less a part in a thousand and Slack, after the acquire or
	// the last confirmed renewal was sent. 0: the lease may end at any moment.
	TTL time.Duration
	// Slack is taken off the TTL for the coarseness of the server's clock.
	Slack time.Duration
	// Fencing: every grant carries a fencing token.
	Fencing bool
	// Reentrant: a client that holds the lock may take it again, and it is free
	// when as many holds were released as were granted. The owner is the
	// client, and its holds of a key that meet are one.
	Reentrant bool
	// ReleaseIgnoresOwner: a release frees the lock whoever holds it. It tells only what
	// may explain violations.
	ReleaseIgnoresOwner bool
	// TriesYield: a try may be refused because another attempt is under way,
	// though nobody holds the lock: a place in a queue refuses it, or a part of
	// the servers that another has just taken.
	TriesYield bool
	// Takeover bounds the time that a free and wanted key may stay without a
	// holder. 0: nothing is known, and liveness is not judged.
	Takeover time.Duration

	// End of the measured window, as a stamp: whether a key is wanted after it
	// counts no longer. 0 means the history's last stamp. Safety is judged on
	// the whole history, warm-up and drain included.
	End int64

	// Paused lists when clients could not run: their pending acquires do not
	// count as wanting.
	Paused []Interval
	// Died lists the clients that were killed: they hold and want nothing from
	// then on, though the lock may stay taken until its bound.
	Died []Death
	// Suspects name what may explain violations.
	Suspects []Suspect
	// FaultMissed gives the reasons of faults that were planned but hit
	// nothing. One is enough to rule out "safe".
	FaultMissed []string

	// Incomplete says why the record is not whole although nothing of it is
	// damaged (the run was killed, say); it rules out "safe", "kept" and
	// "live": what is missing may be the contrary.
	Incomplete string

	// MaxWitnesses limits the witnesses of each class; 0 means 3.
	MaxWitnesses int
}

// Interval is a stretch of one client's time.
type Interval struct {
	Client   uint32
	From, To int64
}

// Death is a client's end, by a signal that it could not see coming.
type Death struct {
	Client uint32
	At     int64 // stamp; the client's records may end long before
}

// Suspect explains violations: those that involve one attempt and end after From,
// as when its client was stopped at From; or, for AllClients, those between a hold
// that was granted by To and one that was granted after From, as when the server
// may have lost what it knew between From and To.
type Suspect struct {
	Cause      string
	Attempt    history.Attempt
	AllClients bool
	From, To   int64 // stamps
}

func (o Options) maxWitnesses() int {
	if o.MaxWitnesses <= 0 {
		return 3
	}
	return o.MaxWitnesses
}
