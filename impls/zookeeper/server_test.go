package zookeeper

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// config has a session that a busy machine does not lose.
func config(addresses []string) impls.Config {
	return recipetest.Config(addresses, impls.Account{}, 5*time.Second)
}

// openAs opens a client of a recipe that calls steps, if not nil.
func openAs(t *testing.T, r impls.Recipe, addresses []string, steps impls.Steps) impls.Client {
	t.Helper()
	cfg := config(addresses)
	cfg.Steps = steps
	return recipetest.Open(t, r, cfg)
}

func openSequence(t *testing.T, addresses []string) *queueClient {
	return openAs(t, sequence{}, addresses, nil).(*queueClient)
}

func TestOnServer(t *testing.T) {
	addresses := clustertest.Start(t, "zookeeper", "single", clustertest.FastZooKeeper()).Addresses()
	checks := map[string]func(*testing.T, []string){
		"a cut connection keeps the lock": cutConnection,
		"close does not release":          closeKeeps,
		"lost place in the queue":         lostPlace,
		"gap in the queue":                gapInQueue,
		"keys do not share a queue":       separateKeys,
		"a key that was not prepared":     unprepared,
		"a TTL that the server changes":   changedTTL,
		"a dead server is no mystery":     deadServer,
		"pings are reported":              reportsPings,
		"watches come before replies":     rewatches,
		"sequence wakes one":              wakes(sequence{}, false),
		"writers wake one":                wakes(readWrite{}, false),
		"the library's lock wakes one":    wakes(clientLock{}, false),
		"an exclusive node wakes all":     wakes(exclusiveNode{}, true),
		"watched children wake all":       wakes(watchChildren{}, true),
		"arrivals wake all":               arrivalsWake,
		"readers share":                   readersShare,
		"a reader between writers":        betweenWriters,
		"readers after a writer":          readersAfterWriter,
		"tokens of writers":               writersTokens,
		"release frees another's":         foreignRelease,
		"and tries again until it does":   lateReleaseRepeats,
		"clean-up does not":               cleanupByOwner,
		"freed before the watch":          freedBeforeWatch,
		"waiter outlives its session":     waiterOutlivesItsSession,
		"the library forgets its node":    forgottenNode,
		"the library holds without node":  holdsWithoutNode,
		"the library goes on":             goesOn,
		"the library's holder waits":      holderWaits,
		"the library has no try":          noTry,
	}
	for _, r := range Recipes() {
		recipetest.Prepare(t, r, config(addresses), keys()...)
	}
	for name, check := range checks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, addresses)
		})
	}
}

// keys are all that the checks use.
func keys() []string {
	return []string{"cut", "closed", "place", "a", "a/b", "..", "gap", "served", "arrivals", "share", "between", "after", "tokens",
		"forgotten", "without", "goes on", "holder waits"}
}

func wakes(r impls.Recipe, herd bool) func(*testing.T, []string) {
	return func(t *testing.T, addresses []string) {
		recipetest.Waiters{N: 5, Herd: herd, Arrivals: r == (watchChildren{}), Ordered: r.Info().Promises(impls.Ordered),
			Open: func(t *testing.T, steps impls.Steps) impls.Client { return openAs(t, r, addresses, steps) },
		}.Served(t, "served")
	}
}

// cutConnection: the session outlives its connection, and with it the hold and
// the places in the queue.
func cutConnection(t *testing.T, addresses []string) {
	holder, waiter := openSequence(t, addresses), openSequence(t, addresses)
	h, err := holder.Acquire(t.Context(), "cut", recipetest.NewAttempt())
	if err != nil {
		t.Fatal(err)
	}
	// The waiter has its place, and knows it, before the cut: a place whose
	// answer the cut swallows is a doubt, and rightly so.
	place, err := waiter.enqueue(t.Context(), "cut", "", recipetest.NewAttempt())
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		err := waiter.wait(t.Context(), place)
		if err == nil {
			err = place.Release(t.Context())
		}
		got <- err
	}()
	awaitQueue(t, holder.client, "lock", "cut", 2)
	holder.driver.cut()
	waiter.driver.cut()
	if err := h.Release(t.Context()); err != nil {
		t.Errorf("release after a cut: %v", err)
	}
	if err := <-got; err != nil {
		t.Errorf("the waiter after a cut: %v", err)
	}
	select {
	case <-h.Lost():
		t.Error("lost by a cut that the session outlived")
	default:
	}
}

