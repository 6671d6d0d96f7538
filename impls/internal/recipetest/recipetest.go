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
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// Config is a client's configuration for addresses, without faults. It has no
// wait policy, since those are not for two clients; Open gives each its own.
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

// Faults is a dialer whose connections fail on demand. Its methods are safe
// for concurrent use.
type Faults struct {
	refuse  atomic.Bool
	lose    atomic.Bool
	replies atomic.Int64

	mu    sync.Mutex
	conns []net.Conn
}

// The errors of connections that fail on demand.
var (
	ErrRefused = errors.New("connection refused by the test")
	ErrLost    = errors.New("connection broken by the test")
)

// Refuse makes new connections fail.
func (f *Faults) Refuse(on bool) { f.refuse.Store(on) }

// LoseReplies makes every connection break when a reply arrives, before it is
// handed over: what was asked for is done, and the client does not learn it.
func (f *Faults) LoseReplies(on bool) { f.lose.Store(on) }

// Replies is how many replies were lost.
func (f *Faults) Replies() int64 { return f.replies.Load() }

// Break ends every connection that there is, on the client's side.
func (f *Faults) Break() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.conns {
		c.Close()
	}
	f.conns = nil
}

// Dial is an impls.DialFunc.
func (f *Faults) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	if f.refuse.Load() {
		return nil, ErrRefused
	}
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns = append(f.conns, conn)
	return &faultyConn{Conn: conn, f: f}, nil
}

type faultyConn struct {
	net.Conn
	f *Faults
}

func (c *faultyConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && c.f.lose.Load() {
		c.f.replies.Add(1)
		return 0, ErrLost
	}
	return n, err
}

// CleanUp repeats a clean-up until its answer is definite, as callers do:
// nil or ErrLost.
func CleanUp(t testing.TB, c impls.Client, key string, a impls.Attempt) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		err := c.Cleanup(ctx, key, a)
		if err == nil || errors.Is(err, impls.ErrLost) {
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
