package redis_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// dies is the Steps of a client that ends at a step for good, as a process that
// is killed there.
type dies impls.Step

func (d dies) Reach(_ context.Context, s impls.Step) {
	if s == impls.Step(d) {
		runtime.Goexit()
	}
}

// at is the Steps that do something when the client comes to a step.
type at struct {
	step impls.Step
	do   func()
}

func (a at) Reach(_ context.Context, s impls.Step) {
	if s == a.step {
		a.do()
	}
}

// stepping sets the client's steps.
func stepping(steps impls.Steps) func(*impls.Config) {
	return func(cfg *impls.Config) { cfg.Steps = steps }
}

// lastWords runs call on a goroutine that it may end.
func lastWords(call func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		call()
	}()
	<-done
}

// wall is a clock that stands still until it is moved. It is safe for
// concurrent use.
type wall struct {
	impls.Clock
	mu  sync.Mutex
	now time.Time
}

func newWall() *wall { return &wall{Clock: impls.SystemClock(), now: time.Unix(1_700_000_000, 0)} }

func (w *wall) Now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *wall) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// try tries, or fails the test.
func try(t *testing.T, c impls.Client, key string) impls.Hold {
	t.Helper()
	h, err := c.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try", err, nil)
	return h
}

// lapse ends the time that the server gives key.
func (s served) lapse(t *testing.T, key string) {
	t.Helper()
	if ok, err := s.admin.PExpire(t.Context(), key, time.Millisecond).Result(); err != nil || !ok {
		t.Fatalf("expire %s: %t, %v", key, ok, err)
	}
}

// TestBlindLocks: what the locks that store no owner can and cannot do.
func TestBlindLocks(t *testing.T) {
	s := serve(t)
	for _, id := range []string{"redis/setnx-expire", "redis/getset"} {
		t.Run(id, func(t *testing.T) {
			a, b, key := s.open(t, id), s.open(t, id), recipetest.NewKey()
			h := try(t, a, key)
			if err := h.Extend(t.Context()); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("extend: %v", err)
			}
			// Nobody's record has the attempt but that of its own client.
			recipetest.WantOutcome(t, "another's clean-up", b.Cleanup(t.Context(), key, h.Attempt()), impls.ErrLost)
			recipetest.WantOutcome(t, "a clean-up of nothing", a.Cleanup(t.Context(), key, recipetest.NewAttempt()), impls.ErrLost)
			s.there(t, 1, key)
			recipetest.WantOutcome(t, "clean-up", a.Cleanup(t.Context(), key, h.Attempt()), nil)
			s.there(t, 0, key)
			// A release after that must not free a successor.
			next := try(t, b, key)
			recipetest.WantOutcome(t, "release", h.Release(t.Context()), impls.ErrLost)
			s.there(t, 1, key)
			// One that the server forgot is told as lost, since the reply says so.
			s.remove(t, key)
			recipetest.WantOutcome(t, "release", next.Release(t.Context()), impls.ErrLost)

			for ttl, ok := range map[time.Duration]bool{0: false, 500 * time.Millisecond: false, 1500 * time.Millisecond: false, time.Second: true, time.Hour: true} {
				if err := recipe(t, id).CheckTTL(ttl, impls.DefaultLimits()); (err == nil) != ok {
					t.Errorf("CheckTTL(%s) = %v", ttl, err)
				}
			}
		})
	}
}

// TestBlindCleanup: a clean-up after a doubt frees whoever has the lock, which
// is all that a lock without an owner allows. This is how they fail.
func TestBlindCleanup(t *testing.T) {
	s := serve(t)
	for _, id := range []string{"redis/setnx-expire", "redis/getset"} {
		t.Run(id, func(t *testing.T) {
			l := &link{}
			a, b, key := s.open(t, id), s.open(t, id, through(l)), recipetest.NewKey()
			h := try(t, a, key)
			_, err := b.TryAcquire(t.Context(), key, recipetest.NewAttempt()) // connected now
			recipetest.WantOutcome(t, "try", err, impls.ErrBusy)
			letGo := l.hold()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			doubtful, got := recipetest.NewAttempt(), make(chan error, 1)
			go func() {
				_, err := b.TryAcquire(ctx, key, doubtful)
				got <- err
			}()
			<-ctx.Done()
			letGo()
			recipetest.WantOutcome(t, "try without an answer in time", <-got, impls.ErrUnknown)
			recipetest.WantOutcome(t, "clean-up", recipetest.CleanUp(t, b, key, doubtful), nil)
			try(t, b, key)
			if time.Now().After(h.LeaseEnd()) {
				t.Error("the holder's lease was over")
			}
		})
	}
}
