package run

import (
	"sync/atomic"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

// turnsOf has a scenario for each letter, which names its servers; those in capitals
// are to run alone.
func turnsOf(letters string) *turns {
	var scenarios []scenario.Scenario
	var keys []clusterKey
	for _, c := range letters {
		scenarios = append(scenarios, scenario.Scenario{Alone: c < 'a'})
		keys = append(keys, clusterKey{backend: string(c | 0x20)})
	}
	return newTurns(scenarios, keys)
}

func begins(t *testing.T, turns *turns, want int) {
	t.Helper()
	if i, _, ok := turns.next(); i != want || !ok {
		t.Errorf("scenario %d begins (%v), want %d", i, ok, want)
	}
}

// beginsAfter requires that the next turn waits until free has ended a scenario.
func beginsAfter(t *testing.T, turns *turns, ended, want int) {
	t.Helper()
	var free atomic.Bool
	asked, got := make(chan struct{}), make(chan int)
	go func() {
		close(asked)
		i, _, _ := turns.next()
		if !free.Load() {
			t.Errorf("scenario %d begins before %d has ended", i, ended)
		}
		got <- i
	}()
	<-asked
	free.Store(true)
	turns.done(ended)
	if i := <-got; i != want {
		t.Errorf("scenario %d begins after %d, want %d", i, ended, want)
	}
}

func TestTurnsShareNoServersAndLeaveSomeAlone(t *testing.T) {
	turns := turnsOf("AbcbA")
	begins(t, turns, 0)
	beginsAfter(t, turns, 0, 1)
	begins(t, turns, 2)
	beginsAfter(t, turns, 1, 3) // 3 needs the servers of 1, and 4 is to run alone
	turns.done(2)
	beginsAfter(t, turns, 3, 4)
	turns.done(4)
	if _, _, ok := turns.next(); ok {
		t.Error("a turn after the last scenario")
	}
}

func TestTurnsKeepTheOrderOfOneLane(t *testing.T) {
	turns := turnsOf("aaAa")
	for i := range 4 {
		begins(t, turns, i)
		turns.done(i)
	}
}
