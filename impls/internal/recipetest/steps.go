package recipetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/impls"
)

// Gate is the Steps of one client under test: it counts the steps, and holds
// the client at the closed ones, as if its process were stopped there. It is
// safe for concurrent use.
type Gate struct {
	mu      sync.Mutex
	reached map[impls.Step]int
	last    impls.Step
	shut    map[impls.Step]chan struct{}
	ended   error         // of a call that reaches no more steps
	changed chan struct{} // closed, and replaced, at every step
}

// NewGate is a gate with all steps open.
func NewGate() *Gate {
	return &Gate{reached: map[impls.Step]int{}, shut: map[impls.Step]chan struct{}{}, changed: make(chan struct{})}
}

// Reach counts a step, and blocks while the step is closed, even after the end
// of ctx.
func (g *Gate) Reach(_ context.Context, s impls.Step) {
	g.mu.Lock()
	g.reached[s]++
	if s != impls.StepRenewing { // which no call reaches
		g.last = s
	}
	g.change()
	shut := g.shut[s]
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
}

// call records that a call begins (err nil) or has failed, which ends the
// waiting for its steps.
func (g *Gate) call(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ended = err
	g.change()
}

func (g *Gate) change() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// Shut closes step s until open is called, once or more.
func (g *Gate) Shut(s impls.Step) (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	shut := make(chan struct{})
	g.shut[s] = shut
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.shut[s] == shut { // and not closed again since
			delete(g.shut, s)
		}
		close(shut)
	})
}

// Count is how often s was reached.
func (g *Gate) Count(s impls.Step) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reached[s]
}

// Await returns when s was reached n times.
func (g *Gate) Await(t testing.TB, s impls.Step, n int) {
	t.Helper()
	g.await(t, fmt.Sprintf("step %q, call %d", s, n), func() bool { return g.reached[s] >= n })
}

// AwaitLast returns when the last step of a call is s.
func (g *Gate) AwaitLast(t testing.TB, s impls.Step) {
	t.Helper()
	g.await(t, fmt.Sprintf("last step %q", s), func() bool { return g.last == s })
}

func (g *Gate) await(t testing.TB, what string, there func() bool) {
	t.Helper()
	for {
		g.mu.Lock()
		ok, ended, changed := there(), g.ended, g.changed
		g.mu.Unlock()
		switch {
		case ok:
			return
		case ended != nil:
			t.Fatalf("the client's call ended before %s: %v", what, ended)
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("the test ended before %s", what)
		}
	}
}

// Result is the result of an acquire.
type Result struct {
	Hold impls.Hold
	Err  error
}

// Begin begins an acquire, and returns once it has reached step s for the n-th
// time. Gate is the client's.
func Begin(t testing.TB, gate *Gate, s impls.Step, n int, acquire func() (impls.Hold, error)) <-chan Result {
	t.Helper()
	got := make(chan Result, 1)
	gate.call(nil)
	go func() {
		h, err := acquire()
		gate.call(err)
		got <- Result{h, err}
	}()
	gate.Await(t, s, n)
	return got
}

// Waiters are clients of a recipe whose server wakes the waiters.
type Waiters struct {
	Open func(*testing.T, impls.Steps) impls.Client
	N    int
	// Herd: a release wakes all of them; otherwise it wakes the next.
	Herd bool
	// Arrivals: an arrival wakes all of them too.
	Arrivals bool
	// Ordered: they get the lock in order of arrival.
	Ordered bool
}

// Served checks that each release wakes exactly the expected waiters, until all
// have had the lock.
func (w Waiters) Served(t *testing.T, key string) {
	t.Helper()
	h, err := w.Open(t, nil).Acquire(t.Context(), key, NewAttempt())
	WantOutcome(t, "acquire", err, nil)
	type grant struct {
		waiter int
		Result
	}
	granted := make(chan grant, w.N)
	gates := make([]*Gate, w.N)
	waiting := map[int]bool{}
	for i := range gates {
		gates[i], waiting[i] = NewGate(), true
		c := w.Open(t, gates[i])
		got := Begin(t, gates[i], impls.StepWaiting, 1, func() (impls.Hold, error) { return c.Acquire(t.Context(), key, NewAttempt()) })
		go func() { granted <- grant{i, <-got} }()
		for earlier := range i {
			if w.Arrivals {
				gates[earlier].Await(t, impls.StepWoken, i-earlier)
				gates[earlier].AwaitLast(t, impls.StepWaiting)
			}
		}
	}
	want := 0
	if w.Arrivals {
		want = w.N * (w.N - 1) / 2
	}
	for i := range gates {
		for left := range waiting {
			gates[left].AwaitLast(t, impls.StepWaiting)
		}
		if want++; w.Herd {
			want += len(waiting) - 1
		}
		WantOutcome(t, "release", h.Release(t.Context()), nil)
		g := <-granted
		WantOutcome(t, "a waiter's acquire", g.Err, nil)
		if w.Ordered && g.waiter != i {
			t.Errorf("waiter %d was served as number %d", g.waiter, i)
		}
		delete(waiting, g.waiter)
		h = g.Hold
		for left := range waiting {
			if w.Herd { // by this release, before the next
				by := i + 1
				if w.Arrivals {
					by += w.N - 1 - left
				}
				gates[left].Await(t, impls.StepWoken, by)
			}
		}
	}
	WantOutcome(t, "the last release", h.Release(t.Context()), nil)
	woken := 0
	for _, g := range gates {
		woken += g.Count(impls.StepWoken)
	}
	if woken != want {
		t.Errorf("%d waiters were woken %d times in total, want %d", w.N, woken, want)
	}
}
