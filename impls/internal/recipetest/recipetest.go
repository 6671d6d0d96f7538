// Package recipetest holds what the tests of recipes have in common: a client's
// configuration, connections that fail on demand, and the properties that
// every recipe has to show on a real server.
//
// Only tests import it; it may import impls.
package recipetest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// Config is a client's configuration for addresses, without faults.
func Config(addresses []string, account impls.Account, ttl time.Duration) impls.Config {
	return impls.Config{
		Addresses: addresses,
		Account:   account,
		Dial:      new(net.Dialer).DialContext,
		Clock:     impls.SystemClock(),
		Wait:      impls.NewUniform(5*time.Millisecond, 15*time.Millisecond, 1),
		TTL:       ttl,
		Timeout:   5 * time.Second,
	}
}

// NewAttempt draws an attempt.
func NewAttempt() impls.Attempt {
	var a impls.Attempt
	rand.Read(a[:])
	return a
}

// NewKey is a key that no other test uses.
func NewKey() string { return fmt.Sprintf("recipetest/%s", NewAttempt()) }

// Prepare prepares keys.
func Prepare(t testing.TB, r impls.Recipe, cfg impls.Config, keys ...string) {
	t.Helper()
	if err := r.Prepare(t.Context(), cfg, keys); err != nil {
		t.Fatal(err)
	}
}

// Open opens a client that is closed at the end of the test.
func Open(t testing.TB, r impls.Recipe, cfg impls.Config) impls.Client {
	t.Helper()
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

// Faults is a dialer whose connections fail on demand. Its methods are safe
// for concurrent use.
type Faults struct {
	refuse  atomic.Bool
	swallow atomic.Bool
	// Lost counts the replies that were swallowed.
	Lost atomic.Int64
}

// ErrRefused is what Dial answers while it refuses.
var ErrRefused = errors.New("refused by the test")

// Refuse makes new connections fail.
func (f *Faults) Refuse(on bool) { f.refuse.Store(on) }

// Swallow makes replies get lost, on all connections.
func (f *Faults) Swallow(on bool) { f.swallow.Store(on) }

// Dial is an impls.DialFunc.
func (f *Faults) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if f.refuse.Load() {
		return nil, ErrRefused
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &faultyConn{Conn: conn, f: f}, nil
}

type faultyConn struct {
	net.Conn
	f *Faults
}

func (c *faultyConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if err != nil || !c.f.swallow.Load() {
			return n, err
		}
		c.f.Lost.Add(1)
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
