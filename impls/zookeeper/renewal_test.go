package zookeeper

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// reportsPings: the driver's pings are reported as renewals of what is held, and only
// of that, and so is that the session was taken up again.
func reportsPings(t *testing.T, addresses []string) {
	for _, r := range []impls.Recipe{sequence{}, exclusiveNode{}, clientLock{}} {
		t.Run(r.Info().ID, func(t *testing.T) {
			t.Parallel()
			reported := recipetest.NewRenewals()
			cfg := config(addresses)
			cfg.TTL = 2 * time.Second // there are three pings in it, for which the test waits
			c := recipetest.Open(t, r, cfg, recipetest.ReportingTo(reported))
			keys := []string{recipetest.NewKey(), recipetest.NewKey()}
			recipetest.Prepare(t, r, cfg, keys...)
			before, h := acquire(t, c, keys[0]), acquire(t, c, keys[1])
			reported.Await(t, before, 0, nil)
			one := reported.Await(t, h, 0, nil)
			if end := one.Sent.Add(cfg.TTL); end.After(h.LeaseEnd()) {
				t.Errorf("renewed until %v, and it ends at %v", end, h.LeaseEnd())
			}
			release(t, before)
			n := len(reported.Of(before.Attempt()))
			reported.Await(t, h, len(reported.Of(h.Attempt())), nil)
			if now := len(reported.Of(before.Attempt())); now != n {
				t.Errorf("reported %d times of a hold that was released", now-n)
			}
			d := driverOf(t, c)
			d.cut() // it comes back with the same session
			reported.Await(t, h, len(reported.Of(h.Attempt())), nil)
			if d.current().isLost() {
				t.Error("the session was lost")
			}
		})
	}
}

// driverOf is the driver of a client of any recipe.
func driverOf(t *testing.T, c impls.Client) *driver {
	t.Helper()
	switch c := c.(type) {
	case *queueClient:
		return c.driver
	case *exclusiveClient:
		return c.driver
	case *libraryClient:
		return c.driver
	}
	t.Fatalf("a client of type %T", c)
	return nil
}
