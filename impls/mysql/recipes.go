package mysql

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// Recipes lists the recipes of this package: a new recipe is a file and a line
// here.
func Recipes() []impls.Recipe {
	return []impls.Recipe{
		leaseRow{}, getLock{},
		insert{}, insertReaper{}, insertReentrant{}, insertCount{},
		forUpdate(), forUpdateNoIndex(),
	}
}

// anyTTL is the common part of recipes without a lease.
type anyTTL struct{}

// CheckTTL accepts every TTL.
func (anyTTL) CheckTTL(time.Duration, impls.Limits) error { return nil }

// atOnce is the takeover bound of locks that end with a connection. The server
// ends an idle connection as soon as it detects its end, which does not depend
// on the TTL. A second is ample.
func atOnce(time.Duration) time.Duration { return time.Second }

// retryUntilAcquired is an Acquire whose ask waits in the server: it repeats
// ask while that is busy or temporarily rejected.
func retryUntilAcquired(ctx context.Context, cfg impls.Config, key string, ask func() (impls.Hold, error)) (impls.Hold, error) {
	for {
		h, err := ask()
		switch {
		case errors.Is(err, errRefused):
			err = cfg.Clock.Sleep(ctx, cfg.Wait.Next())
		case errors.Is(err, impls.ErrBusy):
			err = ctx.Err()
		default:
			return h, err
		}
		if err != nil {
			return nil, impls.GaveUp(key, err)
		}
	}
}

// started returns why a call with an ended context sends nothing, or nil.
func started(ctx context.Context, doing, key string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, impls.NotSent(err))
	}
	return nil
}
