package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// Subject is what is tested.
type Subject struct {
	Recipe impls.Recipe
	// Config opens the clients. Addresses and TTL are required, and Account
	// where the backend wants it; the rest has defaults: a plain dialer, the
	// system's clock, waits of 1 to 3 ms and 2 s for a request. Checks that lose
	// answers or connections give their client a dialer of their own. The leased
	// recipes' checks last a few TTLs, so a short one that the backend can
	// serve is best.
	Config impls.Config
	// CalmTTL is the TTL in those checks in which no lease is to end. 0 means
	// that of Config; a long one keeps a machine that is slow for a moment from
	// ending leases during them.
	CalmTTL time.Duration
	// Patience is how long the suite waits for what must happen, before it
	// gives up and fails. 0 means four TTLs and a minute.
	Patience time.Duration
	// Grace is how long beyond a bound Measure waits for what must happen,
	// before it answers that it does not. 0 means 10 s, which leaves a busy
	// machine its time.
	Grace time.Duration
	// Servers takes servers away, for Available. Nil leaves that unknown
	// where there are several.
	Servers Servers
}

// T is what a check needs of *testing.T.
type T interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
	Context() context.Context
}

// Tester is what Run needs of a test. *testing.T is one.
type Tester[X any] interface {
	T
	Run(name string, f func(X)) bool
	Parallel()
}

// Run tests a lock: every check that is meant for it, side by side, and then
// every property, as measured against what the recipe promises. What Measure
// says of client processes holds for Run.
func Run[X Tester[X]](t X, s Subject) {
	t.Helper()
	s = s.withDefaults()
	t.Run("checks", func(t X) { RunChecks(t, s) })
	t.Run("properties", func(t X) {
		list, err := Measure(t.Context(), s)
		if err != nil {
			t.Fatalf("%v", err)
		}
		for _, f := range list {
			t.Run(string(f.Property), func(t X) {
				if t.Logf("%v", f); !f.AsPromised() {
					t.Errorf("%s is not as promised: %v", s.Recipe.Info().ID, f)
				}
			})
		}
	})
}

// RunChecks runs every check that is meant for the lock as a sub-test, side by
// side if its keys do not get in one another's way.
func RunChecks[X Tester[X]](t X, s Subject) {
	t.Helper()
	s = s.withDefaults()
	oneByOne, err := s.collide(t.Context())
	if err != nil {
		t.Fatalf("%v", err)
	}
	for _, c := range Checks(s.Recipe.Info()) {
		t.Run(c.Name, func(t X) {
			if !oneByOne {
				t.Parallel()
			}
			c.Run(t, s)
		})
	}
}

func (s Subject) withDefaults() Subject {
	if s.Config.Dial == nil {
		var d net.Dialer
		s.Config.Dial = d.DialContext
	}
	if s.Config.Clock == nil {
		s.Config.Clock = impls.SystemClock()
	}
	if s.Config.Timeout == 0 {
		s.Config.Timeout = 2 * time.Second
	}
	if s.Patience == 0 {
		s.Patience = 4*s.Config.TTL + time.Minute
	}
	if s.Grace == 0 {
		s.Grace = 10 * time.Second
	}
	return s
}

// config is what a client is opened with: with a wait policy of its own.
func (s Subject) config() impls.Config {
	if s.Config.Wait == nil {
		s.Config.Wait = shortWaits()
	}
	return s.Config
}

// open opens one more client.
func (s Subject) open(t T) impls.Client {
	t.Helper()
	c, err := impls.OpenPatiently(t.Context(), s.Recipe, s.config())
	if err != nil {
		t.Fatalf("open a client: %v", err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close a client: %v", err)
		}
	})
	return c
}

// key prepares a new key.
func (s Subject) key(t T) string {
	t.Helper()
	key := newKey()
	s.prepare(t, key)
	return key
}

func (s Subject) prepare(t T, key string) {
	t.Helper()
	if err := impls.PreparePatiently(t.Context(), s.Recipe, s.config(), []string{key}); err != nil {
		t.Fatalf("prepare %s: %v", key, err)
	}
}

func newKey() string { return "conformance." + attempt().String() }

func attempt() (a impls.Attempt) {
	_, _ = rand.Read(a[:]) // never fails, by its documentation
	return a
}

// acquire acquires, and fails the test unless that works in time.
func (s Subject) acquire(t T, c impls.Client, key string) impls.Hold {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), s.Patience)
	defer cancel()
	h, err := c.Acquire(ctx, key, attempt())
	if err != nil {
		t.Fatalf("acquire: %v", err)
	}
	return h
}

// want fails the test unless err is the outcome named, and no other.
func want(t T, doing string, err, outcome error) {
	t.Helper()
	if outcome == nil {
		if err != nil {
			t.Fatalf("%s: %v", doing, err)
		}
		return
	}
	if !errors.Is(err, outcome) {
		t.Fatalf("%s: got %v, want %v", doing, err, outcome)
	}
	if !errors.Is(outcome, impls.ErrUnknown) && errors.Is(err, impls.ErrUnknown) {
		t.Fatalf("%s: %v is a doubt, want %v", doing, err, outcome)
	}
}

func release(t T, h impls.Hold) {
	t.Helper()
	want(t, "release", h.Release(t.Context()), nil)
}

// try tries, and fails the test unless it comes to the outcome named.
func (s Subject) try(t T, doing string, c impls.Client, key string, outcome error) impls.Hold {
	t.Helper()
	h, err := s.answeredTry(t, c, key)
	for n := 1; n < tries && outcome == nil && errors.Is(err, errTookUnseen); n++ {
		h, err = s.answeredTry(t, c, key)
	}
	want(t, doing, err, outcome)
	return h
}

// errTookUnseen: a try whose answer was lost had taken the key, since its clean-up
// freed it.
var errTookUnseen = errors.New("a try that timed out took the key")

// answeredTry tries again where requests timed out, which says nothing about the
// key, and cleans up after what is in doubt. The error is errTookUnseen if that freed
// the key: it was not refused.
func (s Subject) answeredTry(t T, c impls.Client, key string) (h impls.Hold, err error) {
	t.Helper()
	for range tries {
		tried := attempt()
		h, err = c.TryAcquire(t.Context(), key, tried)
		if !impls.TimedOut(err) || t.Context().Err() != nil {
			return h, err
		}
		if errors.Is(err, impls.ErrUnknown) && s.cleanup(t, c, key, tried) == nil {
			return nil, fmt.Errorf("%w: %v", errTookUnseen, err)
		}
	}
	return h, err
}

// cleanup repeats the clean-up until its answer is definite. Both answers are
// right where an earlier one may have been carried out unseen.
func (s Subject) cleanup(t T, c impls.Client, key string, a impls.Attempt) error {
	t.Helper()
	err := s.settle(t.Context(), c, key, a)
	if !impls.Definite(err) {
		t.Fatalf("clean up: no definite answer within %v: %v", s.Patience, err)
	}
	return err
}

func (s Subject) settle(ctx context.Context, c impls.Client, key string, a impls.Attempt) error {
	ctx, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	return settle(ctx, s.Config.Clock, c, key, a)
}

// settle repeats a clean-up until its answer is definite, or ctx ends.
func settle(ctx context.Context, clock impls.Clock, c impls.Client, key string, a impls.Attempt) error {
	for {
		err := c.Cleanup(ctx, key, a)
		if impls.Definite(err) || ctx.Err() != nil {
			return err
		}
		_ = clock.Sleep(ctx, 5*time.Millisecond)
	}
}
