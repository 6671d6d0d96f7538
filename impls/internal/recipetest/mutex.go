package recipetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// Mutex checks what every recipe must show, whatever its bound.
func Mutex(t *testing.T, r impls.Recipe, cfg impls.Config) {
	for name, check := range map[string]func(*testing.T, impls.Recipe, impls.Config){
		"one holder":             oneHolder,
		"a hold is usable once":  usableOnce,
		"foreign clean-up":       foreignCleanup,
		"cancelled waiter":       cancelledWaiter,
		"context over":           contextOver,
		"dial refused":           dialRefused,
		"reply of acquire lost":  replyLost,
		"reply of release lost":  releaseReplyLost,
		"never two at once":      hammer,
		"fence":                  fence,
		"waiter gets it in turn": handOver,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, r, cfg)
		})
	}
}

func oneHolder(t *testing.T, r impls.Recipe, cfg impls.Config) {
	key := NewKey()
	Prepare(t, r, cfg, key)
	a, b := Open(t, r, cfg), Open(t, r, cfg)

	at := NewAttempt()
	h, err := a.Acquire(t.Context(), key, at)
	WantOutcome(t, "acquire a free key", err, nil)
	if h.Key() != key || h.Attempt() != at {
		t.Errorf("hold of %s by %s, want %s by %s", h.Key(), h.Attempt(), key, at)
	}
	_, err = b.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try a held key", err, impls.ErrBusy)
	_, err = a.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try a key held by oneself", err, impls.ErrBusy)
	WantOutcome(t, "release", h.Release(t.Context()), nil)
	h, err = b.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try a key just freed", err, nil)
	WantOutcome(t, "release", h.Release(t.Context()), nil)
}

func usableOnce(t *testing.T, r impls.Recipe, cfg impls.Config) {
	key := NewKey()
	Prepare(t, r, cfg, key)
	a, b := Open(t, r, cfg), Open(t, r, cfg)
	h, err := a.Acquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "acquire", err, nil)
	WantOutcome(t, "release", h.Release(t.Context()), nil)
	next, err := b.Acquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "acquire", err, nil)
	WantOutcome(t, "release again", h.Release(t.Context()), impls.ErrLost)
	_, err = a.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try after a second release", err, impls.ErrBusy)
	WantOutcome(t, "release", next.Release(t.Context()), nil)
}

// foreignCleanup: an attempt that is not the holder's frees nothing, neither
// from another client nor from the holder's own.
func foreignCleanup(t *testing.T, r impls.Recipe, cfg impls.Config) {
	key := NewKey()
	Prepare(t, r, cfg, key)
	a, b := Open(t, r, cfg), Open(t, r, cfg)
	h, err := a.Acquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "acquire", err, nil)
	WantOutcome(t, "clean up by another", b.Cleanup(t.Context(), key, NewAttempt()), impls.ErrLost)
	WantOutcome(t, "clean up of another attempt", a.Cleanup(t.Context(), key, NewAttempt()), impls.ErrLost)
	_, err = b.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try", err, impls.ErrBusy)
	WantOutcome(t, "release", h.Release(t.Context()), nil)
}

// cancelledWaiter: a waiter that gave up leaves nothing that could be granted
// the lock later.
func cancelledWaiter(t *testing.T, r impls.Recipe, cfg impls.Config) {
	key := NewKey()
	Prepare(t, r, cfg, key)
	a, b, c := Open(t, r, cfg), Open(t, r, cfg), Open(t, r, cfg)
	h, err := a.Acquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "acquire", err, nil)

	for _, end := range []error{context.DeadlineExceeded, context.Canceled} {
		ctx, cancel := context.WithTimeout(t.Context(), 60*time.Millisecond)
		if end == context.Canceled {
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(60*time.Millisecond, cancel)
		}
		at := NewAttempt()
		_, err := b.Acquire(ctx, key, at)
		cancel()
		if errors.Is(err, impls.ErrUnknown) {
			// The end met a request under way.
			WantOutcome(t, "clean up", CleanUp(t, b, key, at), impls.ErrLost)
			continue
		}
		WantOutcome(t, "acquire until "+end.Error(), err, impls.ErrFailed)
		if !errors.Is(err, end) {
			t.Errorf("%v does not say %v", err, end)
		}
	}
	WantOutcome(t, "release", h.Release(t.Context()), nil)
	h, err = c.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try after the waiter left", err, nil)
	WantOutcome(t, "release", h.Release(t.Context()), nil)

	// The waiter itself is as good as new.
	h, err = b.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try by the former waiter", err, nil)
	WantOutcome(t, "release", h.Release(t.Context()), nil)
}

