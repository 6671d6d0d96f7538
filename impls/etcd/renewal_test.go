package etcd

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// tellsRenewals: the renewals of a session are told once for each hold that hangs
// on it, and of nobody who has released or still waits; and so is its end.
func tellsRenewals(t *testing.T, addresses []string) {
	for _, r := range []impls.Recipe{mutex{}, singleKey{}, clientMutex{}} {
		t.Run(r.Info().ID, func(t *testing.T) {
			t.Parallel()
			told, gate := recipetest.NewRenewals(), recipetest.NewGate()
			cfg := config(addresses)
			cfg.TTL, cfg.Steps = 2*time.Second, gate // there are three renewals in it, for which the test waits
			c := recipetest.Open(t, r, cfg, recipetest.ReportingTo(told))
			one := recipetest.Try(t, c, recipetest.NewKey())
			h := recipetest.Try(t, c, recipetest.NewKey())
			told.Await(t, one, 0, nil)
			renewal := told.Await(t, h, 0, nil)
			if end := renewal.Sent.Add(cfg.TTL); end.After(h.LeaseEnd()) {
				t.Errorf("renewed until %v, and it ends at %v", end, h.LeaseEnd())
			}
			recipetest.WantOutcome(t, "release", one.Release(t.Context()), nil)
			n := len(told.Of(one.Attempt()))
			told.Await(t, h, len(told.Of(h.Attempt())), nil)
			if now := len(told.Of(one.Attempt())); now != n {
				t.Errorf("told %d times of a hold that was released", now-n)
			}
			lists := len(r.Info().Steps) > 0
			if reached := gate.Count(impls.StepRenewing) > 0; reached != lists {
				t.Errorf("came to the step of renewals: %t, and lists it: %t", reached, lists)
			}
			cl := clientOf(t, c)
			if _, err := cl.api.Revoke(t.Context(), cl.session.lease); err != nil {
				t.Fatal(err)
			}
			told.Await(t, h, 0, impls.ErrLost)
			<-h.Lost()
		})
	}
}

// clientOf is what the clients of all recipes have in common.
func clientOf(t *testing.T, c impls.Client) *client {
	t.Helper()
	switch c := c.(type) {
	case *mutexClient:
		return c.client
	case *singleClient:
		return c.client
	case *libraryClient:
		return c.client
	}
	t.Fatalf("a client of type %T", c)
	return nil
}
