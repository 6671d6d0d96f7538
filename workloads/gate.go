package workloads

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// gate is the one place of a board at which a client can be caught: the first
// one to reach a named step of its recipe, or the nth, waits there until the
// gate opens. No signal from outside could hit so small a place; a client that
// waits there can be stopped or killed with ease.
//
// Its word is 0 while the gate is not armed. Otherwise it holds the step's
// number, counted from 1, how many clients have to come, and once the last of
// them has come, its number, and then that the other fields can be read.
type gate struct {
	word    atomic.Uint64
	key     atomic.Uint64 // of the call under way
	attempt [2]atomic.Uint64
}

const (
	gateStep        = 1<<16 - 1
	gateTaken       = 1 << 16
	gateShown       = 1 << 17
	gateCountShift  = 18
	gateCount       = 1<<14 - 1
	gateClientShift = 32

	// gateLook is how often a client that was caught looks whether it may go
	// on. Its process is stopped meanwhile, or killed.
	gateLook = 100 * time.Microsecond
)

// come is called by a client at a step, with the key and the attempt of the call
// under way. It returns when the client may go on, which may be never, and
// reports whether it had to wait.
func (g *gate) come(client uint32, step int, key uint32, a *history.Attempt) (stood bool) {
	for {
		w := g.word.Load()
		if w&gateStep != uint64(step)+1 || w&gateTaken != 0 {
			return false // not armed for this step, or another client came first
		}
		if w>>gateCountShift&gateCount > 1 {
			if g.word.CompareAndSwap(w, w-1<<gateCountShift) {
				return false // one less to come
			}
			continue
		}
		mine := w | gateTaken | uint64(client)<<gateClientShift
		if g.word.CompareAndSwap(w, mine) {
			g.stand(mine, key, a)
			return true
		}
	}
}

// stand shows who has come, and waits to be let go.
func (g *gate) stand(mine uint64, key uint32, a *history.Attempt) {
	g.key.Store(uint64(key))
	hi, lo := getAttempt(a)
	g.attempt[0].Store(hi)
	g.attempt[1].Store(lo)
	mine |= gateShown
	g.word.Store(mine)
	for g.word.Load() == mine {
		time.Sleep(gateLook)
	}
}

// Arm makes the gate catch the nth client from now on that comes to a step (0
// and 1: the first), by the step's number in Steps. The error says that a
// gate cannot count so far.
func (b *Board) Arm(step, nth int) error {
	if nth < 0 || nth > gateCount {
		return fmt.Errorf("wait for client %d at a step: a gate counts to %d", nth, gateCount)
	}
	b.head.gate.word.Store(uint64(step) + 1 | uint64(max(nth, 1))<<gateCountShift)
	return nil
}

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

// Disarm makes the gate catch no client any more. It reports false if a client has
// come.
func (b *Board) Disarm() bool {
	w := b.head.gate.word.Load()
	return w&gateTaken == 0 && b.head.gate.word.CompareAndSwap(w, 0)
}

// Open lets the client that came go on, once its process may.
func (b *Board) Open() { b.head.gate.word.Store(0) }

// Places of the load at which a client can be met as at a step of its recipe.
const (
	// PlaceAcquiring: an acquire is recorded, and nothing of it sent yet.
	PlaceAcquiring impls.Step = "acquiring"
	// PlaceHeld: the grant is recorded, and the critical section begins.
	PlaceHeld impls.Step = "held"
	// PlaceReleasing: a release is recorded, and not sent yet.
	PlaceReleasing impls.Step = "releasing"
)

// Steps lists the named steps at which the clients of a recipe can be met, in
// the order of their numbers: the recipe's, and then the load's places.
func Steps(info impls.Info) []impls.Step {
	list := recipeSteps(info)
	for _, p := range []impls.Step{PlaceAcquiring, PlaceHeld, PlaceReleasing} {
		if !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return list
}

// recipeSteps are those that the recipe itself comes to.
func recipeSteps(info impls.Info) []impls.Step {
	list := []impls.Step{impls.StepWaiting, impls.StepWoken}
	for _, s := range info.Steps {
		if !slices.Contains(list, s) {
			list = append(list, s)
		}
	}
	return list
}
