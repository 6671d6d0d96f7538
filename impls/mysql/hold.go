package mysql

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// hold is the Hold of a lock that nothing renews.
type hold struct {
	impls.Grant
	// end is the zero time where nothing ends the hold by the clock.
	end time.Time
	// lost is closed when the hold's connection was found broken, by whatever
	// used it; nobody can tell of one that ended while it was not in use. It is
	// nil where the lock is bound to no connection.
	lost <-chan struct{}
}

// newHold is a hold that free ends. It has no fence.
func newHold(key string, a impls.Attempt, lost <-chan struct{}, free func(context.Context) error) *hold {
	return &hold{Grant: impls.NewGrant(key, a, 0, free), lost: lost}
}

func (h *hold) LeaseEnd() time.Time   { return h.end }
func (h *hold) Lost() <-chan struct{} { return h.lost }

// claim is an attempt on a key.
type claim struct {
	key     string
	attempt impls.Attempt
}
