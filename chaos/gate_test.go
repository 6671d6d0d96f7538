package chaos

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/history"
)

// fakeGate is a gate to which a client comes after some looks.
type fakeGate struct {
	comes  int // at which look; negative: never
	late   bool
	lost   bool // it came, and is not seen
	looks  int
	opened int
	open   func()
	step   string // the one place that it knows; "": several
}

func (g *fakeGate) Arm(step string, _ int) error {
	known := []string{g.step}
	if g.step == "" {
		known = []string{"between", placeHeld, placeReleasing}
	}
	if !slices.Contains(known, step) {
		return errors.New("no such step")
	}
	return nil
}

func (g *fakeGate) Caught() (Holding, bool) {
	g.looks++
	return Holding{Client: 2, Key: 4, Attempt: history.Attempt{5}}, g.comes >= 0 && g.looks > g.comes
}

// Disarm fails if the client comes at this very moment.
func (g *fakeGate) Disarm() bool {
	if g.lost {
		return false
	}
	if g.late {
		g.comes = 0
		return false
	}
	return true
}

func (g *fakeGate) Open() {
	g.opened++
	if g.open != nil {
		g.open()
	}
}

// strictGate is a gate as the board's is: for one at a time. A client comes to
// its place as soon as it is armed.
type strictGate struct {
	t     *testing.T
	come  string
	mu    sync.Mutex
	state gateState
}

type gateState int

const (
	free gateState = iota
	armed
	waiting // for one that never comes
	caught
)

func (g *strictGate) Arm(step string, _ int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state != free {
		g.t.Errorf("the gate was armed in state %d", g.state)
	}
	if g.state = armed; step != g.come {
		g.state = waiting
	}
	return nil
}

func (g *strictGate) Caught() (Holding, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state != armed && g.state != caught {
		return Holding{}, false
	}
	g.state = caught
	return Holding{Client: 6, Key: 4, Attempt: history.Attempt{6}}, true
}

func (g *strictGate) Disarm() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.state == caught {
		return false
	}
	g.state = free
	return true
}

func (g *strictGate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state = free
}
