package run

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/workloads"
)

// boardClients shows chaos the clients of the shared board.
type boardClients struct {
	board *workloads.Board
	pool  *workloads.Pool
	n     int
}

func (b boardClients) Holders() []chaos.Holding {
	var list []chaos.Holding
	for c := range uint32(b.n) {
		if st := b.board.Status(c); st.State == workloads.Holding && b.lives(c) {
			list = append(list, holding(st))
		}
	}
	return list
}

// lives reports whether a client lives: the slot of a killed one keeps its last
// state.
func (b boardClients) lives(client uint32) bool {
	p := b.pool.Process(client)
	if p == nil {
		return false
	}
	select {
	case <-p.Done():
		return false
	default:
		return true
	}
}

func (b boardClients) Holds(h chaos.Holding) bool {
	st := b.board.Status(h.Client)
	return st.State == workloads.Holding && st.Attempt == h.Attempt && b.lives(h.Client)
}

func (b boardClients) Process(client uint32) (chaos.Process, []uint32, error) {
	p := b.pool.Process(client)
	if p == nil {
		return nil, nil, fmt.Errorf("no process hosts client %d", client)
	}
	return p, b.pool.Hosted(client), nil
}

func (b boardClients) Waiters() []chaos.Holding {
	var list []chaos.Holding
	for c := range uint32(b.n) {
		if st := b.board.Status(c); st.State == workloads.Acquiring && b.lives(c) {
			list = append(list, holding(st))
		}
	}
	slices.SortStableFunc(list, func(x, y chaos.Holding) int { return cmp.Compare(x.Since, y.Since) })
	return list
}

func (b boardClients) Idle() []uint32 {
	var list []uint32
	for c := range uint32(b.n) {
		if b.board.Status(c).State == workloads.Idle && b.lives(c) {
			list = append(list, c)
		}
	}
	return list
}

func holding(st workloads.Status) chaos.Holding {
	return chaos.Holding{Client: st.Client, Key: st.Key, Attempt: st.Attempt, Since: st.Since}
}

// boardGate shows chaos the board's gate by the names of a recipe's steps.
type boardGate struct {
	*workloads.Board
	recipe string
	steps  []impls.Step
}

func (r *runner) gate(sc scenario.Scenario, board *workloads.Board) boardGate {
	recipe, _ := r.Find(sc.Recipe) // needs has checked it
	return boardGate{board, sc.Recipe, workloads.Steps(recipe.Info())}
}

func (g boardGate) Arm(step string, nth int) error {
	i := slices.Index(g.steps, impls.Step(step))
	if i < 0 {
		return fmt.Errorf("%s has no step %q; it has %q", g.recipe, step, g.steps)
	}
	return g.Board.Arm(i, nth)
}

func (g boardGate) Caught() (chaos.Holding, bool) {
	st, ok := g.Board.Caught()
	return holding(st), ok
}

// markKilled marks each worker that a fault ended as killed, so that this does not
// count as a failure of the worker.
func markKilled(workers []scenario.WorkerSample, kills []chaos.Kill) {
	for _, k := range kills {
		for i := range workers {
			if workers[i].PID == k.PID {
				workers[i].Killed, workers[i].Error = k.Fault, ""
			}
		}
	}
}
