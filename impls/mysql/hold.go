package mysql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// hold is the Hold of a lock that nothing renews.
type hold struct {
	key     string
	attempt impls.Attempt
	// end is the zero time where nothing ends the hold by the clock.
	end time.Time
	// lost is closed when the hold's connection was found broken, by whatever
	// used it; nobody can tell of one that ended while it was not in use. It is
	// nil where the lock is bound to no connection.
	lost <-chan struct{}
	free func(context.Context) error
	over bool // a release has said so, definitely
}

func (h *hold) Key() string            { return h.key }
func (h *hold) Attempt() impls.Attempt { return h.attempt }
func (h *hold) Fence() uint64          { return 0 }
func (h *hold) LeaseEnd() time.Time    { return h.end }
func (h *hold) Lost() <-chan struct{}  { return h.lost }

// Extend is not supported: nothing could be renewed.
func (h *hold) Extend(context.Context) error {
	return fmt.Errorf("extend %s: this lock is not renewed: %w", h.key, errors.ErrUnsupported)
}

func (h *hold) Release(ctx context.Context) error {
	if h.over {
		return impls.ErrLost
	}
	err := h.free(ctx)
	h.over = impls.Definite(err)
	return err
}

// claim is an attempt on a key.
type claim struct {
	key     string
	attempt impls.Attempt
}
