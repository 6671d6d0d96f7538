package workloads

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// gate is the one place of a board at which a client can be caught: the next
// one to come to a named step of its recipe stands there until it is let go.
// No signal from outside could hit so small a place; one that stands there can
// be stopped or killed at leisure.
//
// Its word is 0 while nobody is wanted. It holds the step's number, counted
// from 1, and once a client has come, who.
type gate struct{ word atomic.Uint64 }

const (
	gateTaken       = 1 << 16
	gateClientShift = 32

	// gateLook is how often a client that was caught looks whether it may go
	// on. Its process is stopped meanwhile, or killed.
	gateLook = 100 * time.Microsecond
)

// come is called by a client that has come to a step. It returns when the
// client may go on, which may be never.
func (g *gate) come(client uint32, step int) {
	w := g.word.Load()
	if w != uint64(step)+1 {
		return // nobody is wanted here, or another came first
	}
	mine := w | gateTaken | uint64(client)<<gateClientShift
	if !g.word.CompareAndSwap(w, mine) {
		return
	}
	for g.word.Load() == mine {
		time.Sleep(gateLook)
	}
}

// Arm makes the gate catch the first client that comes to a step, by its
// number in Steps.
func (b *Board) Arm(step int) { b.head.gate.word.Store(uint64(step) + 1) }

// Caught is the client that stands at the gate, with the key and the attempt of
// the call under way, if one has come.
func (b *Board) Caught() (Status, bool) {
	w := b.head.gate.word.Load()
	if w&gateTaken == 0 {
		return Status{}, false
	}
	return b.Status(uint32(w >> gateClientShift)), true
}

// Disarm makes the gate catch nobody any more. It reports false if a client has
// come.
func (b *Board) Disarm() bool {
	w := b.head.gate.word.Load()
	return w&gateTaken == 0 && b.head.gate.word.CompareAndSwap(w, 0)
}

// Open lets the client that came go on, once its process may.
func (b *Board) Open() { b.head.gate.word.Store(0) }

// Steps lists the named steps at which the clients of a recipe can be met, in
// the order of their numbers.
func Steps(info impls.Info) []impls.Step {
	list := []impls.Step{impls.StepWaiting, impls.StepWoken}
	for _, s := range info.Steps {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}
