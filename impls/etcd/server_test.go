package etcd

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// config has a lease that a busy machine does not lose.
func config(addresses []string) impls.Config {
	return recipetest.Config(addresses, impls.Account{}, 4*time.Second)
}

// acquiring begins an acquire and returns once it has come to step s for the
// n-th time.
func acquiring(t *testing.T, gate *recipetest.Gate, s impls.Step, n int, c impls.Client, key string) <-chan recipetest.Result {
	t.Helper()
	return recipetest.Begin(t, gate, s, n, func() (impls.Hold, error) { return c.Acquire(t.Context(), key, recipetest.NewAttempt()) })
}

// openAs opens a client of a recipe that calls steps, if not nil.
func openAs(t *testing.T, r impls.Recipe, addresses []string, steps impls.Steps) impls.Client {
	t.Helper()
	cfg := config(addresses)
	cfg.Steps = steps
	return recipetest.Open(t, r, cfg)
}

func open(t *testing.T, addresses ...string) *mutexClient {
	return openAs(t, mutex{}, addresses, nil).(*mutexClient)
}

func TestOnServer(t *testing.T) {
	addresses := clustertest.Start(t, "etcd", "single").Addresses()
	for name, check := range map[string]func(*testing.T, []string){
		"late acquire is void":                lateAcquire,
		"clean-up without lease":              cleanupWithoutLease,
		"lost place in the queue":             lostPlace,
		"lost session, then another":          newSession,
		"gap in the queue":                    gapInQueue,
		"keys do not share a queue":           separateKeys,
		"a dead server is no mystery":         deadServer,
		"a queue wakes one":                   wakesOne(mutex{}),
		"the library's queue too":             wakesOne(clientMutex{}),
		"a herd wakes all":                    wakesAll,
		"release frees another's":             foreignRelease,
		"clean-up does not":                   cleanupByLease,
		"late put is void":                    lateSingle,
		"freed before the watch":              freedBeforeWatch,
		"waiter outlives its session":         waiterOutlivesItsSession,
		"one session holds twice":             sameSession,
		"one session's tokens grow":           sameSessionTokens,
		"lost, and released without an error": silentRelease,
		"the library leaves a key":            leftBehind,
		"a key may still come":                mayStillCome,
		"the library gives up":                givesUp,
		"the library's lost place":            lostWhileWaiting,
		"the library's renewals":              ownClock,
		"renewals are reported":               reportsRenewals,
		"a lock delay follows a lost session": lockDelay,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, addresses)
		})
	}
}

