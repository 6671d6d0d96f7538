package conformance_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/impls/etcd"
	"github.com/lockbench/lockbench/impls/reference"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// lacking is a lock that lacks a property.
type lacking struct {
	property impls.Property
	recipe   impls.Recipe
}

// find is the catalogue of the client processes: all recipes, and the planted
// ones.
func find(id string) (impls.Recipe, bool) {
	for _, l := range planted() {
		if l.recipe.Info().ID == id {
			return l.recipe, true
		}
	}
	return all.Find(id)
}

// plant is the right lock with something wrong about it, by a name of its own.
func plant(id string, p impls.Property, m mutant) lacking {
	if m.Recipe == nil {
		m.Recipe = reference.Recipes()[0]
	}
	m.info = func(i *impls.Info) { i.ID = "planted/" + id }
	return lacking{p, m}
}

// control is one of the reference locks that are wrong on purpose.
func control(id string, p impls.Property) lacking {
	r, _ := all.Find(id)
	return lacking{p, r}
}

// planted lists a lock, or more, for each property, that lacks it.
func planted() []lacking {
	const between impls.Step = "between"
	return []lacking{
		plant("grants-what-is-held", impls.Exclusive, mutant{client: func(c *mutantClient) {
			c.acquire = func(_ context.Context, key string, a impls.Attempt) (impls.Hold, error) { return imagined{key, a}, nil }
		}}),
		plant("looks-before-it-takes", impls.Exclusive, mutant{client: func(c *mutantClient) {
			inner := c.acquire
			c.acquire = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				h, err := inner(ctx, key, a)
				if err == nil {
					_ = h.Release(ctx)
					c.cfg.Reach(ctx, between)
					h = believed{h, c.cfg.Clock.Now().Add(c.cfg.TTL)}
					_, _ = c.Client.TryAcquire(ctx, key, a)
				}
				return h, err
			}
		}}),
		plant("never-expires", impls.DeadlockFree, mutant{open: forAnHour}),
		plant("expires-in-a-second-step", impls.DeadlockFree, mutant{open: forAnHour, client: func(c *mutantClient) {
			inner := c.acquire
			c.acquire = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				h, err := inner(ctx, key, a)
				if err != nil {
					return nil, err
				}
				c.cfg.Reach(ctx, between)
				return h, c.shorten(ctx, key, a)
			}
		}}),
		control("reference/broken-owner", impls.Symmetric),
		{impls.Available, mutant{Recipe: etcd.Recipes()[0], info: func(i *impls.Info) { i.ID = "planted/one-of-three" },
			open: func(cfg *impls.Config) { cfg.Addresses = cfg.Addresses[:1] }}},
		{impls.Reenterable, nesting{name: "planted/frees-at-the-first-release"}},
		plant("does-not-wait", impls.Blocking, mutant{client: func(c *mutantClient) { c.acquire = c.try }}),
		plant("waits-for-ever", impls.Blocking, mutant{client: func(c *mutantClient) {
			inner := c.acquire
			c.acquire = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				return inner(context.WithoutCancel(ctx), key, a)
			}
		}}),
		plant("tries-until-granted", impls.NonBlocking, mutant{open: forAnHour, client: func(c *mutantClient) { c.try = c.acquire }}),
		plant("lasts-for-ever", impls.Expiry, mutant{open: forAnHour}),
		control("reference/mutex", impls.Ordered),
		{impls.ReadWrite, sharing{name: "planted/readers-exclude-readers"}},
		{impls.ReadWrite, sharing{name: "planted/readers-let-writers-in", always: true}},
		{impls.Batch, batching{name: "planted/no-rollback"}},
		{impls.Batch, batching{name: "planted/takes-what-it-can", rollback: true, some: true}},
		control("reference/broken-late", impls.ReportsLost),
		plant("goes-on-waiting", impls.CleansUp, mutant{open: forAnHour, client: func(c *mutantClient) {
			inner := c.acquire
			c.acquire = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				h, err := inner(ctx, key, a)
				if err != nil {
					_, _ = inner(context.WithoutCancel(ctx), key, a)
				}
				return h, err
			}
		}}),
		plant("takes-a-leftover-with-it", impls.CleansUp, mutant{open: forAnHour, client: func(c *mutantClient) {
			inner, ghosts := c.acquire, sync.WaitGroup{}
			c.acquire = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				h, err := inner(ctx, key, a)
				if err == nil {
					return h, nil
				}
				other, operr := c.m.Recipe.Open(context.WithoutCancel(ctx), c.cfg)
				if operr != nil {
					return nil, operr
				}
				ghosts.Go(func() { _, _ = other.Acquire(context.WithoutCancel(ctx), key, newAttempt()) })
				return h, err
			}
		}}),
		control("reference/mutex", impls.SignalsLoss),
		plant("does-not-extend", impls.Extends, mutant{hold: func(h *mutantHold) {
			h.extend = func(context.Context) error { return nil }
		}}),
		plant("revives", impls.Extends, mutant{client: func(c *mutantClient) {
			inner := c.acquire
			c.acquire = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				h, err := inner(ctx, key, a)
				return revived{h}, err
			}
		}}),
		plant("releases-twice", impls.Once, mutant{hold: func(h *mutantHold) {
			h.release = func(ctx context.Context) error { _ = h.Hold.Release(ctx); return nil }
		}}),
	}
}

// forAnHour makes leases that no test waits for.
func forAnHour(cfg *impls.Config) { cfg.TTL = time.Hour }

// shorten gives the attempt a lease of the TTL that was asked for.
func (c *mutantClient) shorten(ctx context.Context, key string, a impls.Attempt) error {
	short, err := c.m.Recipe.Open(ctx, c.asked)
	if err != nil {
		return err
	}
	defer short.Close()
	h, err := short.TryAcquire(ctx, key, a)
	if err != nil {
		return err
	}
	return h.Extend(ctx)
}

// believed is a hold that its client believes in until a time of its own.
type believed struct {
	impls.Hold
	end time.Time
}

func (h believed) LeaseEnd() time.Time { return h.end }

// revived is a hold that says it could be extended.
type revived struct{ impls.Hold }

func (h revived) Extend(ctx context.Context) error {
	if err := h.Hold.Extend(ctx); !errors.Is(err, impls.ErrLost) {
		return err
	}
	return nil
}

// TestEveryPropertyHasALockThatLacksIt: what is measured is seen to be missing
// where it is.
func TestEveryPropertyHasALockThatLacksIt(t *testing.T) {
	t.Parallel()
	cfg, _, _, _ := start(t, "reference", "single")
	cfg.TTL = 500 * time.Millisecond
	list := planted()
	for _, p := range impls.Properties() {
		if !slices.ContainsFunc(list, func(l lacking) bool { return l.property == p.Property }) {
			t.Errorf("no lock lacks %s", p.Property)
		}
	}
	for _, l := range list {
		t.Run(string(l.property)+"/"+l.recipe.Info().ID, func(t *testing.T) {
			t.Parallel()
			s := conformance.Subject{Recipe: l.recipe, Config: cfg, Grace: 4 * time.Second}
			if l.property == impls.Available {
				c := clustertest.Start(t, "etcd", "quorum")
				s.Config = impls.Config{Addresses: c.Addresses(), TTL: 2 * time.Second}
				s.Servers = c
			}
			list, err := conformance.Measure(t.Context(), s, conformance.Only(l.property))
			if err != nil {
				t.Fatal(err)
			}
			if len(list) != 1 || list[0].Measured != conformance.No {
				t.Errorf("measured: %v", list)
			}
			t.Log(list)
		})
	}
}
