package redis_test

import (
	"context"
	"testing"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// waiter opens a client of redis/pubsub whose clock never ends a wait, so that
// only a message can.
func waiter(t *testing.T, s served, gate *recipetest.Gate, change ...func(*impls.Config)) impls.Client {
	t.Helper()
	return s.open(t, "redis/pubsub", append(change, with(newManual()), func(cfg *impls.Config) { cfg.Steps = gate })...)
}

// stop is where a gate holds its client, the next time that comes there.
type stop struct {
	gate *recipetest.Gate
	step impls.Step
	n    int
	goOn func()
}

func stopAt(gate *recipetest.Gate, step impls.Step) stop {
	return stop{gate, step, gate.Count(step) + 1, gate.Shut(step)}
}

// await returns when the client is held.
func (s stop) await(t *testing.T) {
	t.Helper()
	s.gate.Await(t, s.step, s.n)
}

func wantCount(t *testing.T, g *recipetest.Gate, step impls.Step, want int) {
	t.Helper()
	if got := g.Count(step); got != want {
		t.Errorf("the waiter came to %q %d times, want %d", step, got, want)
	}
}

// subscribers asks until that many listen for releases of key.
func (s served) subscribers(t *testing.T, key string, want int64) {
	t.Helper()
	channel := "{" + key + "}:released"
	for {
		n, err := s.admin.PubSubNumSub(t.Context(), channel).Result()
		if err != nil {
			t.Fatal(err)
		}
		if n[channel] == want {
			return
		}
	}
}

// TestPubsubReleasedBefore: what is released between the refusal and the
// subscription is not missed.
func TestPubsubReleasedBefore(t *testing.T) {
	s := serve(t)
	gate := recipetest.NewGate()
	holder, w, key := s.open(t, "redis/pubsub"), waiter(t, s, gate), recipetest.NewKey()
	h := acquire(t, holder, key)
	about := stopAt(gate, "subscribe")
	got := going(t.Context(), w, key)
	about.await(t)
	s.subscribers(t, key, 0)
	release(t, h)
	about.goOn()
	recipetest.WantOutcome(t, "the waiter's acquire and release", <-got, nil)
	wantCount(t, gate, impls.StepWaiting, 0)
	wantCount(t, gate, impls.StepWoken, 0)
}

// TestPubsubReleasedAfter: what is released between the last look and the sleep
// is not missed either, and a client that no longer waits is not subscribed.
func TestPubsubReleasedAfter(t *testing.T) {
	s := serve(t)
	gate := recipetest.NewGate()
	holder, w, key := s.open(t, "redis/pubsub"), waiter(t, s, gate), recipetest.NewKey()
	for round := 1; round <= 3; round++ {
		h := acquire(t, holder, key)
		about := stopAt(gate, impls.StepWaiting)
		got := going(t.Context(), w, key)
		about.await(t)
		s.subscribers(t, key, 1)
		release(t, h)
		about.goOn()
		recipetest.WantOutcome(t, "the waiter's acquire and release", <-got, nil)
		wantCount(t, gate, impls.StepWoken, round)
		s.subscribers(t, key, 0)
	}
}

// TestPubsubUntold: a lock that becomes free without a message is found.
func TestPubsubUntold(t *testing.T) {
	s := serve(t)
	gate := recipetest.NewGate()
	holder, key := s.open(t, "redis/pubsub"), recipetest.NewKey()
	w := s.open(t, "redis/pubsub", func(cfg *impls.Config) { cfg.Steps = gate })
	acquire(t, holder, key)
	about := stopAt(gate, impls.StepWaiting)
	got := going(t.Context(), w, key)
	about.await(t)
	s.remove(t, key)
	about.goOn()
	recipetest.WantOutcome(t, "the waiter's acquire and release", <-got, nil)
	wantCount(t, gate, impls.StepWoken, 0)
}

// TestPubsubConnectionLost: a waiter whose connection to the channel ends looks,
// for it may have missed a message, and listens anew.
func TestPubsubConnectionLost(t *testing.T) {
	s := serve(t)
	kill := func() {
		if err := s.admin.ClientKillByFilter(t.Context(), "TYPE", "pubsub").Err(); err != nil {
			t.Fatal(err)
		}
	}
	gate := recipetest.NewGate()
	holder, w, key := s.open(t, "redis/pubsub"), waiter(t, s, gate), recipetest.NewKey()
	acquire(t, holder, key)
	about := stopAt(gate, impls.StepWaiting)
	got := going(t.Context(), w, key)
	about.await(t)
	kill()
	s.remove(t, key)
	about.goOn()
	recipetest.WantOutcome(t, "the acquire of what was freed meanwhile", <-got, nil)

	h := acquire(t, holder, key)
	about = stopAt(gate, impls.StepWaiting)
	got = going(t.Context(), w, key)
	about.await(t)
	kill()
	again := stopAt(gate, "subscribe")
	about.goOn()
	again.await(t)
	about = stopAt(gate, impls.StepWaiting)
	again.goOn()
	about.await(t)
	release(t, h)
	about.goOn()
	recipetest.WantOutcome(t, "the acquire of what was held still", <-got, nil)
}

// TestPubsubGaveUp: a waiter that gave up is not subscribed, and behaves like
// new.
func TestPubsubGaveUp(t *testing.T) {
	s := serve(t)
	for _, where := range []impls.Step{"subscribe", impls.StepWaiting} {
		gate := recipetest.NewGate()
		holder, w, key := s.open(t, "redis/pubsub"), waiter(t, s, gate), recipetest.NewKey()
		h := acquire(t, holder, key)
		ctx, cancel := context.WithCancel(t.Context())
		about := stopAt(gate, where)
		got := going(ctx, w, key)
		about.await(t)
		cancel()
		about.goOn()
		recipetest.WantOutcome(t, "a wait that was given up", <-got, impls.ErrFailed)
		s.subscribers(t, key, 0)

		about = stopAt(gate, impls.StepWaiting)
		got = going(t.Context(), w, key)
		about.await(t)
		release(t, h)
		about.goOn()
		recipetest.WantOutcome(t, "the next wait", <-got, nil)
	}
}

// TestPubsubAfterOutage: once the driver was replaced, waiters listen through
// the new one.
func TestPubsubAfterOutage(t *testing.T) {
	s := serve(t)
	gate := recipetest.NewGate()
	network := &link{}
	holder, w, key := s.open(t, "redis/pubsub"), waiter(t, s, gate, through(network)), recipetest.NewKey()
	for range 2 {
		h := acquire(t, holder, key)
		about := stopAt(gate, impls.StepWaiting)
		got := going(t.Context(), w, key)
		about.await(t)
		release(t, h)
		about.goOn()
		recipetest.WantOutcome(t, "the waiter's acquire and release", <-got, nil)

		network.setCut(true)
		_, _ = w.TryAcquire(t.Context(), recipetest.NewKey(), recipetest.NewAttempt()) // meets the connection's end
		_, err := w.TryAcquire(t.Context(), recipetest.NewKey(), recipetest.NewAttempt())
		recipetest.WantOutcome(t, "try without a network", err, impls.ErrFailed)
		network.setCut(false)
	}
}

// TestPubsubHerd: every release wakes all waiters.
func TestPubsubHerd(t *testing.T) {
	s := serve(t)
	recipetest.Waiters{
		Open: func(t *testing.T, steps impls.Steps) impls.Client {
			return s.open(t, "redis/pubsub", with(newManual()), func(cfg *impls.Config) { cfg.Steps = steps })
		},
		N:    4,
		Herd: true,
	}.Served(t, recipetest.NewKey())
}

// TestPubsubNotAllowed: a user who may not listen looks now and then, and one
// without the permission to publish frees nothing and reports it.
func TestPubsubNotAllowed(t *testing.T) {
	s := serve(t)
	may := func(channels string) {
		if err := s.admin.Do(t.Context(), "ACL", "SETUSER", "default", channels).Err(); err != nil {
			t.Fatal(err)
		}
	}
	gate := recipetest.NewGate()
	holder, key := s.open(t, "redis/token"), recipetest.NewKey()
	w := s.open(t, "redis/pubsub", func(cfg *impls.Config) { cfg.Steps = gate })
	h := acquire(t, holder, key)
	may("resetchannels")
	about := stopAt(gate, impls.StepWaiting)
	got := make(chan impls.Hold)
	go func() {
		h, err := w.Acquire(t.Context(), key, recipetest.NewAttempt())
		if err != nil {
			t.Error(err)
		}
		got <- h
	}()
	about.await(t)
	release(t, h)
	about.goOn()
	if h = <-got; h == nil {
		t.FailNow()
	}
	// Some servers say so in words that are no definite answer.
	if err := h.Release(t.Context()); impls.Definite(err) {
		t.Errorf("release without leave to publish: %v", err)
	}
	s.there(t, 1, key)
	may("allchannels")
	release(t, h)
}
