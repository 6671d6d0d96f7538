package faultnet_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
	"github.com/lockbench/lockbench/internal/faultnet"
)

// Recipes on real drivers under rules: after a lost reply or a cut the outcome is
// unknown to the client, while the server has carried out the request.
func TestDrivers(t *testing.T) {
	for _, id := range []string{"redis/token", "memcached/cas", "mysql/lease-row"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			r, ok := all.Find(id)
			if !ok {
				t.Fatal("there is no such recipe")
			}
			c := clustertest.Start(t, r.Info().Backend, "single")
			cfg := impls.Config{
				Addresses: c.Addresses(), Account: c.Account(), Clock: impls.SystemClock(),
				TTL: 50 * time.Second, Timeout: 2 * time.Second,
			}
			t.Run("reply lost", func(t *testing.T) { replyLost(t, r, cfg) })
			t.Run("request lost", func(t *testing.T) { requestLost(t, r, cfg) })
			if id != "memcached/cas" { // a cut meets the first request of its release, which only reads
				t.Run("cut", func(t *testing.T) { cut(t, r, cfg) })
			}
		})
	}
}

func replyLost(t *testing.T, r impls.Recipe, cfg impls.Config) {
	const key = "reply-lost"
	proxy := listen(t)
	client, other := open(t, r, cfg, &faultnet.Dialer{Proxy: proxy.Addr()}, key), open(t, r, cfg, &faultnet.Dialer{}, key)
	put(t, proxy, faultnet.Rule{LoseReply: true})
	a := attempt()
	if _, err := client.TryAcquire(t.Context(), key, a); !unknown(err) {
		t.Errorf("an acquire whose reply was lost ended with %v", err)
	}
	if e := proxy.Lift("rule"); e.LostBytes == 0 || e.Broken != 1 {
		t.Errorf("effect %+v", e)
	}
	if _, err := other.TryAcquire(t.Context(), key, attempt()); !errors.Is(err, impls.ErrBusy) {
		t.Errorf("another client's acquire: %v; the server should have carried out the first", err)
	}
	if err := client.Cleanup(t.Context(), key, a); err != nil {
		t.Errorf("the clean-up: %v", err)
	}
}

// A driver that dials its server a second time, to cancel a wait, reaches it through
// the proxy as well: what the client gave up is definite.
func TestCancelThroughProxy(t *testing.T) {
	r, ok := all.Find("postgres/advisory")
	if !ok {
		t.Fatal("there is no such recipe")
	}
	c := clustertest.Start(t, "postgres", "single")
	cfg := impls.Config{Addresses: c.Addresses(), Account: c.Account(), Clock: impls.SystemClock(), TTL: 50 * time.Second, Timeout: 20 * time.Second}
	const key = "cancel"
	proxy := listen(t)
	holder, waiter := open(t, r, cfg, &faultnet.Dialer{}, key), open(t, r, cfg, &faultnet.Dialer{Proxy: proxy.Addr()}, key)
	hold, err := holder.TryAcquire(t.Context(), key, attempt())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := waiter.Acquire(ctx, key, attempt()); !errors.Is(err, impls.ErrFailed) {
		t.Errorf("an acquire that was given up while it waited ended with %v", err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Errorf("the release: %v", err)
	}
}

func requestLost(t *testing.T, r impls.Recipe, cfg impls.Config) {
	const key = "request-lost"
	proxy := listen(t)
	client, other := open(t, r, cfg, &faultnet.Dialer{Proxy: proxy.Addr()}, key), open(t, r, cfg, &faultnet.Dialer{}, key)
	put(t, proxy, faultnet.Rule{LoseRequest: true})
	if _, err := client.TryAcquire(t.Context(), key, attempt()); !unknown(err) {
		t.Errorf("an acquire whose request was lost ended with %v", err)
	}
	if e := proxy.Lift("rule"); e.LostBytes == 0 || e.Broken != 1 {
		t.Errorf("effect %+v", e)
	}
	hold, err := other.TryAcquire(t.Context(), key, attempt())
	if err != nil {
		t.Fatalf("another client's acquire: %v; the server should know nothing of the first", err)
	}
	if err := hold.Release(t.Context()); err != nil {
		t.Errorf("the release: %v", err)
	}
}

func cut(t *testing.T, r impls.Recipe, cfg impls.Config) {
	const key = "cut"
	proxy := listen(t)
	client, other := open(t, r, cfg, &faultnet.Dialer{Proxy: proxy.Addr()}, key), open(t, r, cfg, &faultnet.Dialer{}, key)
	hold, err := client.TryAcquire(t.Context(), key, attempt())
	if err != nil {
		t.Fatal(err)
	}
	put(t, proxy, faultnet.Rule{CutIn: true, CutOut: true})
	// A machine may be so slow that a release ends before it is sent.
	for limit := 200 * time.Millisecond; limit < time.Minute; limit *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		err = hold.Release(ctx)
		cancel()
		if unknown(err) || !errors.Is(err, impls.ErrFailed) {
			break
		}
	}
	if !unknown(err) {
		t.Errorf("a release into a cut ended with %v", err)
	}
	// The driver has given up its connection, and the server does not know.
	if _, err := other.TryAcquire(t.Context(), key, attempt()); !errors.Is(err, impls.ErrBusy) {
		t.Errorf("another client's acquire during the cut: %v", err)
	}
	if e := proxy.Lift("rule"); e.HeldBytes == 0 {
		t.Errorf("effect %+v", e)
	}
	// What was on its way arrives late, as it does from a network.
	got, err := other.Acquire(t.Context(), key, attempt())
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func open(t *testing.T, r impls.Recipe, cfg impls.Config, d *faultnet.Dialer, key string) impls.Client {
	t.Helper()
	cfg.Dial, cfg.Wait = d.Dial, impls.NewUniform(time.Millisecond, 5*time.Millisecond, 1)
	if err := r.Prepare(t.Context(), cfg, []string{key}); err != nil {
		t.Fatal(err)
	}
	c, err := r.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func listen(t *testing.T) *faultnet.Proxy {
	t.Helper()
	p, err := faultnet.ListenDialer()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func put(t *testing.T, p *faultnet.Proxy, r faultnet.Rule) {
	t.Helper()
	if err := p.Apply("rule", r); err != nil {
		t.Fatal(err)
	}
}

func unknown(err error) bool {
	return err != nil && impls.Outcome(history.KindAcquire, err) == history.Unknown
}

func attempt() (a impls.Attempt) {
	_, _ = rand.Read(a[:])
	return a
}
