package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/reference"
)

// mutants lists ways to be wrong, each by the check that must notice it.
func mutants() map[string]struct {
	check string
	mutant
} {
	type entry = struct {
		check string
		mutant
	}
	nothing := func(context.Context) error { return nil }
	var mu sync.Mutex
	holders := map[string]impls.Attempt{}
	var asked atomic.Uint64
	return map[string]entry{
		"grants a held lock to a try": {"busy", mutant{client: func(c *mutantClient) {
			inner := c.try
			c.try = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				h, err := inner(ctx, key, a)
				if errors.Is(err, impls.ErrBusy) {
					return imagined{key, a}, nil
				}
				return h, err
			}
		}}},
		"grants without asking": {"exclusive", mutant{client: func(c *mutantClient) {
			c.acquire = func(_ context.Context, key string, a impls.Attempt) (impls.Hold, error) { return imagined{key, a}, nil }
		}}},
		"does not wait for the holder": {"hand-over", mutant{client: func(c *mutantClient) {
			inner := c.acquire
			c.acquire = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				ctx, cancel := context.WithTimeout(ctx, 5*time.Millisecond)
				defer cancel()
				if h, err := inner(ctx, key, a); err == nil {
					return h, nil
				}
				return imagined{key, a}, nil
			}
		}}},
		"cleans up any holder": {"symmetric", mutant{
			client: func(c *mutantClient) {
				inner := c.cleanup
				c.cleanup = func(ctx context.Context, key string, _ impls.Attempt) error {
					mu.Lock()
					defer mu.Unlock()
					return inner(ctx, key, holders[key])
				}
			},
			hold: func(h *mutantHold) {
				mu.Lock()
				defer mu.Unlock()
				holders[h.Key()] = h.Attempt()
			},
		}},
		"says that a second release freed it": {"once", mutant{hold: func(h *mutantHold) {
			h.release = func(ctx context.Context) error { _ = h.Hold.Release(ctx); return nil }
		}}},
		"does not release": {"busy", mutant{hold: func(h *mutantHold) { h.release = nothing }}},
		"takes the lock from its holder when it gives up": {"cancelled waiter", mutant{
			client: func(c *mutantClient) {
				inner := c.acquire
				c.acquire = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
					h, err := inner(ctx, key, a)
					if err != nil {
						mu.Lock()
						defer mu.Unlock()
						_ = c.Client.Cleanup(context.WithoutCancel(ctx), key, holders[key])
					}
					return h, err
				}
			},
			hold: func(h *mutantHold) {
				mu.Lock()
				defer mu.Unlock()
				holders[h.Key()] = h.Attempt()
			},
		}},
		"forgets why it ended": {"cancelled waiter", mutant{client: func(c *mutantClient) {
			inner := c.acquire
			c.acquire = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				h, err := inner(ctx, key, a)
				if err != nil {
					err = impls.ErrFailed
				}
				return h, err
			}
		}}},
		"does not look at the context": {"context over", mutant{client: func(c *mutantClient) {
			inner := c.try
			c.try = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				return inner(context.WithoutCancel(ctx), key, a)
			}
		}}},
		"numbers tokens by who asked first": {"fencing", mutant{client: func(c *mutantClient) {
			inner := c.acquire
			c.acquire = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				n := asked.Add(1)
				h, err := inner(ctx, key, a)
				return numbered{h, n}, err
			}
		}}},
		"is granted what it cannot ask for": {"unreachable", mutant{client: func(c *mutantClient) {
			inner := c.try
			c.try = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				h, err := inner(ctx, key, a)
				if errors.Is(err, impls.ErrFailed) {
					return imagined{key, a}, nil
				}
				return h, err
			}
		}}},
		"calls everything a doubt": {"unreachable", mutant{client: func(c *mutantClient) {
			inner := c.try
			c.try = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				h, err := inner(ctx, key, a)
				if errors.Is(err, impls.ErrFailed) {
					err = impls.ErrUnknown
				}
				return h, err
			}
		}}},
		"never comes back": {"unreachable", mutant{client: func(c *mutantClient) {
			inner, out := c.try, false
			c.try = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				h, err := inner(ctx, key, a)
				out = out || errors.Is(err, impls.ErrFailed)
				return h, err
			}
			acquire := c.acquire
			c.acquire = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				if out {
					return nil, impls.ErrFailed
				}
				return acquire(ctx, key, a)
			}
		}}},
		"repeats a token":       {"fencing", mutant{hold: func(h *mutantHold) { h.fence = func() uint64 { return 7 } }}},
		"has undeclared tokens": {"no fencing", mutant{info: func(i *impls.Info) { i.Fencing = false }}},
		"cleans up without asking": {"lost answer to an acquire", mutant{client: func(c *mutantClient) {
			c.cleanup = func(context.Context, string, impls.Attempt) error { return impls.ErrLost }
		}}},
		"takes silence for a clean-up": {"lost answer to an acquire", mutant{client: func(c *mutantClient) {
			inner := c.cleanup
			c.cleanup = func(ctx context.Context, key string, a impls.Attempt) error {
				if err := inner(ctx, key, a); errors.Is(err, impls.ErrLost) {
					return err
				}
				return nil
			}
		}}},
		"takes silence for a refusal": {"lost answer to an acquire", mutant{client: func(c *mutantClient) {
			inner := c.acquire
			c.acquire = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
				h, err := inner(ctx, key, a)
				if errors.Is(err, impls.ErrUnknown) {
					err = impls.ErrFailed
				}
				return h, err
			}
		}}},
		"takes silence for a release": {"lost answer to a release", mutant{hold: func(h *mutantHold) {
			h.release = func(ctx context.Context) error {
				if err := h.Hold.Release(ctx); errors.Is(err, impls.ErrLost) {
					return err
				}
				return nil
			}
		}}},
		"counts the lease by another clock": {"lease's end", mutant{hold: func(h *mutantHold) {
			h.end = func() time.Time { return time.Now().Add(time.Second) }
		}}},
		"counts the lease by its clock's hands": {"lease's end", mutant{open: func(cfg *impls.Config) {
			cfg.Clock = struct{ impls.Clock }{cfg.Clock} // which has no Monotonic
		}}},
		"counts the lease from the answer": {"lease's end", mutant{hold: func(h *mutantHold) {
			end := h.Hold.LeaseEnd().Add(time.Second) // a slow answer, so to speak
			h.end = func() time.Time { return end }
		}}},
		"believes in too long a lease": {"expiry", mutant{hold: func(h *mutantHold) {
			end := h.Hold.LeaseEnd().Add(10 * time.Second)
			h.end = func() time.Time { return end }
		}}},
		"releases what expired": {"expiry", mutant{hold: func(h *mutantHold) {
			h.release = func(ctx context.Context) error { _ = h.Hold.Release(ctx); return nil }
		}}},
		"does not extend":       {"extend", mutant{hold: func(h *mutantHold) { h.extend = nothing }}},
		"does not renew itself": {"kept session", mutant{info: func(i *impls.Info) { i.Bound = impls.BoundSession }, hold: unextendable}},
		"does not report a loss": {"lost session", mutant{info: func(i *impls.Info) {
			i.Bound, i.Properties = impls.BoundSession, append(i.Properties, impls.SignalsLoss)
		}, hold: unextendable}},
		"reports a loss a lease too late": {"lost session", mutant{info: func(i *impls.Info) {
			i.Bound, i.Properties = impls.BoundSession, append(i.Properties, impls.SignalsLoss)
		}, hold: func(h *mutantHold) {
			unextendable(h)
			lost := make(chan struct{})
			h.lost = lost
			// Two leases and more after the end of its own, and before the check gives up.
			time.AfterFunc(time.Until(h.LeaseEnd())+1200*time.Millisecond, func() { close(lost) })
		}}},
	}
}

