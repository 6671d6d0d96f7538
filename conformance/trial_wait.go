package conformance

import (
	"slices"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// waiter waits for a held lock, and the holder releases it.
func waiter(t *trial) {
	a, b, key := t.client(0), t.client(1), t.key()
	held := t.acquire(a, key)
	got := t.queue(b, key)
	if got.ended() && !got.granted() {
		t.see(impls.Blocking, No, "the acquire of a held lock ended instead of waiting: %s", got.Reply.Error)
		return
	}
	lease := t.look(held)
	freed := t.free(held)
	if !t.within(t.long(), got) {
		t.see(impls.Blocking, No, "a waiter was not granted the lock in the %v after the holder released it", since(freed.Returned, t.clock.Now()))
		return
	}
	if !got.granted() {
		t.nothing("the waiter's acquire: %s", got.Reply.Error)
	}
	if got.Reply.Returned < freed.Sent && inLease(lease, got.Reply.Returned) {
		t.see(impls.Exclusive, No, "a waiter was granted the lock %v before the holder released it", since(got.Reply.Returned, freed.Sent))
		return
	}
	t.see(impls.Blocking, Yes, "a waiter was granted the lock %v after the holder released it", since(freed.Returned, got.Reply.Returned))
	t.free(got)
}

// givesUp waits for a held lock until a deadline.
func givesUp(t *trial) {
	a, b, key := t.client(0), t.client(1), t.key()
	held := t.acquire(a, key)
	defer t.keep(held)()
	got := b.begin(doAcquire, giveUpAfter, key)
	if !t.within(t.Grace, got) {
		t.see(impls.Blocking, No, "a waiter with a deadline after %v still waited %v after it began", giveUpAfter, since(got.Reply.Sent, got.Reply.Sent+int64(t.Grace)))
		return
	}
	ans := t.answered("acquire", got)
	switch {
	case ans.ok() && !inLease(t.look(held), ans.Returned):
		t.nothing("the lease was over before the deadline")
	case ans.ok():
		t.see(impls.Exclusive, No, "a waiter was granted a held lock")
	case ans.Unsupported:
		t.see(impls.Blocking, No, "it cannot wait: %s", ans.Error)
	default:
		t.see(impls.Blocking, Yes, "a waiter gave up at its deadline: it began to wait, and %v later said: %s", since(ans.Sent, ans.Returned), ans.Outcome)
	}
	t.clean(got)
	t.free(held)
}

func leavesByDeadline(t *trial) { leaves(t, "by its deadline", giveUpAfter) }

func leavesByCancel(t *trial) { leaves(t, "by its caller", 0) }

// leaves has a waiter give up, and then looks for what it left behind.
func leaves(t *trial, how string, limit time.Duration) {
	a, b, c, key := t.client(0), t.client(1), t.client(2), t.key()
	held := t.acquire(a, key)
	before := t.waits(b)
	got := b.begin(doAcquire, limit, key)
	if limit == 0 {
		t.settle(got, before)
		b.order(order{Do: doCancel})
	}
	if !t.within(t.Grace, got) {
		t.see(impls.CleansUp, No, "a waiter that was ended %s still waited %v later", how, t.Grace)
		return
	}
	if got.granted() {
		t.nothing("the waiter was granted the lock before it was ended")
	}
	if a, ok := t.clean(got); !ok {
		t.see(impls.CleansUp, No, "the clean-up of a waiter that was ended %s has no definite answer: %s", how, a.Error)
		return
	}
	if again := t.cleanUp(b, got.order.Attempt, key); again.ok() {
		t.see(impls.CleansUp, No, "a waiter was ended %s and cleaned up after, and another clean-up found something still", how)
		return
	}
	if !t.guarded(c, key, held) {
		// It left nothing, but took what was not its own.
		t.see(impls.Symmetric, No, "a waiter that was ended %s took the lock from its holder", how)
	}
	t.freeInTime(held)
	// Again and again: a leftover attempt that goes on waiting takes the lock in between.
	const looks = 5
	for range looks {
		for who, r := range map[string]*remote{"another": c, "the waiter itself": b} {
			if got := t.probe(r, key); !got.granted() {
				t.see(impls.CleansUp, No, "a waiter was ended %s, the holder released, and %s was refused the free lock: %s", how, who, got.Reply.Error)
				return
			}
		}
		t.pause(settleGrace)
	}
	t.see(impls.CleansUp, Yes, "a waiter was ended %s, and after the holder released the lock was free", how)
}

// queued is how many waiters inOrder has: a lock that serves them in any order
// serves them in this one once in 5040 times.
const queued = 7

// inOrder has waiters come one after another, and sees in which order they are
// served. Waiters come slowly, so that a lock that lets its waiters ask anew
// once in a while shows it; and if that was out of order, more slowly still,
// so that a busy machine does not spoil the order in which they come.
func inOrder(t *trial) {
	var last []int
	for _, gap := range []time.Duration{250 * time.Millisecond, 600 * time.Millisecond} {
		const rounds = 2
		kept := 0
		for range rounds {
			if last = t.served(gap); !slices.IsSorted(last) {
				break
			}
			kept++
		}
		if kept == rounds {
			t.see(impls.Ordered, Yes, "%d waiters that came %v apart were served in that order, %d times of %d", queued, gap, kept, rounds)
			return
		}
	}
	t.see(impls.Ordered, No, "waiters that came in the order 1 to %d were served in the order %v", queued, last)
}

// served has waiters come with a gap between them and returns the order in
// which they were granted the lock, each as its number from 1.
func (t *trial) served(gap time.Duration) []int {
	key := t.key()
	keeper := t.client(0)
	held := t.acquire(keeper, key)
	done := t.keep(held) // until all have come
	var calls []*call
	for i := range queued {
		before := t.clock.Now()
		calls = append(calls, t.queue(t.client(i), key))
		t.until(before + int64(gap))
	}
	done()
	t.free(held)
	type grant struct {
		number int
		at     int64
	}
	var grants []grant
	for deadline := time.Now().Add(t.long()); len(grants) < queued; {
		if time.Now().After(deadline) {
			t.nothing("of %d waiters %d were granted the lock in %v", queued, len(grants), t.long())
		}
		for i, c := range calls {
			if c != nil && c.ended() {
				calls[i] = nil
				t.must("acquire in turn", c)
				grants = append(grants, grant{i + 1, c.Reply.Returned})
				t.free(c)
			}
		}
		t.pause(time.Millisecond)
	}
	slices.SortFunc(grants, func(a, b grant) int { return int(a.at - b.at) })
	var list []int
	for _, g := range grants {
		list = append(list, g.number)
	}
	return list
}
