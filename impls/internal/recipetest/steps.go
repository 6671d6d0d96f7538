package recipetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/impls"
)

// Gate is the Steps of one client under test: it counts the steps, and holds
// the client at those that are shut, as if its process were stopped there. It
// is safe for concurrent use.
type Gate struct {
	mu      sync.Mutex
	reached map[impls.Step]int
	last    impls.Step
	shut    map[impls.Step]chan struct{}
	ended   error         // of the call that will come to no more steps
	changed chan struct{} // closed, and made anew, at every step
}

// NewGate is a gate that is open everywhere.
func NewGate() *Gate {
	return &Gate{reached: map[impls.Step]int{}, shut: map[impls.Step]chan struct{}{}, changed: make(chan struct{})}
}

// Reach counts a step, and holds the client there while it is shut, whatever
// becomes of ctx.
func (g *Gate) Reach(_ context.Context, s impls.Step) {
	g.mu.Lock()
	g.reached[s]++
	if s != impls.StepRenewing { // which no call comes to
		g.last = s
	}
	g.change()
	shut := g.shut[s]
	g.mu.Unlock()
	if shut != nil {
		<-shut
	}
}

// call notes that a call begins, err nil, or has failed: then those who wait for
// a step need not wait for ever.
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

// Shut holds the client when it comes to s from now on, until open is called,
// once or more.
func (g *Gate) Shut(s impls.Step) (open func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	shut := make(chan struct{})
	g.shut[s] = shut
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.shut[s] == shut { // and not shut anew meanwhile
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
	g.await(t, fmt.Sprintf("step %q for the %d. time", s, n), func() bool { return g.reached[s] >= n })
}

// AwaitLast returns when the newest step of a call is s.
func (g *Gate) AwaitLast(t testing.TB, s impls.Step) {
	t.Helper()
	g.await(t, fmt.Sprintf("step %q to be the newest", s), func() bool { return g.last == s })
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
			t.Fatalf("the client's call ended before it came to %s: %v", what, ended)
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("the test ended before the client came to %s", what)
		}
	}
}

// Result is what an acquire came to.
type Result struct {
	Hold impls.Hold
	Err  error
}

// Begin begins an acquire, and returns once it has come to step s for the n-th
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

// Waiters are clients of a recipe whose waiters the server wakes.
type Waiters struct {
	Open func(*testing.T, impls.Steps) impls.Client
	N    int
	// Herd: a release wakes all of them; otherwise it wakes the next.
	Herd bool
	// Arrivals: so does an arrival.
	Arrivals bool
	// Ordered: they are served in the order in which they came.
	Ordered bool
}

// Served: the holder and then every waiter releases, and each release wakes
// just as many as it should.
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
			if w.Herd { // by this release, and before the next
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
		t.Errorf("%d waiters that came and were served were woken %d times in all, want %d", w.N, woken, want)
	}
}
