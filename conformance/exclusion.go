package conformance

import (
	"context"
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// contenders and rounds make a few hundred grants, most of them contended.
const (
	contenders = 6
	rounds     = 20
	// insideFor leaves an intruder the time to be seen.
	insideFor = 200 * time.Microsecond
)

// exclusive guards a counter with the lock. It is read and written in two
// steps, so that two holders at once lose an update; and each client looks on
// entering whether another is inside.
func exclusive(t T, s Subject) {
	var inside, doubles, counter atomic.Int64
	granted := hammer(t, s, contenders, rounds, func(impls.Hold) {
		if inside.Add(1) > 1 {
			doubles.Add(1)
		}
		was := counter.Load()
		_ = s.Config.Clock.Sleep(t.Context(), insideFor)
		counter.Store(was + 1)
		inside.Add(-1)
	})
	if n := doubles.Load(); n > 0 {
		t.Errorf("%d times a client was granted the lock while another held it", n)
	}
	if got := counter.Load(); got != granted {
		t.Errorf("the guarded counter is %d after %d updates", got, granted)
	}
}

// answeredAcquire acquires again where a request timed out, after a clean-up: what
// such a request left would keep the others waiting.
func (s Subject) answeredAcquire(ctx context.Context, c impls.Client, key string) (h impls.Hold, err error) {
	for range tries {
		tried := attempt()
		h, err = c.Acquire(ctx, key, tried)
		if !impls.TimedOut(err) || ctx.Err() != nil || !impls.Definite(s.settle(ctx, c, key, tried)) {
			return h, err
		}
	}
	return h, err
}

// hammer has clients contend for a key, each for some rounds, and calls within
// with every hold. It returns the number of grants.
func hammer(t T, s Subject, clients, rounds int, within func(impls.Hold)) int64 {
	key := s.key(t)
	var granted atomic.Int64
	var group sync.WaitGroup
	begin := make(chan struct{})
	for range clients {
		c := s.open(t)
		group.Go(func() {
			<-begin
			for range rounds {
				// An acquire waits for the calls of every other client too.
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(clients)*s.Patience)
				h, err := s.answeredAcquire(ctx, c, key)
				cancel()
				if err != nil {
					t.Errorf("acquire: %v", err)
					return
				}
				granted.Add(1)
				within(h)
				if err := h.Release(t.Context()); err != nil {
					t.Errorf("release: %v", err)
					return
				}
			}
		})
	}
	close(begin)
	group.Wait()
	return granted.Load()
}

func busy(t T, s Subject) {
	key := s.key(t)
	a, b := s.open(t), s.open(t)
	mine := attempt()
	h, err := a.TryAcquire(t.Context(), key, mine)
	want(t, "try a key that was never held", err, nil)
	if h.Key() != key || h.Attempt() != mine {
		t.Errorf("the hold is of %s by %s, want %s by %s", h.Key(), h.Attempt(), key, mine)
	}
	for range 3 {
		s.try(t, "try a held key", b, key, impls.ErrBusy)
		if _, again := a.(impls.Reentrant); !again {
			s.try(t, "try a key that the client holds itself", a, key, impls.ErrBusy)
		}
	}
	release(t, h)
	h = s.try(t, "try a key that was freed", b, key, nil)
	s.try(t, "try a key that is held again", a, key, impls.ErrBusy)
	release(t, h)
	// What was refused must have left nothing.
	release(t, s.try(t, "try a key that was refused before", a, key, nil))
}

func symmetric(t T, s Subject) {
	key := s.key(t)
	a, b := s.open(t), s.open(t)
	h := s.acquire(t, a, key)
	want(t, "clean up, by another client, an attempt that was never made", b.Cleanup(t.Context(), key, attempt()), impls.ErrLost)
	want(t, "clean up, by the holder, an attempt that was never made", a.Cleanup(t.Context(), key, attempt()), impls.ErrLost)
	s.try(t, "try after foreign clean-ups", b, key, impls.ErrBusy)
	release(t, h)
}

