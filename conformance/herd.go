package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// Herd measures how many waiters a release wakes, on average over some releases
// with so many waiters: those that come to StepWoken. It is 0 for a recipe
// whose waiters ask again by themselves, about 1 for a queue, and waiters where
// all watch the same. What Measure says of client processes holds for Herd.
func Herd(ctx context.Context, s Subject, waiters int) (float64, error) {
	l, err := newHarness(ctx, s)
	if err != nil {
		return 0, fmt.Errorf("count the woken of %s: %w", s.Recipe.Info().ID, err)
	}
	var woken float64
	_, err = l.try(ctx, func(t *trial) { woken = t.herd(waiters) })
	if cerr := l.close(); err == nil {
		err = cerr
	}
	if err != nil {
		return 0, fmt.Errorf("count the woken of %s: %w", l.info.ID, err)
	}
	return woken, nil
}

func (t *trial) herd(waiters int) float64 {
	const releases = 5
	key := t.key()
	holder := t.acquire(t.client(0), key)
	calls := map[*call]bool{}
	clients := []*remote{holder.client}
	for i := range waiters {
		c := t.client(i)
		clients = append(clients, c)
		calls[t.queue(c, key)] = true
	}
	before := t.woken(clients, 0)
	for range releases {
		t.free(holder)
		next := t.firstGranted(calls)
		delete(calls, next)
		// Who released stands in line again, so that as many wait as before.
		again := holder.client
		holder = next
		calls[t.queue(again, key)] = true
	}
	return float64(t.woken(clients, before)-before) / releases
}

// firstGranted waits until one of the calls is granted.
func (t *trial) firstGranted(calls map[*call]bool) *call {
	for deadline := time.Now().Add(t.long()); time.Now().Before(deadline); t.pause(time.Millisecond) {
		for c := range calls {
			if c.ended() {
				t.must("acquire in turn", c)
				return c
			}
		}
	}
	t.nothing("no waiter was granted the lock within %v of a release", t.long())
	return nil
}

// woken is how often the clients were woken, once that does not change any
// more.
func (t *trial) woken(clients []*remote, least int) int {
	for last := least - 1; ; {
		sum := 0
		for _, c := range clients {
			sum += t.must("count steps", c.order(order{Do: doSteps})).Steps[impls.StepWoken]
		}
		if sum == last {
			return sum
		}
		last = sum
		t.pause(settleFor / 2)
	}
}
