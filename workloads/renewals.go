package workloads

import (
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// renewalsKept bounds how many answers may wait for the client's goroutine to
// record them: a lease is renewed a few times in a TTL.
const renewalsKept = 64

// renewal is an answer that the client had no part in.
type renewal struct {
	attempt history.Attempt
	sent    time.Time
	at      int64 // stamp of the answer
	err     error
}

// renewals passes what is renewed in the background on to the client's own
// goroutine, for a client's history has one writer.
type renewals struct {
	clock history.Clock
	seen  chan renewal
}

func newRenewals(clock history.Clock) renewals {
	return renewals{clock: clock, seen: make(chan renewal, renewalsKept)}
}

// Renewed implements impls.Renewals. If the client has recorded nothing for so long
// that there is no room, the newest answer is left out: a lease then seems to
// end sooner than it does, and what is recorded of it is no less true.
func (r renewals) Renewed(_ string, a impls.Attempt, sent time.Time, err error) {
	select {
	case r.seen <- renewal{attempt: a, sent: sent, at: r.clock.Now(), err: err}:
	default:
	}
}

// renewed records a renewal of a grant that the client still has, as the extend
// that it was. Nothing is recorded of one that was under way beside another call
// of the client.
func (c *client) renewed(r renewal) error {
	for i := range c.grants {
		if c.grants[i].attempt != r.attempt {
			continue
		}
		op := history.Op{Kind: history.KindExtend, Flags: c.want.flags, Key: c.want.key, Attempt: r.attempt, Fence: c.grants[i].hold.Fence()}
		res := history.Result{Outcome: impls.Outcome(history.KindExtend, r.err)}
		c.errors.add(c.id, op.Kind, res.Outcome, r.err, r.at)
		return c.rec.past(&op, &res, c.clock.At(r.sent), r.at)
	}
	return nil
}

// catchUp records the renewals that came since the client last looked.
func (c *client) catchUp() {
	for c.err == nil {
		select {
		case r := <-c.renewals.seen:
			c.err = c.renewed(r)
		default:
			return
		}
	}
}
