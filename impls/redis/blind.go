package redis

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
)

// stepDelete is before a DEL that does not check the owner.
const stepDelete impls.Step = "delete"

// blind is the client of a lock that does not store its owner. It remembers which
// of its attempts may hold the lock, and sends nothing for other attempts.
type blind struct {
	*server
	claims impls.Claims[struct{}]
}

func openBlind(ctx context.Context, cfg impls.Config) (*blind, error) {
	s, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := s.rdb.Ping(ctx).Err(); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("connect to redis at %s: %w", s.name(), err)
	}
	return &blind{server: s, claims: impls.Claims[struct{}]{}}, nil
}

// number sends a command whose reply is a number.
func (b *blind) number(ctx context.Context, doing, key string, words ...any) (n int64, err error) {
	err = b.ask(ctx, doing, key, func(rdb *redis.Client) (err error) {
		n, err = rdb.Do(ctx, words...).Int64()
		return err
	})
	return n, err
}

// setnx sets key to value for the attempt; ErrBusy if the key exists.
func (b *blind) setnx(ctx context.Context, key string, a impls.Attempt, value any) error {
	n, err := b.number(ctx, "acquire", key, "setnx", key, value)
	if err == nil && n == 0 {
		err = impls.ErrBusy
	}
	return b.claims.Took(a, struct{}{}, err)
}

// del deletes key without checking the owner: nil, or ErrLost if it did not exist.
func (b *blind) del(ctx context.Context, doing, key string) error {
	b.cfg.Reach(ctx, stepDelete)
	n, err := b.number(ctx, doing, key, "del", key)
	if err == nil && n == 0 {
		err = impls.ErrLost
	}
	return err
}

// hold is a granted attempt without renewal; free releases it.
func (b *blind) hold(key string, a impls.Attempt, sent time.Time, free func(context.Context) error) impls.Hold {
	return impls.NewLease(key, a, 0, sent, impls.Leaser{
		Clock: b.cfg.Clock,
		TTL:   b.cfg.TTL,
		Free:  func(ctx context.Context) error { return b.finish(ctx, a, free) },
	})
}

// finish runs free if the attempt may hold the lock.
func (b *blind) finish(ctx context.Context, a impls.Attempt, free func(context.Context) error) error {
	return b.claims.Finish(ctx, a, func(ctx context.Context, _ struct{}) error { return free(ctx) })
}

// wholeSeconds is plain for locks that count time in seconds.
type wholeSeconds struct{ plain }

// CheckTTL takes whole seconds.
func (wholeSeconds) CheckTTL(ttl time.Duration, _ impls.Limits) error {
	if ttl < time.Second || ttl%time.Second != 0 {
		return fmt.Errorf("cannot serve a TTL of %s: this lock counts whole seconds, at least 1s", ttl)
	}
	return nil
}
