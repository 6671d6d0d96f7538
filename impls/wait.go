package impls

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// NewUniform is a wait policy that draws each wait uniformly from min to max,
// both included; the same seed gives the same waits. Equal bounds give a
// constant wait; bounds in the wrong order are swapped, and negative ones count
// as zero. It is for one client, not for concurrent use.
func NewUniform(min, max time.Duration, seed uint64) WaitPolicy {
	if max < min {
		min, max = max, min
	}
	if min < 0 {
		min = 0
	}
	if max < min {
		max = min
	}
	return &uniform{min: min, max: max, draw: rand.New(rand.NewPCG(seed, waitStream))}
}

// waitStream separates the waits from other numbers drawn from the same seed.
const waitStream = 0x77616974 // "wait"

type uniform struct {
	min, max time.Duration
	draw     *rand.Rand
}

func (u *uniform) Next() time.Duration {
	if u.min == u.max {
		return u.min
	}
	return u.min + time.Duration(u.draw.Int64N(int64(u.max-u.min)+1))
}

// String is the bounds, "5ms..15ms", or the value of a constant wait.
func (u *uniform) String() string {
	if u.min == u.max {
		return u.min.String()
	}
	return u.min.String() + ".." + u.max.String()
}

// Poll is an Acquire that repeats try: between two tries it reaches StepWaiting
// and waits by cfg's policy, on cfg's clock.
func Poll(ctx context.Context, cfg Config, key string, a Attempt, try func(context.Context, string, Attempt) (Hold, error)) (Hold, error) {
	return RetryUntilAcquired(ctx, key, a, try, func(ctx context.Context) error {
		cfg.Reach(ctx, StepWaiting)
		return cfg.Clock.Sleep(ctx, cfg.Wait.Next())
	})
}

// RetryUntilAcquired is an Acquire that repeats try while it returns ErrBusy,
// with wait in between. If wait fails, as it must when ctx ends, the result is
// ErrFailed, since the last answer was definite.
func RetryUntilAcquired(ctx context.Context, key string, a Attempt, try func(context.Context, string, Attempt) (Hold, error), wait func(context.Context) error) (Hold, error) {
	for {
		h, err := try(ctx, key, a)
		if err == nil || !errors.Is(err, ErrBusy) || errors.Is(err, ErrUnknown) {
			return h, err
		}
		if err := wait(ctx); err != nil {
			return nil, GaveUp(key, err)
		}
	}
}

// GaveUp is the outcome of an acquire of key that err ended, usually its
// context's, while it waited with no request under way: ErrFailed.
func GaveUp(key string, err error) error {
	return fmt.Errorf("acquire %s: gave up waiting: %w: %w", key, ErrFailed, err)
}
