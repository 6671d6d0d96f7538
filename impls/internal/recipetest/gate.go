package recipetest

import (
	"context"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/impls"
)

// Gate is the impls.Steps of one client: it counts the steps, and holds the
// client where a test wants it held. The zero Gate holds nobody. It is safe for
// concurrent use.
type Gate struct {
	mu     sync.Mutex
	counts map[impls.Step]int
	armed  map[impls.Step]*Held
}

// Held is a client's next arrival at a step.
type Held struct {
	arrived, goOn chan struct{}
	once          sync.Once
}

// Reach counts the arrival, and holds the client if that was asked for. Like a
// stopped process it does not see its context end.
func (g *Gate) Reach(_ context.Context, s impls.Step) {
	g.mu.Lock()
	if g.counts == nil {
		g.counts = map[impls.Step]int{}
	}
	g.counts[s]++
	held := g.armed[s]
	delete(g.armed, s)
	g.mu.Unlock()
	if held != nil {
		close(held.arrived)
		<-held.goOn
	}
}

// Hold holds the client the next time it comes to s. It goes on at the test's
// end at the latest.
func (g *Gate) Hold(t testing.TB, s impls.Step) *Held {
	h := &Held{arrived: make(chan struct{}), goOn: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.armed == nil {
		g.armed = map[impls.Step]*Held{}
	}
	g.armed[s] = h
	t.Cleanup(h.GoOn)
	return h
}

// Count is how often the client came to s.
func (g *Gate) Count(s impls.Step) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts[s]
}

// Await returns once the client is held.
func (h *Held) Await(t testing.TB) {
	t.Helper()
	select {
	case <-h.arrived:
	case <-t.Context().Done():
		t.Fatal("the test ended before the client came to the step")
	}
}

// GoOn lets the client go on.
func (h *Held) GoOn() { h.once.Do(func() { close(h.goOn) }) }
