// Package recipetest is shared by the tests of single recipes. The conformance
// package tests what every lock must do; here is what needs the inside of a
// recipe: its table of outcomes, the place of a waiter in its queue.
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

// Config is a client's configuration for addresses, without a wait policy,
// since that is for one client; Open adds one.
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

// Open opens a client and closes it at the end of the test. Each function may
// change its configuration.
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

// CleanUp repeats a clean-up until its answer is definite: nil or ErrLost.
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

// WantOutcome fails unless err is want, and no other outcome. A nil want means
// success.
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
