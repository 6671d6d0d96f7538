package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/impls/postgres"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// The keeper promotes the replica when the primary is silent, and the old primary
// becomes its replica when it is back.
func TestFailover(t *testing.T) {
	for name, fault := range map[string]struct{ inject, heal func(*cluster.Cluster) error }{
		"killed": {
			func(c *cluster.Cluster) error { return c.Kill(context.Background(), 0) },
			func(c *cluster.Cluster) error { return c.Restart(context.Background(), 0) },
		},
		"paused": {
			func(c *cluster.Cluster) error { return c.Pause(context.Background(), 0) },
			func(c *cluster.Cluster) error { return c.Resume(context.Background(), 0) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := clustertest.StartSpec(t, cluster.Spec{Backend: "postgres", Topology: "replicated", Keeper: true,
				Settings: map[string]string{"synchronous_standby_names": "*"}})
			cfg := recipetest.Config(c.Addresses(), c.Account(), time.Minute)
			cfg.Topology = "replicated"
			row := recipetest.Find(t, postgres.Recipes(), "postgres/lease-row")
			name := recipetest.Find(t, postgres.Recipes(), "postgres/advisory")
			key := recipetest.NewKey()
			recipetest.Prepare(t, row, cfg, key)
			first, second := recipetest.Open(t, row, cfg), recipetest.Open(t, row, cfg)
			held, named := hold(t, first, key), hold(t, recipetest.Open(t, name, cfg), key)
			other := recipetest.Open(t, name, cfg)
			recipetest.Busy(t, other, key)

			if err := fault.inject(c); err != nil {
				t.Fatal(err)
			}
			await(t, "the replica leads", func() bool {
				lead, err := c.Leader(t.Context())
				return err == nil && lead == 1
			})
			// The row was sent before its commit was confirmed; the session's lock is
			// not replicated.
			next := recipetest.RetryUntilAcquired(t, other, key)
			await(t, "a try of the row is answered", func() bool {
				_, err := second.TryAcquire(t.Context(), key, recipetest.NewAttempt())
				if err == nil {
					t.Fatal("the row was granted again")
				}
				return errors.Is(err, impls.ErrBusy)
			})
			recipetest.WantOutcome(t, "release at the new primary", next.Release(t.Context()), nil)

			if err := fault.heal(c); err != nil {
				t.Fatal(err)
			}
			await(t, "the old primary follows the new one", func() bool { return c.Healthy(t.Context()) == nil })
			await(t, "the hold is released", func() bool { return held.Release(t.Context()) == nil })
			if err := named.Release(t.Context()); err == nil {
				t.Error("a lock of the old primary's was released")
			}
		})
	}
}