// lockDelay: with a lock delay the key of a lost session stays closed for longer than
// its client may rely on it, and a release opens it at once.
func lockDelay(t *testing.T, addresses []string) {
	for _, r := range []impls.Recipe{mutex{}, singleKey{}} {
		t.Run(r.Info().ID, func(t *testing.T) {
			t.Parallel()
			cfg := config(addresses)
			cfg.TTL, cfg.LockDelay = 2*time.Second, 2*time.Second
			began := time.Now()
			lost, next := recipetest.Open(t, r, cfg), recipetest.Open(t, r, cfg)
			key := recipetest.NewKey()
			h := recipetest.Try(t, lost, key)
			recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
			recipetest.WantOutcome(t, "release", recipetest.Try(t, next, key).Release(t.Context()), nil)

			h = recipetest.Try(t, lost, key)
			if rest := time.Until(h.LeaseEnd()); rest > cfg.TTL {
				t.Errorf("a holder relies on its lock for %v, with a TTL of %v", rest, cfg.TTL)
			}
			clientOf(t, lost).stop() // no more renewals
			if _, err := next.Acquire(t.Context(), key, recipetest.NewAttempt()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took < cfg.TTL+cfg.LockDelay {
				t.Errorf("the lock was open again %v after its session began", took)
			}
		})
	}
}

// lateAcquire: once the clean-up was answered, the attempt's own transaction
// has no effect any more, as if it had been held up on its way.
func lateAcquire(t *testing.T, addresses []string) {
	c := open(t, addresses...)
	for _, acquire := range []func(context.Context, string, impls.Attempt) (impls.Hold, error){c.Acquire, c.TryAcquire} {
		a := recipetest.NewAttempt()
		if err := c.Cleanup(t.Context(), "late", a); !errors.Is(err, impls.ErrLost) {
			t.Fatalf("clean up of what has not arrived: %v", err)
		}
		if _, err := acquire(t.Context(), "late", a); !errors.Is(err, impls.ErrFailed) {
			t.Errorf("late acquire: %v, want no effect", err)
		}
		if h, err := c.TryAcquire(t.Context(), "late", recipetest.NewAttempt()); err != nil {
			t.Errorf("the lock is not free: %v", err)
		} else if err := h.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// cleanupWithoutLease: where the lease is gone nothing can be left, and
// nothing can come.
func cleanupWithoutLease(t *testing.T, addresses []string) {
	c := open(t, addresses...)
	a := recipetest.NewAttempt()
	if _, err := c.Acquire(t.Context(), "revoked", a); err != nil {
		t.Fatal(err)
	}
	if _, err := c.api.Revoke(t.Context(), c.session.lease); err != nil {
		t.Fatal(err)
	}
	if err := c.Cleanup(t.Context(), "revoked", a); !errors.Is(err, impls.ErrLost) {
		t.Errorf("clean up: %v, want lost", err)
	}
}

func lostPlace(t *testing.T, addresses []string) {
	queue(addresses).LostPlace(t, "place", func(waiter impls.Client, _ impls.Attempt) {
		c := waiter.(*mutexClient)
		if _, err := c.api.Revoke(t.Context(), c.session.lease); err != nil {
			t.Fatal(err)
		}
	})
}

func gapInQueue(t *testing.T, addresses []string) { queue(addresses).Gap(t, "gap") }

func queue(addresses []string) recipetest.Queue {
	return recipetest.Queue{
		Open:  func(t *testing.T) impls.Client { return open(t, addresses...) },
		Await: func(t *testing.T, key string, n int) { awaitQueue(t, open(t, addresses...), key, int64(n)) },
	}
}

func wakesOne(r impls.Recipe) func(*testing.T, []string) {
	return func(t *testing.T, addresses []string) { served(r, addresses, false).Served(t, "queue") }
}

func wakesAll(t *testing.T, addresses []string) {
	served(singleKey{}, addresses, true).Served(t, "herd")
}

func served(r impls.Recipe, addresses []string, herd bool) recipetest.Waiters {
	return recipetest.Waiters{N: 5, Herd: herd, Ordered: !herd,
		Open: func(t *testing.T, steps impls.Steps) impls.Client { return openAs(t, r, addresses, steps) }}
}

func newSession(t *testing.T, addresses []string) {
	c := open(t, addresses...)
	old, err := c.Acquire(t.Context(), "session", recipetest.NewAttempt())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.api.Revoke(t.Context(), c.session.lease); err != nil {
		t.Fatal(err)
	}
	<-old.Lost() // at the next renewal
	h, err := c.Acquire(t.Context(), "session", recipetest.NewAttempt())
	if err != nil {
		t.Fatalf("acquire with a new session: %v", err)
	}
	select {
	case <-h.Lost():
		t.Error("the new hold is lost")
	default:
	}
	if err := old.Release(t.Context()); !errors.Is(err, impls.ErrLost) {
		t.Errorf("release of the old hold: %v", err)
	}
	if err := h.Release(t.Context()); err != nil {
		t.Errorf("release of the new hold: %v", err)
	}
}

func separateKeys(t *testing.T, addresses []string) {
	c := open(t, addresses...)
	for _, key := range []string{"a", "a/b", "a%2Fb", "../a", "a b"} {
		if _, err := c.TryAcquire(t.Context(), key, recipetest.NewAttempt()); err != nil {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

// deadServer: with no server at the address nothing is sent, and the error says
// so.
func deadServer(t *testing.T, addresses []string) {
	c := open(t, addresses...)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := c.cfg
	cfg.Addresses, cfg.Timeout = []string{unused}, 200*time.Millisecond
	if c, err := (mutex{}).Open(t.Context(), cfg); err == nil {
		_ = c.Close()
		t.Fatal("opened a client without a server")
	}
	base, err := connect(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer base.Close()
	base.session = c.session
	lone := &mutexClient{client: base}
	if _, err := lone.Acquire(t.Context(), "k", recipetest.NewAttempt()); !errors.Is(err, impls.ErrFailed) || errors.Is(err, impls.ErrUnknown) {
		t.Errorf("acquire without a server: %v, want no effect", err)
	}
}

// awaitQueue waits until n keys stand in the queue.
func awaitQueue(t *testing.T, c *mutexClient, key string, n int64) {
	t.Helper()
	for {
		resp, err := c.api.Get(t.Context(), prefix(key), clientv3.WithPrefix(), clientv3.WithCountOnly())
		if err != nil {
			t.Fatal(err)
		}
		if resp.Count == n {
			return
		}
		if err := c.cfg.Clock.Sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}
