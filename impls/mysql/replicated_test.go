package mysql_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/impls/mysql"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// pair is a primary, a replica, and two clients of every recipe.
type pair struct {
	cluster *cluster.Cluster
	cfg     impls.Config
	clients []couple
}

// couple are two clients of a recipe, and a key that the first holds.
type couple struct {
	impls.Info
	first, second impls.Client
	hold          impls.Hold
	free          string // a free key
}

// outlives reports whether the recipe's lock is a row, which a replica has too.
func (c couple) outlives() bool { return c.Bound != impls.BoundConnection }

func newPair(t *testing.T) *pair {
	t.Helper()
	t.Parallel()
	c := clustertest.Start(t, "mysql", "replicated")
	p := &pair{c, recipetest.Config(c.Addresses(), c.Account(), time.Minute), nil}
	p.cfg.Topology = "replicated"
	for _, r := range mysql.Recipes() {
		key, free := recipetest.NewKey(), recipetest.NewKey()
		recipetest.Prepare(t, r, p.cfg, key, free)
		one := couple{Info: r.Info(), free: free, first: recipetest.Open(t, r, p.cfg), second: recipetest.Open(t, r, p.cfg)}
		one.hold = hold(t, one.first, key)
		p.clients = append(p.clients, one)
	}
	return p
}

// spread returns when the replica has what the primary has.
func (p *pair) spread(t *testing.T) {
	t.Helper()
	if _, err := adminOf(t, p.cluster, 0).ExecContext(t.Context(), "CREATE TABLE spread (id INT)"); err != nil {
		t.Fatal(err)
	}
	replica := adminOf(t, p.cluster, 1)
	await(t, "the replica has the newest table", func() bool {
		_, err := replica.ExecContext(t.Context(), "SELECT * FROM spread")
		return err == nil
	})
}

// do has the cluster do something with a node.
func do(t *testing.T, what func(context.Context, int) error, node int) {
	t.Helper()
	if err := what(t.Context(), node); err != nil {
		t.Fatal(err)
	}
}

// taken checks the locks after a failover: rows are held as before, and what
// connections held is free. All can be locked and freed again.
func (p *pair) taken(t *testing.T) {
	t.Helper()
	for _, c := range p.clients {
		t.Log(c.ID)
		release(t, recipetest.RetryUntilAcquired(t, c.second, c.free), nil)
		key, lost := c.hold.Key(), error(nil)
		if c.outlives() {
			busy(t, c.second, key)
		} else {
			release(t, recipetest.RetryUntilAcquired(t, c.second, key), nil)
			lost = impls.ErrLost
		}
		recipetest.WantOutcome(t, c.ID+": release", recipetest.Settle(t, c.hold), lost)
		release(t, recipetest.RetryUntilAcquired(t, c.first, key), nil)
	}
}

// TestPrimaryKilled: clients find the new primary.
func TestPrimaryKilled(t *testing.T) {
	p := newPair(t)
	for _, c := range p.clients {
		busy(t, c.second, c.hold.Key())
	}
	p.spread(t)
	do(t, p.cluster.Kill, 0)
	for _, c := range p.clients {
		_, err := c.second.TryAcquire(t.Context(), c.free, recipetest.NewAttempt())
		if err == nil || errors.Is(err, impls.ErrBusy) || errors.Is(err, impls.ErrLost) {
			t.Errorf("%s: try without a primary: %v", c.ID, err)
		}
	}
	do(t, p.cluster.Promote, 1)
	p.taken(t)
}

// TestPrimaryFenced: a primary that takes no writes any more grants nothing, on
// connections from before either, and what it says of that is definite; then
// clients find the new one.
func TestPrimaryFenced(t *testing.T) {
	p := newPair(t)
	p.spread(t)
	do(t, p.cluster.Fence, 0)
	for _, c := range p.clients {
		for range 2 { // by the connection that it had, and by a new one
			_, err := c.second.TryAcquire(t.Context(), c.free, recipetest.NewAttempt())
			recipetest.WantOutcome(t, c.ID+": try of a fenced server", err, impls.ErrFailed)
		}
	}
	do(t, p.cluster.Promote, 1)
	for _, c := range p.clients {
		if !c.outlives() { // the old server has it still, and frees it
			recipetest.WantOutcome(t, c.ID+": release", recipetest.Settle(t, c.hold), nil)
			release(t, recipetest.RetryUntilAcquired(t, c.second, c.hold.Key()), nil)
		}
	}
	p.clients = slices.DeleteFunc(p.clients, func(c couple) bool { return !c.outlives() })
	p.taken(t)
}
