package workloads

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// gate is the one place of a board at which a client can be caught: the next
// one to come to a named step of its recipe stands there until it is let go.
// No signal from outside could hit so small a place; one that stands there can
// be stopped or killed at leisure.
//
// Its word is 0 while nobody is wanted. It holds the step's number, counted
// from 1, once a client has come, who, and then that the rest can be read.
type gate struct {
	word    atomic.Uint64
	key     atomic.Uint64 // of the call under way
	attempt [2]atomic.Uint64
}

const (
	gateTaken       = 1 << 16
	gateShown       = 1 << 17
	gateClientShift = 32

	// gateLook is how often a client that was caught looks whether it may go
	// on. Its process is stopped meanwhile, or killed.
	gateLook = 100 * time.Microsecond
)

// come is called by a client that has come to a step of the call op. It returns
// when the client may go on, which may be never.
func (g *gate) come(client uint32, step int, op *history.Op) {
	w := g.word.Load()
	if w != uint64(step)+1 {
		return // nobody is wanted here, or another came first
	}
	mine := w | gateTaken | uint64(client)<<gateClientShift
	if !g.word.CompareAndSwap(w, mine) {
		return
	}
	g.key.Store(uint64(op.Key))
	hi, lo := getAttempt(&op.Attempt)
	g.attempt[0].Store(hi)
	g.attempt[1].Store(lo)
	mine |= gateShown
	g.word.Store(mine)
	for g.word.Load() == mine {
		time.Sleep(gateLook)
	}
}

// Arm makes the gate catch the first client that comes to a step, by its
// number in Steps.
func (b *Board) Arm(step int) { b.head.gate.word.Store(uint64(step) + 1) }

// Caught is the client that stands at the gate, if one has come, with the key
// and the attempt of the call under way. (Where a client locks several times
// over, its slot has those of the first.)
func (b *Board) Caught() (Status, bool) {
	g := &b.head.gate
	w := g.word.Load()
	if w&gateShown == 0 {
		return Status{}, false
	}
	st := b.Status(uint32(w >> gateClientShift))
	st.Key = uint32(g.key.Load())
	putAttempt(&st.Attempt, g.attempt[0].Load(), g.attempt[1].Load())
	return st, true
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
