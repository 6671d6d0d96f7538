package conformance

import (
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// diesHolding kills the process of a holder while another waits.
func diesHolding(t *trial) {
	a, b, key := t.alone(), t.client(0), t.key()
	t.acquire(a, key)
	waiting := t.queue(b, key)
	t.succession(a, waiting, "while it held the lock")
}

// diesWaiting kills the process of a waiter, and then the holder releases.
func diesWaiting(t *trial) {
	h, a, b, key := t.client(0), t.alone(), t.client(1), t.key()
	held := t.acquire(h, key)
	t.queue(a, key)
	t.kill(a)
	died := t.clock.Now()
	t.free(held)
	t.granted(b.begin(doAcquire, t.forever(), key), died, "while it waited for the lock")
}

// succession kills the process of client a, and sees whether the acquire that
// is under way, of another, is granted.
func (t *trial) succession(a *remote, next *call, where string) {
	t.kill(a)
	t.granted(next, t.clock.Now(), where)
}

// granted sees whether a client is granted the lock after a death.
func (t *trial) granted(next *call, died int64, where string) {
	switch {
	case !t.within(t.long(), next):
		t.see(impls.DeadlockFree, No, "a client was killed %s, and no client was granted it in the %v after; %s", where, since(died, t.clock.Now()), t.boundWords())
	case next.Err != nil:
		t.nothing("acquire after a death: %w", next.Err)
	case !next.Reply.ok():
		t.nothing("acquire after a death: %s", next.Reply.Error)
	default:
		t.see(impls.DeadlockFree, Yes, "a client was killed %s, and another was granted it %v later; %s", where, since(died, next.Reply.Returned), t.boundWords())
		t.free(next)
	}
}

// silentHolder stops the process of a holder until another was granted the
// lock, and lets it go on.
func silentHolder(t *trial) {
	a, b, key := t.alone(), t.client(0), t.key()
	held := t.acquire(a, key)
	next := t.queue(b, key)
	if next.ended() {
		t.nothing("the waiter ended before the holder was stopped")
	}
	lease := t.look(held)
	t.freeze(a)
	stopped := t.clock.Now()
	lost := held.hold(doLost, 0)
	if !t.within(t.long(), next) {
		t.see(impls.Expiry, No, "the holder's process was stopped, and no client was granted the lock in the %v after; %s", since(stopped, t.clock.Now()), t.boundWords())
		return
	}
	if !next.granted() {
		t.nothing("the waiter was not granted the lock: %s", next.Reply.Error)
	}
	t.see(impls.Expiry, Yes, "the holder's process was stopped, and another was granted the lock %v later; %s", since(stopped, next.Reply.Returned), t.boundWords())
	if lease.LeaseEnd > next.Reply.Returned {
		t.see(impls.Exclusive, No, "a silent holder's lock passed to another %v before the end of its lease", since(next.Reply.Returned, lease.LeaseEnd))
	}
	t.resume(a)
	t.signalled(held, next, lost, "its process went on")
	t.saysLost(held, next, t.free(held))
}

// signalled sees whether the lock reports its loss to a holder by itself, and in
// time: its successor works from its grant on. A lease later is not in time, if the
// machine is not to blame.
func (t *trial) signalled(held, next, lost *call, after string) {
	from := t.clock.Now()
	switch {
	case !held.Reply.Signals:
		t.see(impls.SignalsLoss, No, "the holder's lock passed to another, and its hold has no channel to signal it")
	case !t.within(t.Config.TTL+t.Grace, lost):
		t.see(impls.SignalsLoss, No, "the holder's lock passed to another, and in the %v after %s it was not signalled", since(from, t.clock.Now()), after)
	case lost.Err != nil:
		t.nothing("listen to a loss: %w", lost.Err)
	case lost.Reply.Returned-from > int64(t.Config.TTL):
		t.nothing("the holder's lock passed to another, and it was signalled only %v after %s, more than a lease", since(from, lost.Reply.Returned), after)
	default:
		t.see(impls.SignalsLoss, Yes, "the holder's lock passed to another %v before it was signalled, %v after %s", since(next.Reply.Returned, lost.Reply.Returned), since(from, lost.Reply.Returned), after)
	}
}

// saysLost sees what releases of a lock answer that has passed to another: the
// first, and more if that is in doubt.
func (t *trial) saysLost(held, next *call, ans answer) {
	for deadline := time.Now().Add(t.Grace); ans.Outcome == history.Unknown && time.Now().Before(deadline); {
		t.pause(5 * time.Millisecond)
		ans = t.free(held)
	}
	switch ans.Outcome {
	case history.Lost:
		t.see(impls.ReportsLost, Yes, "the release of a lock that had passed to another said that it was lost")
	case history.Released:
		t.see(impls.ReportsLost, No, "the release of a lock that had passed to another %v before answered as if it had freed it", since(next.Reply.Returned, ans.Returned))
	default:
		t.see(impls.ReportsLost, No, "the release of a lock that had passed to another does not say so: %s", ans.Error)
	}
}

// cutOff ends the connections of a holder whose lock no lease ends.
func cutOff(t *trial) {
	if t.info.Bound.Leased() {
		return
	}
	a, b, c, key := t.proxied(0), t.client(1), t.client(2), t.key()
	held := t.acquire(a, key)
	next := t.queue(b, key)
	if next.ended() {
		t.nothing("the waiter ended before the holder was cut off")
	}
	lost := held.hold(doLost, 0)
	t.must("unplug the holder", a.order(order{Do: doNetwork, Network: unplugged}))
	if !t.within(t.long(), next) {
		for _, p := range about(impls.SignalsLoss, impls.ReportsLost) {
			t.see(p, NotApplicable, "the lock cannot be lost: the holder's connections were cut for %v, and no client was granted it", t.long())
		}
		return
	}
	if !next.granted() {
		t.nothing("the waiter was not granted the lock: %s", next.Reply.Error)
	}
	t.signalled(held, next, lost, "its connections were cut")
	t.must("plug the holder in", a.order(order{Do: doNetwork, Network: alive}))
	t.saysLost(held, next, t.free(held))
	if !t.guarded(c, key, next) {
		t.see(impls.Symmetric, No, "a holder whose connections had been cut released, and freed its successor's lock")
		return
	}
	t.see(impls.Symmetric, Yes, "a holder whose connections had been cut released, and its successor kept the lock")
	t.free(next)
}

// lateRelease stops the process of a holder and has it release as the first
// thing when it goes on, its lock having passed to another.
func lateRelease(t *trial) {
	if !t.info.Bound.Leased() {
		return
	}
	a, b, c, key := t.alone(), t.client(0), t.client(1), t.key()
	held := t.acquire(a, key)
	t.freeze(a)
	t.late(a, b, c, key, held, held.hold(doRelease, t.forever()), "its release was sent")
}

// succeed acquires the key of a holder that is stopped, once its lease is over.
func (t *trial) succeed(c *remote, key string) *call {
	next := c.begin(doAcquire, t.forever(), key)
	if !t.within(t.long(), next) || !next.granted() {
		t.nothing("the lock of a stopped holder did not pass to another within %v", t.long())
	}
	return next
}

// late has client b acquire the lock of client a, whose process is stopped,
// lets a go on, which frees something, and sees whether that was b's lock.
func (t *trial) late(a, b, c *remote, key string, held, release *call, where string) {
	next := t.succeed(b, key)
	a.goOn()
	t.resume(a)
	ans := t.answered("a late release", release)
	// One that did not come to the servers shows nothing: their answer is needed.
	for deadline := time.Now().Add(2 * t.Config.Timeout); (ans.Outcome == history.Unknown || ans.Outcome == history.Failed) && time.Now().Before(deadline); {
		t.pause(5 * time.Millisecond)
		ans = t.free(held)
	}
	// Before the lease's end the successor may owe the lock to the release.
	if held.Reply.LeaseEnd != 0 && next.Reply.Returned > held.Reply.LeaseEnd {
		t.saysLost(held, next, ans)
	}
	if !t.guarded(c, key, next) {
		t.see(impls.Symmetric, No, "a holder was stopped before %s, until another was granted the lock; it went on, and a third was granted the lock that its successor held (the release answered %s)", where, ans.Outcome)
		return
	}
	if ans.Outcome == history.Unknown {
		t.nothing("a late release had no definite answer within %v: %s", 2*t.Config.Timeout, ans.Error)
	}
	t.see(impls.Symmetric, Yes, "a holder was stopped before %s, until another was granted the lock; it went on, and its successor kept the lock", where)
	t.free(next)
}