func contextOver(t *testing.T, r impls.Recipe, cfg impls.Config) {
	key := NewKey()
	Prepare(t, r, cfg, key)
	a, b := Open(t, r, cfg), Open(t, r, cfg)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.Acquire(over, key, NewAttempt())
	WantOutcome(t, "acquire", err, impls.ErrFailed)
	_, err = a.TryAcquire(over, key, NewAttempt())
	WantOutcome(t, "try", err, impls.ErrFailed)
	h, err := b.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try with a context that lives", err, nil)
	WantOutcome(t, "release with a context that is over", h.Release(over), impls.ErrFailed)
	_, err = a.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try after a release that failed", err, impls.ErrBusy)
	WantOutcome(t, "release", h.Release(t.Context()), nil)
}

// dialRefused: where no connection comes about nothing was sent, and the
// client recovers at once.
func dialRefused(t *testing.T, r impls.Recipe, cfg impls.Config) {
	key := NewKey()
	Prepare(t, r, cfg, key)
	var f Faults
	cfg.Dial = f.Dial
	c := Open(t, r, cfg)

	// Lose the connection that there is, then refuse another.
	f.LoseReplies(true)
	at := NewAttempt()
	_, err := c.TryAcquire(t.Context(), key, at)
	WantOutcome(t, "try with its reply lost", err, impls.ErrUnknown)
	f.LoseReplies(false)
	f.Refuse(true)
	for range 5 {
		_, err = c.TryAcquire(t.Context(), NewKey(), NewAttempt())
		WantOutcome(t, "try without a connection", err, impls.ErrFailed)
		if !errors.Is(err, ErrRefused) {
			t.Fatalf("%v does not say %v", err, ErrRefused)
		}
	}
	f.Refuse(false)
	// Where the lock is the connection's it may have ended with that.
	if err := CleanUp(t, c, key, at); err != nil && r.Info().Bound.Leased() {
		t.Fatalf("clean up, the server being back: %v", err)
	}
}

// replyLost: the server granted the lock and the client was not told.
func replyLost(t *testing.T, r impls.Recipe, cfg impls.Config) {
	key := NewKey()
	Prepare(t, r, cfg, key)
	b := Open(t, r, cfg)
	var f Faults
	cfg.Dial = f.Dial
	a := Open(t, r, cfg)

	f.LoseReplies(true)
	at := NewAttempt()
	_, err := a.Acquire(t.Context(), key, at)
	WantOutcome(t, "acquire with its reply lost", err, impls.ErrUnknown)
	if f.Replies() == 0 {
		t.Fatal("no reply was lost")
	}
	if err := a.Cleanup(t.Context(), key, at); err == nil || errors.Is(err, impls.ErrLost) {
		t.Fatalf("clean up without replies: %v, want no definite answer", err)
	}
	f.LoseReplies(false)
	// The attempt without replies may have freed it, unseen.
	CleanUp(t, a, key, at)
	h, err := b.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try after the clean-up", err, nil)
	WantOutcome(t, "clean up again", a.Cleanup(t.Context(), key, at), impls.ErrLost)
	WantOutcome(t, "release", h.Release(t.Context()), nil)
}

