package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// all runs every scenario, and returns their results in the same order. At most
// Options.Parallel run at a time, no two of them on the same servers, and none
// beside one that is to run alone; they start in their order.
func (r *runner) all(ctx context.Context) []scenario.Result {
	results := make([]scenario.Result, len(r.Scenarios))
	lanes := max(1, min(r.Parallel, len(r.Scenarios)))
	var (
		mu      sync.Mutex
		freed   = sync.NewCond(&mu)
		begun   = make([]bool, len(r.Scenarios))
		busy    = map[clusterKey]bool{}
		waiting = len(r.Scenarios)
		started int
		running int
		alone   bool // the one that is running
	)
	// fits reports whether scenario i can start now.
	fits := func(i int) bool {
		return !begun[i] && !busy[r.keys[i]] && !alone && (running == 0 || !r.Scenarios[i].Alone)
	}
	// next waits for a scenario whose servers are free.
	next := func() (i, place int, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		for waiting > 0 {
			for i, key := range r.keys {
				if fits(i) {
					begun[i], busy[key] = true, true
					alone = r.Scenarios[i].Alone
					running++
					waiting--
					started++
					return i, started, true
				}
			}
			freed.Wait()
		}
		return 0, 0, false
	}
	var wg sync.WaitGroup
	for range lanes {
		wg.Go(func() {
			for i, place, ok := next(); ok; i, place, ok = next() {
				sc := r.Scenarios[i]
				r.Progress.Begin(place, len(r.Scenarios), sc)
				res := r.scenario(ctx, i, sc)
				r.used(i)
				if lanes > 1 && !sc.Alone && res.Status != scenario.StatusMissing {
					res.Warnings = append(res.Warnings, fmt.Sprintf("up to %d scenarios ran side by side: its figures of speed were taken beside others", lanes))
				}
				r.Known.Mark(&res)
				results[i] = res
				r.Progress.Done(res)
				mu.Lock()
				busy[r.keys[i]], alone = false, false
				running--
				freed.Broadcast()
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return results
}

// oneAtATime forwards the calls of concurrent scenarios one at a time.
type oneAtATime struct {
	mu sync.Mutex
	to Progress
}

func (p *oneAtATime) Note(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to.Note(line)
}

func (p *oneAtATime) Begin(i, n int, sc scenario.Scenario) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to.Begin(i, n, sc)
}

func (p *oneAtATime) Tick(sc scenario.Scenario, elapsed, total time.Duration, acquired uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to.Tick(sc, elapsed, total, acquired)
}

func (p *oneAtATime) Violation(sc scenario.Scenario, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to.Violation(sc, what)
}

func (p *oneAtATime) Done(res scenario.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to.Done(res)
}