func once(t T, s Subject) {
	key := s.key(t)
	a, b := s.open(t), s.open(t)
	h := s.acquire(t, a, key)
	release(t, h)
	want(t, "release a freed lock again", h.Release(t.Context()), impls.ErrLost)
	next := s.acquire(t, b, key)
	want(t, "release again while another holds", h.Release(t.Context()), impls.ErrLost)
	want(t, "clean up what was released", a.Cleanup(t.Context(), key, h.Attempt()), impls.ErrLost)
	s.try(t, "try after releases of a former holder", a, key, impls.ErrBusy)
	release(t, next)
}

func handOver(t T, s Subject) {
	key := s.key(t)
	a, b := s.open(t), s.open(t)
	h := s.acquire(t, a, key)
	var released atomic.Bool
	got := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), s.Patience)
		defer cancel()
		h, err := b.Acquire(ctx, key, attempt())
		if err == nil && !released.Load() {
			t.Errorf("the waiter was granted a held lock")
		}
		if err == nil {
			err = h.Release(ctx)
		}
		got <- err
	}()
	// Leaves a wrong grant some time to show; a right lock passes without.
	_ = s.Config.Clock.Sleep(t.Context(), 30*time.Millisecond)
	released.Store(true)
	release(t, h)
	want(t, "the waiter's acquire and release", <-got, nil)
}

func cancelledWaiter(t T, s Subject) {
	key := s.key(t)
	a, b, c := s.open(t), s.open(t), s.open(t)
	for how, cause := range map[string]error{"by its deadline": context.DeadlineExceeded, "by its caller": context.Canceled} {
		h := s.acquire(t, a, key)
		ctx, cancel := context.WithTimeout(t.Context(), 40*time.Millisecond)
		if cause == context.Canceled {
			ctx, cancel = context.WithCancel(t.Context())
			time.AfterFunc(40*time.Millisecond, cancel)
		}
		gone := attempt()
		_, err := b.Acquire(ctx, key, gone)
		cancel()
		switch {
		case err == nil:
			t.Fatalf("a waiter was granted a held lock")
		case errors.Is(err, impls.ErrUnknown):
			_ = s.cleanup(t, b, key, gone)
		case !errors.Is(err, impls.ErrFailed):
			t.Fatalf("a wait ended %s: %v is neither a doubt nor without effect", how, err)
		}
		// A driver that sets the deadline on its connection names that.
		if !errors.Is(err, cause) && !(cause == context.DeadlineExceeded && errors.Is(err, os.ErrDeadlineExceeded)) {
			t.Errorf("a wait ended %s: %v does not name %v", how, err, cause)
		}
		want(t, "clean up once more", b.Cleanup(t.Context(), key, gone), impls.ErrLost)
		s.try(t, "try while the holder has it still", c, key, impls.ErrBusy)
		release(t, h)
		release(t, s.try(t, "try after holder and waiter left", c, key, nil))
		release(t, s.try(t, "try by the former waiter", b, key, nil))
	}
}

func contextOver(t T, s Subject) {
	key := s.key(t)
	a, b := s.open(t), s.open(t)
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.Acquire(over, key, attempt())
	want(t, "acquire", err, impls.ErrFailed)
	_, err = a.TryAcquire(over, key, attempt())
	want(t, "try", err, impls.ErrFailed)
	h := s.try(t, "try with a context that lives", b, key, nil)
	want(t, "release with a context that is over", h.Release(over), impls.ErrFailed)
	s.try(t, "try after a release without effect", a, key, impls.ErrBusy)
	release(t, h)
}

// fencing looks at tokens while clients contend: then their order is that of
// the grants, and no other order that a lock may number by.
func fencing(t T, s Subject) {
	var last atomic.Uint64
	grow := func(h impls.Hold) {
		if was, is := last.Swap(h.Fence()), h.Fence(); is <= was {
			t.Errorf("token %d after %d", is, was)
		}
	}
	hammer(t, s, contenders, rounds/2, grow)

	key, c := s.key(t), s.open(t)
	last.Store(0)
	for range 3 {
		h := s.acquire(t, c, key)
		grow(h)
		release(t, h)
		s.prepare(t, key) // again, which must not begin the tokens anew
	}
}

func noFencing(t T, s Subject) {
	h := s.acquire(t, s.open(t), s.key(t))
	if h.Fence() != 0 {
		t.Errorf("token %d of a recipe that declares none", h.Fence())
	}
	release(t, h)
}