func releaseReplyLost(t *testing.T, r impls.Recipe, cfg impls.Config) {
	key := NewKey()
	Prepare(t, r, cfg, key)
	b := Open(t, r, cfg)
	var f Faults
	cfg.Dial = f.Dial
	a := Open(t, r, cfg)

	at := NewAttempt()
	h, err := a.Acquire(t.Context(), key, at)
	WantOutcome(t, "acquire", err, nil)
	f.LoseReplies(true)
	if err := h.Release(t.Context()); err == nil || errors.Is(err, impls.ErrLost) {
		t.Fatalf("release with its reply lost: %v, want no definite success", err)
	}
	f.LoseReplies(false)
	CleanUp(t, a, key, at)
	next, err := b.TryAcquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "try after the clean-up", err, nil)
	WantOutcome(t, "release again", h.Release(t.Context()), impls.ErrLost)
	WantOutcome(t, "release", next.Release(t.Context()), nil)
}

// hammer has clients contend for a key and looks whether two ever hold it.
func hammer(t *testing.T, r impls.Recipe, cfg impls.Config) {
	const clients, rounds = 6, 15
	key := NewKey()
	Prepare(t, r, cfg, key)
	var holder, grants atomic.Int64
	var lastFence atomic.Uint64
	errs := make(chan error, clients)
	var wg sync.WaitGroup
	for i := range clients {
		cfg := cfg
		cfg.Wait = impls.NewUniform(time.Millisecond, 3*time.Millisecond, uint64(i))
		c := Open(t, r, cfg)
		wg.Go(func() {
			for range rounds {
				h, err := c.Acquire(t.Context(), key, NewAttempt())
				if err != nil {
					errs <- err
					return
				}
				if was := holder.Swap(int64(i) + 1); was != 0 {
					errs <- fmt.Errorf("client %d was granted the lock that client %d holds", i, was-1)
				}
				if f := h.Fence(); f != 0 && lastFence.Swap(f) >= f {
					errs <- fmt.Errorf("fence %d after one as large", f)
				}
				grants.Add(1)
				holder.Store(0)
				if err := h.Release(t.Context()); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	if got := grants.Load(); got != clients*rounds {
		t.Errorf("%d grants, want %d", got, clients*rounds)
	}
}

func fence(t *testing.T, r impls.Recipe, cfg impls.Config) {
	key := NewKey()
	Prepare(t, r, cfg, key)
	c := Open(t, r, cfg)
	var last uint64
	for range 3 {
		h, err := c.Acquire(t.Context(), key, NewAttempt())
		WantOutcome(t, "acquire", err, nil)
		switch f := h.Fence(); {
		case !r.Info().Fencing && f != 0:
			t.Errorf("fence %d of a recipe without", f)
		case r.Info().Fencing && f <= last:
			t.Errorf("fence %d after %d", f, last)
		default:
			last = f
		}
		WantOutcome(t, "release", h.Release(t.Context()), nil)
		// A second preparation must not begin the numbers anew.
		Prepare(t, r, cfg, key)
	}
}

func handOver(t *testing.T, r impls.Recipe, cfg impls.Config) {
	key := NewKey()
	Prepare(t, r, cfg, key)
	a, b := Open(t, r, cfg), Open(t, r, cfg)
	h, err := a.Acquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "acquire", err, nil)
	got := make(chan error, 1)
	go func() {
		h, err := b.Acquire(t.Context(), key, NewAttempt())
		if err == nil {
			err = h.Release(t.Context())
		}
		got <- err
	}()
	select {
	case err := <-got:
		t.Fatalf("the waiter came back while the lock was held: %v", err)
	case <-time.After(50 * time.Millisecond): // only gives a wrong grant the time to show
	}
	WantOutcome(t, "release", h.Release(t.Context()), nil)
	WantOutcome(t, "the waiter's acquire and release", <-got, nil)
}
