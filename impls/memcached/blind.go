package memcached

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// stepFree is before a delete, of a release, that does not ask whose the lock
// is.
const stepFree impls.Step = "free"

// blind is the client of a lock that does not store whose it is. The client
// remembers which of its attempts may hold one, and until when by its own
// clock, and sends nothing for others.
type blind struct {
	*driver
	mine impls.Claims[int64] // Unix time
}

func openBlind(ctx context.Context, cfg impls.Config) (*blind, error) {
	d, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &blind{driver: d, mine: impls.Claims[int64]{}}, nil
}

func (b *blind) now() int64 { return b.cfg.Clock.Now().Unix() }

// until is the time that the document writes for a lock that is taken now.
func (b *blind) until() int64 { return b.now() + int64(b.cfg.TTL/time.Second) + 1 }

// hold is a granted attempt, which free ends; nothing renews it.
func (b *blind) hold(key string, a impls.Attempt, sent time.Time, free func(ctx context.Context, doing, key string, until int64) error) impls.Hold {
	return impls.NewLease(key, a, 0, sent, impls.Leaser{
		Clock: b.cfg.Clock,
		TTL:   b.cfg.TTL,
		Free:  func(ctx context.Context) error { return b.finish(ctx, "release", key, a, free) },
	})
}

// finish ends what an attempt may have by free, if it may have anything.
func (b *blind) finish(ctx context.Context, doing, key string, a impls.Attempt, free func(ctx context.Context, doing, key string, until int64) error) error {
	return b.mine.Finish(ctx, a, func(ctx context.Context, until int64) error { return free(ctx, doing, key, until) })
}
