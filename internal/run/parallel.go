package run

import (
	"context"
	"fmt"
	"sync"

	"github.com/lockbench/lockbench/internal/scenario"
)

// all runs every scenario, and returns their results in the same order. At most
// Options.Parallel run at a time; see turns.
func (r *runner) all(ctx context.Context) []scenario.Result {
	results := make([]scenario.Result, len(r.Scenarios))
	lanes := max(1, min(r.Parallel, len(r.Scenarios)))
	t := newTurns(r.Scenarios, r.keys)
	var wg sync.WaitGroup
	for range lanes {
		wg.Go(func() {
			for i, place, ok := t.next(); ok; i, place, ok = t.next() {
				sc := r.Scenarios[i]
				r.Progress.Begin(place, len(r.Scenarios), sc)
				res := r.scenario(ctx, i, sc)
				r.used(i)
				if lanes > 1 && !sc.Alone && res.Status != scenario.StatusMissing {
					res.Warnings = append(res.Warnings, fmt.Sprintf(scenario.WarnBeside+": up to %d at a time, so the figures of speed are not its own", lanes))
				}
				r.Known.Mark(&res)
				results[i] = res
				r.Progress.Done(res)
				t.done(i)
			}
		})
	}
	wg.Wait()
	return results
}

// turns hands out scenarios in their order, no two at a time on the same servers,
// and none beside one that is to run alone.
type turns struct {
	scenarios []scenario.Scenario
	keys      []clusterKey

	mu      sync.Mutex
	freed   *sync.Cond
	begun   []bool
	busy    map[clusterKey]bool
	started int
	running int
	alone   bool // the one that runs
}

func newTurns(scenarios []scenario.Scenario, keys []clusterKey) *turns {
	t := &turns{scenarios: scenarios, keys: keys, begun: make([]bool, len(scenarios)), busy: map[clusterKey]bool{}}
	t.freed = sync.NewCond(&t.mu)
	return t
}

// next waits for a scenario that can start, and returns its place among those that
// have started; ok is false if none is left.
func (t *turns) next() (i, place int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.started < len(t.scenarios) {
		for i, key := range t.keys {
			if t.begun[i] || t.busy[key] || t.alone || t.running > 0 && t.scenarios[i].Alone {
				continue
			}
			t.begun[i], t.busy[key], t.alone = true, true, t.scenarios[i].Alone
			t.running++
			t.started++
			return i, t.started, true
		}
		t.freed.Wait()
	}
	return 0, 0, false
}

func (t *turns) done(i int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy[t.keys[i]], t.alone = false, false
	t.running--
	t.freed.Broadcast()
}