func unextendable(h *mutantHold) {
	h.extend = func(context.Context) error { return errors.ErrUnsupported }
}

// TestMutantsAreCaught: every check notices what it is there for, and has
// nothing to say about the right lock.
func TestMutantsAreCaught(t *testing.T) {
	t.Parallel()
	cfg, _, _, _ := start(t, "reference", "single")
	cfg.TTL = 500 * time.Millisecond
	right := reference.Recipes()[0]
	used := map[string]bool{}
	t.Run("wrong", func(t *testing.T) {
		for name, m := range mutants() {
			used[m.check] = true
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				wrong := m.mutant
				wrong.Recipe = right
				s := conformance.Subject{Recipe: wrong, Config: cfg, Patience: 2 * time.Second}
				if m.check == "busy" || m.check == "symmetric" || m.check == "cancelled waiter" {
					s.Config.TTL = time.Minute // what is wrong must not heal by expiry
				}
				if len(failures(t, m.check, s)) == 0 {
					t.Errorf("the check %q has nothing to say about a lock that %s", m.check, name)
				}
			})
		}
	})
	for _, c := range conformance.Checks(right.Info()) {
		if !used[c.Name] {
			t.Errorf("the check %q has no wrong lock that it must catch", c.Name)
		}
	}
}

// TestBrokenReferenceIsCaught: the control that is wrong once in a while.
func TestBrokenReferenceIsCaught(t *testing.T) {
	t.Parallel()
	cfg, _, _, _ := start(t, "reference", "single")
	cfg.TTL = time.Minute
	cfg.Wait = nil
	broken := reference.Recipes()[1]
	// One attempt in a hundred: a few rounds of the check see it.
	for range 50 {
		if len(failures(t, "exclusive", conformance.Subject{Recipe: broken, Config: cfg})) > 0 {
			return
		}
	}
	t.Error("50 rounds saw nothing wrong with the broken lock")
}

// TestSlowAnswersAreNoFault: a try whose request timed out is made again, even if
// it was carried out.
func TestSlowAnswersAreNoFault(t *testing.T) {
	t.Parallel()
	cfg, _, _, _ := start(t, "reference", "single")
	cfg.TTL = 3 * time.Second
	slow := mutant{Recipe: reference.Recipes()[0], client: func(c *mutantClient) {
		inner, asked := c.try, 0
		c.try = func(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
			h, err := inner(ctx, key, a)
			if asked++; asked%2 == 1 {
				return nil, fmt.Errorf("%w: %w", impls.ErrUnknown, os.ErrDeadlineExceeded)
			}
			return h, err
		}
	}}
	for _, check := range []string{"symmetric", "once", "expiry", "extend"} {
		if list := failures(t, check, conformance.Subject{Recipe: slow, Config: cfg}); len(list) > 0 {
			t.Errorf("%s: %v", check, list)
		}
	}
}

// TestCostIsCaught: a recipe that sends more, or less, than it says.
func TestCostIsCaught(t *testing.T) {
	cfg, _, counters, _ := start(t, "reference", "single")
	cfg.TTL = time.Minute
	for trips, ok := range map[int]bool{1: false, 2: true, 3: false} {
		r := &recorder{T: t}
		conformance.Cost(r, conformance.Subject{Config: cfg, Recipe: mutant{
			Recipe: reference.Recipes()[0],
			info:   func(i *impls.Info) { i.RoundTrips = trips },
		}}, counters)
		if (len(r.failures) == 0) != ok {
			t.Errorf("a cost of %d: %v", trips, r.failures)
		}
		for _, f := range r.cleanups {
			f()
		}
	}
}
