// Package recipetest holds what the tests of single recipes share. What every
// lock must show is tested in conformance; here is what only a test that sees a
// recipe from the inside can arrange: its table of outcomes, the place of a
// waiter in its queue.
//
// Only tests import it; it may import impls and history.
package recipetest

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// Config is a client's configuration for addresses. It has no wait policy,
// since those are not for two clients; Open gives each its own.
func Config(addresses []string, account impls.Account, ttl time.Duration) impls.Config {
	return impls.Config{
		Addresses: addresses,
		Account:   account,
		Dial:      new(net.Dialer).DialContext,
		Clock:     impls.SystemClock(),
		TTL:       ttl,
		Timeout:   5 * time.Second,
	}
}

// NewAttempt draws an attempt.
func NewAttempt() (a impls.Attempt) {
	_, _ = rand.Read(a[:]) // never fails, by its documentation
	return a
}

// NewKey is a key that no other test uses.
func NewKey() string { return "recipetest/" + NewAttempt().String() }

// Prepare prepares keys.
func Prepare(t testing.TB, r impls.Recipe, cfg impls.Config, keys ...string) {
	t.Helper()
	if err := r.Prepare(t.Context(), cfg, keys); err != nil {
		t.Fatal(err)
	}
}

// Open opens a client that is closed at the end of the test. Its configuration
// may be changed.
func Open(t testing.TB, r impls.Recipe, cfg impls.Config, change ...func(*impls.Config)) impls.Client {
	t.Helper()
	for _, f := range change {
		f(&cfg)
	}
	if cfg.Wait == nil {
		cfg.Wait = impls.NewUniform(5*time.Millisecond, 15*time.Millisecond, 1)
	}
	c, err := r.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

// CleanUp repeats a clean-up until its answer is definite, as callers do:
// nil or ErrLost.
func CleanUp(t testing.TB, c impls.Client, key string, a impls.Attempt) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := c.Cleanup(ctx, key, a)
		if impls.Definite(err) {
			return err
		}
		if ctx.Err() != nil {
			t.Fatalf("clean up has no definite answer: %v", err)
		}
	}
}

// WantOutcome fails unless err is want, and none of the other outcomes before
// it. A nil want means success.
func WantOutcome(t testing.TB, doing string, err, want error) {
	t.Helper()
	if want == nil {
		if err != nil {
			t.Fatalf("%s: %v", doing, err)
		}
		return
	}
	if !errors.Is(err, want) {
		t.Fatalf("%s: got %v, want %v", doing, err, want)
	}
	for _, other := range []error{impls.ErrBusy, impls.ErrLost, impls.ErrFailed, impls.ErrUnknown} {
		if other != want && errors.Is(err, other) {
			t.Fatalf("%s: %v is %v as well as %v", doing, err, other, want)
		}
	}
}