func closeKeeps(t *testing.T, addresses []string) {
	a, b := openSequence(t, addresses), openSequence(t, addresses)
	h, err := a.Acquire(t.Context(), "closed", recipetest.NewAttempt())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.TryAcquire(t.Context(), "closed", recipetest.NewAttempt()); !errors.Is(err, impls.ErrBusy) {
		t.Errorf("try after the holder was closed: %v, want busy until its session ends", err)
	}
	next, err := b.Acquire(t.Context(), "closed", recipetest.NewAttempt())
	if err != nil {
		t.Fatal(err)
	}
	if now := time.Now(); now.Before(h.LeaseEnd()) {
		t.Errorf("granted %v before the session's end", h.LeaseEnd().Sub(now))
	}
	if err := next.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func lostPlace(t *testing.T, addresses []string) {
	inside(addresses).LostPlace(t, "place", func(_ impls.Client, a impls.Attempt) {
		recipetest.WantOutcome(t, "clean up", openSequence(t, addresses).Cleanup(t.Context(), "place", a), nil)
	})
}

func gapInQueue(t *testing.T, addresses []string) { inside(addresses).Gap(t, "gap") }

func inside(addresses []string) recipetest.Queue {
	return recipetest.Queue{
		Open: func(t *testing.T) impls.Client { return openSequence(t, addresses) },
		Await: func(t *testing.T, key string, n int) {
			awaitQueue(t, openSequence(t, addresses).client, "lock", key, n)
		},
	}
}

func separateKeys(t *testing.T, addresses []string) {
	c := openSequence(t, addresses)
	for _, key := range []string{"a", "a/b", ".."} {
		if _, err := c.TryAcquire(t.Context(), key, recipetest.NewAttempt()); err != nil {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

func unprepared(t *testing.T, addresses []string) {
	c := openSequence(t, addresses)
	if _, err := c.Acquire(t.Context(), "not prepared", recipetest.NewAttempt()); !errors.Is(err, impls.ErrFailed) || !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("acquire: %v", err)
	}
	if err := c.Cleanup(t.Context(), "not prepared", recipetest.NewAttempt()); !errors.Is(err, impls.ErrLost) {
		t.Errorf("clean up: %v", err)
	}
}

func changedTTL(t *testing.T, addresses []string) {
	cfg := config(addresses)
	cfg.TTL = 100 * time.Millisecond
	if c, err := (sequence{}).Open(t.Context(), cfg); err == nil {
		_ = c.Close()
		t.Error("opened with a TTL that the server must raise")
	}
}

// deadServer: with no server at the address nothing is sent, and the error says
// so.
func deadServer(t *testing.T, _ []string) {
	cfg := config([]string{"127.0.0.1:1"})
	cfg.Timeout = 200 * time.Millisecond
	refused := errors.New("no server")
	cfg.Dial = func(context.Context, string, string) (net.Conn, error) { return nil, refused }
	c, err := (sequence{}).Open(t.Context(), cfg)
	if err == nil {
		_ = c.Close()
		t.Fatal("opened a client without a server")
	}
	if !errors.Is(err, refused) {
		t.Errorf("%v does not say why", err)
	}
}

// awaitQueue waits until n nodes stand in the queue.
func awaitQueue(t *testing.T, c *client, kind, key string, n int) {
	t.Helper()
	for {
		names, err := do(t.Context(), c.driver, func(conn *zk.Conn) ([]string, error) {
			names, _, err := conn.Children(parent(kind, key))
			return names, err
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == n {
			return
		}
		if err := c.driver.cfg.Clock.Sleep(t.Context(), time.Millisecond); err != nil {
			t.Fatal(err)
		}
	}
}
