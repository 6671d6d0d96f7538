package checker

import (
	"time"

	"github.com/lockbench/lockbench/history"
)

// Options describe the guarantees of the lock and what else is known of the run.
type Options struct {
	// Leased: a hold may end while its owner is alive but silent (bound ttl or
	// session). Otherwise the lock is judged as a mutex: a hold ends by a release,
	// or by a loss that the lock signalled to the client.
	Leased bool
	// TTL of a leased lock bound by the server's clock: a grant certainly holds
	// for TTL, less 0.1 % and Slack, after the acquire or the last confirmed
	// renewal was sent. 0: the lease may end at any moment.
	TTL time.Duration
	// Slack is subtracted from the TTL for the resolution of the server's clock.
	Slack time.Duration
	// Fencing: every grant carries a fencing token.
	Fencing bool
	// TokensMissing: not every grant's token is recorded. The others are judged, and
	// the guarantee cannot be kept.
	TokensMissing bool
	// TrustLeaseEnd: a client holds no longer than to the lease end that it recorded.
	TrustLeaseEnd bool
	// Reentrant: a holder may acquire the lock again, and it is free after as many
	// releases as grants. The owner is the client: its holds of a key that meet in
	// time are one.
	Reentrant bool
	// ReleaseIgnoresOwner: a release frees the lock of any holder. It is used only
	// to explain violations.
	ReleaseIgnoresOwner bool
	// TriesYield: a try may be busy because another attempt is under way, although
	// no client holds the lock: the attempt has a place in a queue, or holds some
	// of the servers.
	TriesYield bool
	// AcquireLimit is the longest time that an acquire may take by the client's own
	// limit, requests that were under way included. 0: unknown.
	AcquireLimit time.Duration
	// LeaseEndsDoubtful: the lease ends that clients recorded prove nothing, since their
	// clocks were set or it is not known how they were made.
	LeaseEndsDoubtful bool
	// JudgeClients: liveness is judged for each client too. An acquire that fails within
	// GivesUpAfter was not given up by its client; 0: clients never give up.
	JudgeClients bool
	GivesUpAfter time.Duration
	// Takeover bounds the time that a free and wanted key may stay without a
	// holder. 0: unknown, and liveness is not judged.
	Takeover time.Duration
	// Handoff bounds the same after a confirmed release, outside of Disturbed. 0: it is
	// not judged.
	Handoff   time.Duration
	Disturbed []Interval

	// End of the measured window, as a stamp: liveness is judged up to it. 0 means
	// the history's last stamp. Safety is judged on the whole history, warm-up and
	// drain included.
	End int64

	// Paused lists when clients could not run: their pending acquires do not count
	// as waiting.
	Paused []Interval
	// Exceptions lists when faults on servers permit that no client is granted a key. It
	// does not divide the time that a key stays free: what is left of that is judged as
	// one sum.
	Exceptions []Interval
	// Died lists the killed clients: they hold and want nothing from then on,
	// though the lock may stay taken until its bound.
	Died []Death
	// Suspects are possible causes of violations.
	Suspects []Suspect
	// FaultMissed gives the reasons why planned faults missed. One is enough to
	// rule out "safe".
	FaultMissed []string

	// Incomplete is why records may be missing although none is damaged (for
	// example, the run was killed). It rules out "safe", "kept" and "live".
	Incomplete string

	// MaxWitnesses limits the witnesses of each class; 0 means 3.
	MaxWitnesses int
}

// Interval is a stretch of one client's time, or of all clients'.
type Interval struct {
	Client   uint32
	From, To int64
}

// Death is the end of a client by SIGKILL.
type Death struct {
	Client uint32
	At     int64 // stamp; the client's records may end long before
}

// Suspect is a possible cause of violations: those that involve one attempt and
// end after From (its client was stopped at From); or, with AllClients, those
// between a hold granted by To and one granted after From (the server may have
// lost its data between From and To).
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
