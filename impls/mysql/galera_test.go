package mysql_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/impls/mysql"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// at has a client begin with one server of several.
func at(node int) func(*impls.Config) { return func(cfg *impls.Config) { cfg.Number = node } }

// onTrio runs a test of recipes on three servers that are all written to.
func onTrio(t *testing.T) (*cluster.Cluster, impls.Config) {
	t.Helper()
	t.Parallel()
	c := clustertest.Start(t, "mysql", "galera")
	cfg := recipetest.Config(c.Addresses(), c.Account(), time.Minute)
	cfg.Topology = "galera"
	return c, cfg
}

// ofGroup lists the recipes for several servers that are all written to, and
// whether each of these grants their locks by itself.
func ofGroup() map[impls.Recipe]bool {
	all := map[impls.Recipe]bool{}
	for _, r := range mysql.Recipes() {
		if i := r.Info(); slices.Contains(i.Topologies, "galera") {
			all[r] = slices.Contains(i.GrantsPerServer, "galera")
		}
	}
	return all
}

// TestGroup: a row is held by one client of all servers, and what a server grants
// by itself by one of each. A server that dies, or loses the others, ends nothing
// that is a row: its clients go to another, and find what is theirs.
func TestGroup(t *testing.T) {
	c, cfg := onTrio(t)
	type held struct {
		impls.Hold
		mine, others impls.Client
		free         string
		leased       bool
	}
	var rows []held
	for r, apart := range ofGroup() {
		key, free := recipetest.NewKey(), recipetest.NewKey()
		t.Logf("%s: each server by itself: %t", r.Info().ID, apart)
		recipetest.Prepare(t, r, cfg, key, free)
		var clients []impls.Client
		for node := range 3 {
			clients = append(clients, recipetest.Open(t, r, cfg, at(node)))
		}
		if apart {
			first, second := hold(t, clients[0], key), hold(t, clients[1], key)
			busy(t, recipetest.Open(t, r, cfg, at(1)), key)
			release(t, first, nil)
			release(t, second, nil)
			continue
		}
		onlyOne(t, clients, free)
		// What one server has freed is free at another at once.
		for i := range 60 {
			h, err := clients[i%3].TryAcquire(t.Context(), free, recipetest.NewAttempt())
			recipetest.WantOutcome(t, "try what another server has freed", err, nil)
			release(t, h, nil)
		}
		rows = append(rows, held{recipetest.RetryUntilAcquired(t, clients[0], key), clients[0], clients[1], free, r.Info().Bound == impls.BoundTTL})
	}
	if len(rows) < 2 {
		t.Fatalf("%d recipes take rows", len(rows))
	}
	do(t, c.Kill, 0)
	for _, h := range rows {
		busy(t, awaitServed(t, h.others, h.free), h.Key())
		if h.leased {
			recipetest.WantOutcome(t, "release at another server", recipetest.Settle(t, h.Hold), nil)
		}
	}
	// What frees whatever is there waits until the dead server can say that nothing
	// of the kind is under way there.
	do(t, c.Restart, 0)
	for _, h := range rows {
		if !h.leased {
			recipetest.WantOutcome(t, "release when it is back", recipetest.Settle(t, h.Hold), nil)
		}
		release(t, recipetest.RetryUntilAcquired(t, h.mine, h.Key()), nil)
	}
	do(t, c.Kill, 0)
	do(t, c.Kill, 1)
	for _, h := range rows {
		// The third is alone: whatever it says is that it does nothing.
		await(t, "no server serves", func() bool {
			hold, err := h.others.TryAcquire(t.Context(), h.free, recipetest.NewAttempt())
			if err == nil {
				_ = recipetest.Settle(t, hold)
			}
			return errors.Is(err, impls.ErrFailed)
		})
	}
}

// awaitServed returns the client when it has taken and freed a key.
func awaitServed(t *testing.T, c impls.Client, key string) impls.Client {
	t.Helper()
	release(t, recipetest.RetryUntilAcquired(t, c, key), nil)
	return c
}

// TestGroupDoubt: an acquire whose server stood still is in doubt until that
// server itself has said that it has no part in it any more.
func TestGroupDoubt(t *testing.T) {
	c, cfg := onTrio(t)
	r := recipe(t, "mysql/lease-row")
	key := recipetest.NewKey()
	recipetest.Prepare(t, r, cfg, key)
	mine, others := recipetest.Open(t, r, cfg, at(2)), recipetest.Open(t, r, cfg, at(0))
	do(t, c.Pause, 2)
	a := recipetest.NewAttempt()
	_, err := mine.TryAcquire(t.Context(), key, a)
	recipetest.WantOutcome(t, "try at a server that stands still", err, impls.ErrUnknown)
	recipetest.WantOutcome(t, "clean up meanwhile", mine.Cleanup(t.Context(), key, a), impls.ErrUnknown)
	do(t, c.Resume, 2)
	if err := recipetest.CleanUp(t, mine, key, a); err != nil && !errors.Is(err, impls.ErrLost) {
		t.Errorf("clean up: %v", err)
	}
	release(t, recipetest.RetryUntilAcquired(t, others, key), nil)
}

// onlyOne has clients try a free key at once, again and again: at most one has it.
func onlyOne(t *testing.T, clients []impls.Client, key string) {
	t.Helper()
	for range 20 {
		var wg sync.WaitGroup
		holds := make([]impls.Hold, len(clients))
		for i, c := range clients {
			wg.Go(func() {
				h, err := c.TryAcquire(t.Context(), key, recipetest.NewAttempt())
				switch {
				case err == nil:
					holds[i] = h
				case !errors.Is(err, impls.ErrBusy) && !errors.Is(err, impls.ErrFailed):
					t.Errorf("try: %v", err)
				}
			})
		}
		wg.Wait()
		holds = slices.DeleteFunc(holds, func(h impls.Hold) bool { return h == nil })
		if len(holds) > 1 {
			t.Fatalf("%d hold one row", len(holds))
		}
		for _, h := range holds {
			recipetest.WantOutcome(t, "release", recipetest.Settle(t, h), nil)
		}
	}
}
