package memcached

import (
	"context"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// stepFree is before the delete of a release, which does not check the owner.
const stepFree impls.Step = "free"

// blind is the client of a lock that does not store its owner. It records which
// of its attempts may hold the lock, and until when by its own clock, and sends
// nothing for other attempts.
type blind struct {
	*driver
	claims impls.Claims[int64] // Unix time
}

func openBlind(ctx context.Context, cfg impls.Config) (*blind, error) {
	d, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &blind{driver: d, claims: impls.Claims[int64]{}}, nil
}

func (b *blind) now() int64 { return b.cfg.Clock.Now().Unix() }

// until is the value that the document writes for a lock taken now.
func (b *blind) until() int64 { return b.now() + int64(b.cfg.TTL/time.Second) + 1 }

// hold is a granted attempt without renewal; free releases it.
func (b *blind) hold(key string, a impls.Attempt, sent time.Time, free func(ctx context.Context, doing, key string, until int64) error) impls.Hold {
	return impls.NewLease(key, a, 0, sent, impls.Leaser{
		Clock: b.cfg.Clock,
		TTL:   b.cfg.TTL,
		Free:  func(ctx context.Context) error { return b.finish(ctx, "release", key, a, free) },
	})
}

// finish runs free if the attempt may hold the lock.
func (b *blind) finish(ctx context.Context, doing, key string, a impls.Attempt, free func(ctx context.Context, doing, key string, until int64) error) error {
	return b.claims.Finish(ctx, a, func(ctx context.Context, until int64) error { return free(ctx, doing, key, until) })
}
