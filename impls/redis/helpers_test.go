package redis_test

import (
	"context"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/impls/redis"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

// served is a server, and an operator's way to it.
type served struct {
	cfg   impls.Config
	admin *goredis.Client
}

// ttl is longer than any of these tests takes.
const ttl = time.Minute

func serve(t *testing.T) served {
	t.Helper()
	c := clustertest.Start(t, "redis", "single")
	admin := goredis.NewClient(&goredis.Options{Addr: c.Addresses()[0]})
	t.Cleanup(func() { _ = admin.Close() })
	return served{recipetest.Config(c.Addresses(), c.Account(), ttl), admin}
}

// open opens a client of the recipe, whose configuration may be changed.
func (s served) open(t *testing.T, id string, change ...func(*impls.Config)) impls.Client {
	t.Helper()
	return recipetest.Open(t, recipe(t, id), s.cfg, change...)
}

// recipe finds a recipe of the package.
func recipe(t *testing.T, id string) impls.Recipe {
	t.Helper()
	return recipetest.Find(t, redis.Recipes(), id)
}

// set changes a setting of the server.
func (s served) set(t *testing.T, name, value string) {
	t.Helper()
	if err := s.admin.ConfigSet(t.Context(), name, value).Err(); err != nil {
		t.Fatal(err)
	}
}

// there fails the test unless that many of keys are there.
func (s served) there(t *testing.T, want int64, keys ...string) {
	t.Helper()
	if n, err := s.admin.Exists(t.Context(), keys...).Result(); err != nil || n != want {
		t.Fatalf("%d of the keys are there, want %d (%v)", n, want, err)
	}
}

// remove takes keys away, without a message.
func (s served) remove(t *testing.T, keys ...string) {
	t.Helper()
	if err := s.admin.Del(t.Context(), keys...).Err(); err != nil {
		t.Fatal(err)
	}
}

// hasten leaves key half a TTL to live, so that a renewal shows.
func (s served) hasten(t *testing.T, key string) {
	t.Helper()
	if ok, err := s.admin.PExpire(t.Context(), key, ttl/2).Result(); err != nil || !ok {
		t.Fatalf("expire %s: %t, %v", key, ok, err)
	}
}

// renewed fails the test unless key has more than half a TTL to live.
func (s served) renewed(t *testing.T, key string) {
	t.Helper()
	if left, err := s.admin.PTTL(t.Context(), key).Result(); err != nil || left <= ttl/2 || left > ttl {
		t.Fatalf("%s has %v to live (%v)", key, left, err)
	}
}

// acquire acquires, or fails the test.
func acquire(t *testing.T, c impls.Client, key string) impls.Hold {
	t.Helper()
	h, err := c.Acquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "acquire", err, nil)
	return h
}

func release(t *testing.T, h impls.Hold) {
	t.Helper()
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), nil)
}

// busy fails the test unless a try is refused.
func busy(t *testing.T, c impls.Client, key string) {
	t.Helper()
	_, err := c.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try", err, impls.ErrBusy)
}

// going acquires beside the test. What comes of it is sent.
func going(ctx context.Context, c impls.Client, key string) <-chan error {
	got := make(chan error, 1)
	go func() {
		h, err := c.Acquire(ctx, key, recipetest.NewAttempt())
		if err == nil {
			err = h.Release(ctx)
		}
		got <- err
	}()
	return got
}

// manual is a clock whose sleepers wait for the test to wake them, and whose
// timers never fire.
type manual struct {
	impls.Clock
	asleep chan chan struct{}
}

func newManual() *manual { return &manual{impls.SystemClock(), make(chan chan struct{})} }

func (m *manual) Sleep(ctx context.Context, _ time.Duration) error {
	wake := make(chan struct{})
	select {
	case m.asleep <- wake:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-wake:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *manual) AfterFunc(time.Duration, func()) func() bool { return func() bool { return true } }

// next returns once a client sleeps; calling what it returns wakes the sleeper.
func (m *manual) next() (wake func()) {
	c := <-m.asleep
	return func() { close(c) }
}

// with sets the client's clock.
func with(clock impls.Clock) func(*impls.Config) {
	return func(cfg *impls.Config) { cfg.Clock = clock }
}
