package run

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/workloads"
)

// glance is how often the growing history is looked at. A violation shows
// within two of them.
const glance = 250 * time.Millisecond

// maxGlances bounds the violations of one scenario reported while it runs,
// but for the first of each class; the report counts them all.
const maxGlances = 3

// watch reports violations while the clients work. It is for the user at the
// screen only: no result depends on it, and an error ends it without a report,
// because the check at the end reads the same files.
func (r *runner) watch(ctx context.Context, sc scenario.Scenario, pool *workloads.Pool, dir string, window, end int64) {
	if sc.Workload.Kind == scenario.Uncontended || sc.Clients < 2 {
		return // clients do not compete there, and watching costs time
	}
	follow := history.Follow(dir)
	defer follow.Close()
	look := checker.NewWatch(r.watchOptions(sc, end))
	t := time.NewTicker(glance)
	defer t.Stop()
	reported := map[checker.Class]int{}
	all := 0
	for before := r.clock.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		now := r.clock.Now()
		if now-before < int64(glance/2) {
			continue // the last one was late, and proves nothing yet
		}
		if follow.Poll(look.Add) != nil || !follow.Whole() {
			return // what is missing may explain what is there
		}
		for c := range uint32(sc.Clients) {
			if p := pool.Process(c); p != nil && ended(p.Done()) {
				look.Died(c, r.clock.Now())
			}
		}
		// Every call stamped before the last glance has been written since, also by
		// a client that the system did not run at once.
		for _, w := range look.Settle(before, time.Duration(max(follow.Uncertainty(), r.clock.Uncertainty()))) {
			if all >= maxGlances && reported[w.Class] > 0 {
				continue
			}
			all++
			reported[w.Class]++
			r.Progress.Violation(sc, glimpse(w, window))
		}
		before = now
	}
}

// watchOptions are the checker's options for the watch. How long a key may stay
// without a holder depends on the faults in force; only kills of clients do not
// change it.
func (r *runner) watchOptions(sc scenario.Scenario, end int64) checker.Options {
	recipe, _ := r.Find(sc.Recipe) // needs has checked it
	o := measure.Promised(sc, recipe.Info())
	o.End = end
	for _, f := range sc.Faults {
		if kind, ok := chaos.ParseKind(f.Kind); !ok || !kind.KillsClient() {
			o.Takeover = 0
		}
	}
	return o
}

// glimpse describes a violation in a few words. It counts time as the report does,
// so that the violation can be found there.
func glimpse(w checker.Witness, window int64) string {
	at := measure.Moment(w.From, window)
	a, last := w.Calls[0], w.Calls[len(w.Calls)-1]
	b := last
	if len(w.Calls) > 1 {
		b = w.Calls[1]
	}
	answered := measure.Moment(last.Return, window)
	switch w.Class {
	case checker.DoubleHold:
		return fmt.Sprintf("at %s the lock's own answers show that clients %d and %d both held k%d", at, a.Client, b.Client, w.Key)
	case checker.EarlyExpiry:
		return fmt.Sprintf("at %s client %d was granted k%d within the lease of client %d", at, b.Client, w.Key, a.Client)
	case checker.ZombieSuccess:
		return fmt.Sprintf("at %s a %s of client %d's hold of k%d was confirmed, though that hold was over", answered, last.Kind, last.Client, w.Key)
	case checker.LostLock:
		return fmt.Sprintf("since %s client %d held k%d, and then it was gone though neither it nor its lease had ended the hold", at, a.Client, w.Key)
	case checker.FalseDefinite:
		return fmt.Sprintf("client %d was told that it had not got k%d, and at %s a %s showed that it had", a.Client, w.Key, answered, last.Kind)
	case checker.UnexplainedBusy:
		return fmt.Sprintf("at %s client %d was refused k%d, though nobody can have held it", at, a.Client, w.Key)
	case checker.TokenRegression:
		return fmt.Sprintf("at %s client %d was granted k%d with token %d, after client %d with token %d", at, last.Client, w.Key, last.Fence, a.Client, a.Fence)
	case checker.MissingToken:
		return fmt.Sprintf("at %s client %d was granted k%d without a token", at, a.Client, w.Key)
	case checker.StaleWrite:
		return fmt.Sprintf("at %s the register of k%d accepted client %d's write with the outdated token %d", at, w.Key, last.Client, last.Fence)
	case checker.LostUpdate:
		return fmt.Sprintf("at %s client %d wrote %d to the register of k%d, which had reached that by client %d's write: an update is lost", answered, last.Client, last.Arg, w.Key, a.Client)
	case checker.StuckKey:
		return fmt.Sprintf("k%d has been free and wanted since %s, for %s", w.Key, at, time.Duration(w.Length()).Round(time.Millisecond))
	}
	return fmt.Sprintf("at %s clients %d and %d both hold k%d", at, a.Client, b.Client, w.Key)
}

func ended(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
