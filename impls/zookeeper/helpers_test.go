package zookeeper

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// acquiring begins an acquire and returns once it waits.
func acquiring(t *testing.T, gate *recipetest.Gate, acquire func(context.Context, string, impls.Attempt) (impls.Hold, error), key string, a impls.Attempt) <-chan recipetest.Result {
	t.Helper()
	return recipetest.Begin(t, gate, impls.StepWaiting, 1, func() (impls.Hold, error) { return acquire(t.Context(), key, a) })
}

// abandoned is an attempt that was given up once it waited for the n-th time, and
// owes a clean-up.
func abandoned(t *testing.T, gate *recipetest.Gate, c impls.Client, key string, n int) impls.Attempt {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	a := recipetest.NewAttempt()
	got := recipetest.Begin(t, gate, impls.StepWaiting, n, func() (impls.Hold, error) { return c.Acquire(ctx, key, a) })
	cancel()
	recipetest.WantOutcome(t, "a wait that was given up", (<-got).Err, impls.ErrUnknown)
	return a
}

// granted is the hold that an acquire must have come to.
func granted(t *testing.T, r recipetest.Result) impls.Hold {
	t.Helper()
	recipetest.WantOutcome(t, "acquire", r.Err, nil)
	return r.Hold
}

// try tries, which must come to want.
func try(t *testing.T, c impls.Client, key string, want error) impls.Hold {
	t.Helper()
	h, err := c.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try", err, want)
	return h
}

// acquire acquires a free lock.
func acquire(t *testing.T, c impls.Client, key string) impls.Hold {
	t.Helper()
	h, err := c.Acquire(t.Context(), key, recipetest.NewAttempt())
	return granted(t, recipetest.Result{Hold: h, Err: err})
}

func release(t *testing.T, h impls.Hold) {
	t.Helper()
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
}

// plug is the network of one client, which can be pulled.
type plug struct {
	mu     sync.Mutex
	pulled bool
}

var errPulled = errors.New("the test has pulled the plug")

func (p *plug) pull(pulled bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pulled = pulled
}

// openPlugged opens a client whose network is p.
func openPlugged(t *testing.T, r impls.Recipe, addresses []string, p *plug) impls.Client {
	t.Helper()
	cfg := config(addresses)
	cfg.TTL = time.Second // which is what the test waits for
	dial := cfg.Dial
	cfg.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.pulled {
			return nil, errPulled
		}
		return dial(ctx, network, address)
	}
	return recipetest.Open(t, r, cfg)
}

// cutUntilGone cuts a client off until it knows that its session is lost, and
// the servers have forgotten path, which hangs on it; then it is back.
func cutUntilGone(t *testing.T, p *plug, c *client, other *client, path string) {
	t.Helper()
	s := c.driver.current()
	p.pull(true)
	c.driver.cut()
	<-s.alive.Done()
	for there := true; there; {
		var err error
		there, err = do(t.Context(), other.driver, func(conn *zk.Conn) (bool, error) {
			there, _, err := conn.Exists(path)
			return there, err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	p.pull(false)
}

// deleteNodes deletes nodes from the outside.
func deleteNodes(t *testing.T, c *client, paths ...string) {
	t.Helper()
	for _, path := range paths {
		if _, err := do(t.Context(), c.driver, func(conn *zk.Conn) (struct{}, error) { return struct{}{}, conn.Delete(path, -1) }); err != nil {
			t.Fatal(err)
		}
	}
}
