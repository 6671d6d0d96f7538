package run

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/measure"
	"github.com/lockbench/lockbench/scenario"
	"github.com/lockbench/lockbench/workloads"
)

// glance is how often the growing history is looked at. A violation shows
// within two of them.
const glance = 250 * time.Millisecond

// maxGlances bounds the violations of one scenario that are told while it runs;
// the report counts them all.
const maxGlances = 3

// watch tells of violations while the clients work. It is a service to whoever
// looks on: nothing depends on it, and an error ends it without a word, for the
// check at the end meets the same files.
func (r *runner) watch(ctx context.Context, sc scenario.Scenario, pool *workloads.Pool, dir string, start int64) {
	if sc.Workload.Kind == scenario.Uncontended || sc.Clients < 2 {
		return // nobody meets anybody there, and the looking costs time
	}
	follow := history.Follow(dir)
	defer follow.Close()
	recipe, _ := r.Find(sc.Recipe) // needs has checked it
	look := checker.NewWatch(measure.Promised(sc, recipe.Info()))
	t := time.NewTicker(glance)
	defer t.Stop()
	for told := 0; told < maxGlances; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		if follow.Poll(look.Add) != nil {
			return
		}
		for c := range uint32(sc.Clients) {
			if p := pool.Process(c); p != nil && ended(p.Done()) {
				look.Died(c)
			}
		}
		for _, w := range look.Settle() {
			if told++; told > maxGlances {
				break
			}
			r.Progress.Violation(sc, glimpse(w, start))
		}
	}
}

// glimpse is a violation in a few words. Stamps count from the start of the
// load.
func glimpse(w checker.Witness, start int64) string {
	at := time.Duration(w.From - start).Seconds()
	a, b := w.Calls[0], w.Calls[len(w.Calls)-1]
	switch w.Class {
	case checker.TokenRegression:
		return fmt.Sprintf("at %.3f s client %d was granted k%d with token %d, after client %d with token %d", at, b.Client, w.Key, b.Fence, a.Client, a.Fence)
	case checker.MissingToken:
		return fmt.Sprintf("at %.3f s client %d was granted k%d without a token", at, a.Client, w.Key)
	case checker.StaleWrite:
		return fmt.Sprintf("at %.3f s the register of k%d accepted client %d's write with the outdated token %d", at, w.Key, a.Client, a.Fence)
	case checker.LostLock:
		return fmt.Sprintf("since %.3f s client %d held k%d, and then it was gone though neither it nor its lease had ended the hold", at, a.Client, w.Key)
	}
	return fmt.Sprintf("at %.3f s clients %d and %d both hold k%d", at, a.Client, b.Client, w.Key)
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
