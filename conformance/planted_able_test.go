package conformance_test

import (
	"context"
	"crypto/rand"
	"errors"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/reference"
)

// named is the right reference lock by another name.
func named(name string) impls.Info {
	i := reference.Recipes()[0].Info()
	i.ID = name
	return i
}

// open opens a client of the right reference lock.
func open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	return reference.Recipes()[0].Open(ctx, cfg)
}

// nesting is a lock that its holder may take again, and that is free at the
// first release.
type nesting struct {
	impls.Recipe
	name string
}

func (n nesting) Info() impls.Info                                    { return named(n.name) }
func (nesting) Prepare(context.Context, impls.Config, []string) error { return nil }
func (nesting) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := open(ctx, cfg)
	return &nestingClient{Client: c, depth: map[string]int{}}, err
}

type nestingClient struct {
	impls.Client
	depth map[string]int
	outer impls.Hold
}

func (c *nestingClient) Depth(key string) int { return c.depth[key] }

func (c *nestingClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return c.take(ctx, key, a, c.Client.TryAcquire)
}

func (c *nestingClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return c.take(ctx, key, a, c.Client.Acquire)
}

func (c *nestingClient) take(ctx context.Context, key string, a impls.Attempt, how func(context.Context, string, impls.Attempt) (impls.Hold, error)) (impls.Hold, error) {
	if c.depth[key] == 0 {
		h, err := how(ctx, key, a)
		if err != nil {
			return nil, err
		}
		c.outer = h
	}
	c.depth[key]++
	return nestedHold{c.outer, c}, nil
}

type nestedHold struct {
	impls.Hold
	c *nestingClient
}

func (h nestedHold) Release(ctx context.Context) error {
	h.c.depth[h.Key()] = 0
	return h.Hold.Release(ctx)
}

// sharing is a lock whose readers take it as writers do, or always.
type sharing struct {
	impls.Recipe
	name   string
	always bool
}

func (s sharing) Info() impls.Info                                    { return named(s.name) }
func (sharing) Prepare(context.Context, impls.Config, []string) error { return nil }
func (s sharing) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := open(ctx, cfg)
	return &sharingClient{c, s.always}, err
}

type sharingClient struct {
	impls.Client
	always bool
}

func (c *sharingClient) AcquireRead(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	if c.always {
		return imagined{key, a}, nil
	}
	return c.Acquire(ctx, key, a)
}

func (c *sharingClient) TryAcquireRead(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	if c.always {
		return imagined{key, a}, nil
	}
	return c.TryAcquire(ctx, key, a)
}

// batching takes keys one after another. Without rollback it keeps what it has
// when one is taken; some lets it be content with that.
type batching struct {
	impls.Recipe
	name           string
	rollback, some bool
}

func (b batching) Info() impls.Info                                    { return named(b.name) }
func (batching) Prepare(context.Context, impls.Config, []string) error { return nil }
func (b batching) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := open(ctx, cfg)
	return &batchingClient{c, b}, err
}

type batchingClient struct {
	impls.Client
	how batching
}

func (c *batchingClient) AcquireAll(ctx context.Context, keys []string, a impls.Attempt) (impls.Hold, error) {
	return c.take(ctx, keys, a, c.Acquire)
}

func (c *batchingClient) TryAcquireAll(ctx context.Context, keys []string, a impls.Attempt) (impls.Hold, error) {
	return c.take(ctx, keys, a, c.TryAcquire)
}

func (c *batchingClient) take(ctx context.Context, keys []string, a impls.Attempt, one func(context.Context, string, impls.Attempt) (impls.Hold, error)) (impls.Hold, error) {
	var all []impls.Hold
	for _, key := range keys {
		h, err := one(ctx, key, a)
		switch {
		case err == nil:
			all = append(all, h)
		case c.how.some && len(all) > 0:
		case c.how.rollback:
			return nil, errors.Join(err, batchHold{all: all}.Release(context.WithoutCancel(ctx)))
		default:
			return nil, err
		}
	}
	return batchHold{all[0], all}, nil
}

func (c *batchingClient) CleanupAll(ctx context.Context, keys []string, a impls.Attempt) error {
	return c.Cleanup(ctx, keys[0], a)
}

// batchHold stands for several; the first speaks for them.
type batchHold struct {
	impls.Hold
	all []impls.Hold
}

func (b batchHold) Release(ctx context.Context) error {
	var errs []error
	for _, h := range b.all {
		errs = append(errs, h.Release(ctx))
	}
	return errors.Join(errs...)
}

// newAttempt draws an attempt.
func newAttempt() (a impls.Attempt) {
	_, _ = rand.Read(a[:]) // never fails, by its documentation
	return a
}
