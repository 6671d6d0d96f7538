package conformance

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/lockbench/lockbench/impls"
)

// gate is the impls.Steps of one client: it counts the steps that the client
// comes to, and can hold the client at one of them. Its methods are safe for
// concurrent use.
type gate struct {
	mu     sync.Mutex
	counts map[impls.Step]int
	passed []impls.Step // by the call under way
	moved  chan struct{}

	armed impls.Step    // "": none
	at    chan struct{} // closed once the client is held
	open  chan struct{} // closed to let it go on
}

func newGate() *gate { return &gate{counts: map[impls.Step]int{}, moved: make(chan struct{})} }

// Reach counts, and holds the client if it was armed for s. It does not look
// at the context: a client that stands still sees no deadline pass.
func (g *gate) Reach(_ context.Context, s impls.Step) {
	g.mu.Lock()
	g.counts[s]++
	// No call comes to a renewal, though one may be under way beside it.
	if s != impls.StepRenewing && !slices.Contains(g.passed, s) {
		g.passed = append(g.passed, s)
	}
	close(g.moved)
	g.moved = make(chan struct{})
	if g.armed != s {
		g.mu.Unlock()
		return
	}
	g.armed = ""
	close(g.at)
	open := g.open
	g.mu.Unlock()
	<-open
}

// arm has the client held the next time it comes to s.
func (g *gate) arm(s impls.Step) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed, g.at, g.open = s, make(chan struct{}), make(chan struct{})
}

// release lets the client go on, or takes back the arming.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.armed = ""
	if g.open != nil {
		close(g.open)
		g.open = nil
	}
}

// held is closed once the client is held where it was last armed for; nil if
// it never was armed.
func (g *gate) held() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.at
}

// await returns once the client has come to s n times in all, or ctx ends.
func (g *gate) await(ctx context.Context, s impls.Step, n int) error {
	for {
		g.mu.Lock()
		have, moved := g.counts[s], g.moved
		g.mu.Unlock()
		if have >= n {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// begin forgets which steps the call before came to; since returns them.
func (g *gate) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passed = nil
}

func (g *gate) since() []impls.Step {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.passed)
}

func (g *gate) steps() map[impls.Step]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.counts)
}
