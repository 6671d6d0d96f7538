package mysql

import (
	"context"
	"errors"
	"fmt"

	"github.com/lockbench/lockbench/impls"
)

// Recipes lists the recipes of this package.
func Recipes() []impls.Recipe {
	return []impls.Recipe{
		leaseRow{}, getLock{},
		insert{}, insertReaper{}, insertReentrant{}, insertCount{},
		forUpdate{}, forUpdateNoIndex{},
	}
}

// insist is an Acquire whose ask waits in the server: it asks until the answer
// is neither that the lock is still busy nor a refusal of the moment.
func insist(ctx context.Context, cfg impls.Config, key string, ask func() (impls.Hold, error)) (impls.Hold, error) {
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
			return nil, gaveUp(key, err)
		}
	}
}

// gaveUp is the outcome of an acquire that err, its context's, ended while
// nothing of it was open.
func gaveUp(key string, err error) error {
	return fmt.Errorf("acquire %s: gave up waiting: %w: %w", key, impls.ErrFailed, err)
}

// started tells why a call whose context is over sends nothing; nil if it is
// not.
func started(ctx context.Context, doing, key string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, impls.NotSent(err))
	}
	return nil
}
