package workloads

import (
	"os"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// gate is the one place of a board at which a client can be caught: the next
// one to come to a named step of its recipe stops its own process there, or
// ends it. A signal from outside could not hit so small a place for certain.
//
// Its word is 0 while nobody is wanted. It holds the step's number, counted
// from 1, and what shall be done; and once a client has come, who.
type gate struct {
	word atomic.Uint64
	at   atomic.Int64 // stamp of the arrival; it may be read when the process stands still
}

const (
	gateSteps       = 0xff
	gateKill        = 1 << 8
	gateTaken       = 1 << 9
	gateClientShift = 32

	// gateLook is how often a client that was caught looks whether it may go
	// on, should it run again before it was told so.
	gateLook = 100 * time.Microsecond
)

// come is called by a client that has come to a step. It returns when the
// client may go on, which may be never.
func (g *gate) come(client uint32, step int, clock history.Clock) {
	w := g.word.Load()
	if w&^gateKill != uint64(step)+1 {
		return // nobody is wanted here, or another came first
	}
	mine := w | gateTaken | uint64(client)<<gateClientShift
	if !g.word.CompareAndSwap(w, mine) {
		return
	}
	g.at.Store(clock.Now())
	if w&gateKill != 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // cannot fail for ourselves
		select {}
	}
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	for g.word.Load() == mine {
		time.Sleep(gateLook)
	}
}

// Caught is a client that came to the gate.
type Caught struct {
	Status       // key and attempt of the call under way
	At     int64 // stamp of its arrival; 0 until its process stands still or is gone
}

// Arm makes the gate wait for the first client that comes to a step of Steps
// (of the scenario's recipe): it stops its process, or with kill ends it.
func (b *Board) Arm(step int, kill bool) {
	w := uint64(step) + 1
	if kill {
		w |= gateKill
	}
	b.head.gate.at.Store(0)
	b.head.gate.word.Store(w)
}

// Caught is the client that came to the gate, if one has.
func (b *Board) Caught() (Caught, bool) {
	w := b.head.gate.word.Load()
	if w&gateTaken == 0 {
		return Caught{}, false
	}
	return Caught{Status: b.Status(uint32(w >> gateClientShift)), At: b.head.gate.at.Load()}, true
}

// Disarm makes the gate wait no longer. It reports false if a client has come
// meanwhile.
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
