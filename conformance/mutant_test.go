package conformance_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/impls"
)

// recorder is a conformance.T that keeps what a check reports.
type recorder struct {
	*testing.T
	mu       sync.Mutex
	failures []string
	cleanups []func()
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

// failures runs one check and returns what it reported.
func failures(t *testing.T, check string, s conformance.Subject) []string {
	t.Helper()
	for _, c := range conformance.Checks(s.Recipe.Info()) {
		if c.Name != check {
			continue
		}
		r := &recorder{T: t}
		var group sync.WaitGroup
		group.Go(func() { c.Run(r, s) })
		group.Wait()
		for i := len(r.cleanups) - 1; i >= 0; i-- {
			r.cleanups[i]()
		}
		return r.failures
	}
	t.Fatalf("no check %q for %s", check, s.Recipe.Info().ID)
	return nil
}

// mutant is the reference lock with something wrong about it.
type mutant struct {
	impls.Recipe
	info func(*impls.Info)
	// open changes what clients are opened with; nil leaves it.
	open func(*impls.Config)
	// client and hold change what the right ones do; nil leaves them.
	client func(*mutantClient)
	hold   func(*mutantHold)
}

func (m mutant) Info() impls.Info {
	i := m.Recipe.Info()
	if m.info != nil {
		m.info(&i)
	}
	return i
}

func (m mutant) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	asked := cfg
	if m.open != nil {
		m.open(&cfg)
	}
	inner, err := m.Recipe.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	c := &mutantClient{Client: inner, m: m, asked: asked, cfg: cfg, acquire: inner.Acquire, try: inner.TryAcquire, cleanup: inner.Cleanup}
	if m.client != nil {
		m.client(c)
	}
	return c, nil
}

type mutantClient struct {
	impls.Client
	m            mutant
	asked, cfg   impls.Config
	acquire, try func(context.Context, string, impls.Attempt) (impls.Hold, error)
	cleanup      func(context.Context, string, impls.Attempt) error
}

func (c *mutantClient) wrap(h impls.Hold, err error) (impls.Hold, error) {
	if err != nil {
		return nil, err
	}
	m := &mutantHold{Hold: h, release: h.Release, extend: h.Extend, fence: h.Fence, end: h.LeaseEnd, lost: h.Lost()}
	if c.m.hold != nil {
		c.m.hold(m)
	}
	return m, nil
}

func (c *mutantClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return c.wrap(c.acquire(ctx, key, a))
}

func (c *mutantClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return c.wrap(c.try(ctx, key, a))
}

func (c *mutantClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.cleanup(ctx, key, a)
}

type mutantHold struct {
	impls.Hold
	release, extend func(context.Context) error
	fence           func() uint64
	end             func() time.Time
	lost            <-chan struct{}
}

func (h *mutantHold) Release(ctx context.Context) error { return h.release(ctx) }
func (h *mutantHold) Extend(ctx context.Context) error  { return h.extend(ctx) }
func (h *mutantHold) Fence() uint64                     { return h.fence() }
func (h *mutantHold) LeaseEnd() time.Time               { return h.end() }
func (h *mutantHold) Lost() <-chan struct{}             { return h.lost }

// imagined is a hold that no server knows of.
type imagined struct {
	key     string
	attempt impls.Attempt
}

func (h imagined) Key() string                   { return h.key }
func (h imagined) Attempt() impls.Attempt        { return h.attempt }
func (h imagined) Fence() uint64                 { return 1 << 40 }
func (h imagined) LeaseEnd() time.Time           { return time.Now().Add(time.Second) }
func (h imagined) Lost() <-chan struct{}         { return nil }
func (h imagined) Extend(context.Context) error  { return nil }
func (h imagined) Release(context.Context) error { return nil }

// numbered is a hold with a token of its own.
type numbered struct {
	impls.Hold
	fence uint64
}

func (h numbered) Fence() uint64 { return h.fence }
