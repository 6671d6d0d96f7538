package mysql

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// hold is the Hold of a lock without renewal.
type hold struct {
	impls.Grant
	// end is the zero time if the hold does not end by the clock.
	end time.Time
	// lost is closed when the hold's connection was found broken by a request;
	// an idle connection that ended is not detected. It is nil if the lock has
	// no connection.
	lost <-chan struct{}
}

// newHold is a hold that free releases. It has no fence.
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
