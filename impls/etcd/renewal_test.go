package etcd

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// reportsRenewals: the renewals of a session are reported once for each hold of the
// session, not for released holds or waiters; and so is its end.
func reportsRenewals(t *testing.T, addresses []string) {
	for _, r := range []impls.Recipe{mutex{}, singleKey{}, clientMutex{}} {
		t.Run(r.Info().ID, func(t *testing.T) {
			t.Parallel()
			reported, gate := recipetest.NewRenewals(), recipetest.NewGate()
			cfg := config(addresses)
			cfg.TTL, cfg.Steps = 2*time.Second, gate // there are three renewals in it, for which the test waits
			c := recipetest.Open(t, r, cfg, recipetest.ReportingTo(reported))
			one := recipetest.Try(t, c, recipetest.NewKey())
			h := recipetest.Try(t, c, recipetest.NewKey())
			reported.Await(t, one, 0, nil)
			renewal := reported.Await(t, h, 0, nil)
			if end := renewal.Sent.Add(cfg.TTL); end.After(h.LeaseEnd()) {
				t.Errorf("renewed until %v, and it ends at %v", end, h.LeaseEnd())
			}
			recipetest.WantOutcome(t, "release", one.Release(t.Context()), nil)
			n := len(reported.Of(one.Attempt()))
			reported.Await(t, h, len(reported.Of(h.Attempt())), nil)
			if now := len(reported.Of(one.Attempt())); now != n {
				t.Errorf("reported %d times of a hold that was released", now-n)
			}
			lists := len(r.Info().Steps) > 0
			if reached := gate.Count(impls.StepRenewing) > 0; reached != lists {
				t.Errorf("came to the step of renewals: %t, and lists it: %t", reached, lists)
			}
			cl := clientOf(t, c)
			if _, err := cl.api.Revoke(t.Context(), cl.session.lease); err != nil {
				t.Fatal(err)
			}
			reported.Await(t, h, 0, impls.ErrLost)
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
