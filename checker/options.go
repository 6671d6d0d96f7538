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

// Suspect explains the violations that involve one attempt and end after From:
// an attempt whose client was stopped at From, say.
type Suspect struct {
	Cause   string
	Attempt history.Attempt
	From    int64
}

func (o Options) maxWitnesses() int {
	if o.MaxWitnesses <= 0 {
		return 3
	}
	return o.MaxWitnesses
}
