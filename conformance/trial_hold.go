package conformance

import (
	"sort"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// contention lets clients of several processes contend for a key.
func contention(t *trial) {
	const clients, rounds = 6, 20
	key := t.key()
	var calls []*call
	for i := range clients {
		calls = append(calls, t.client(i).order(order{Do: doHammer, Keys: []string{key}, Count: rounds, Limit: t.Grace / 2}))
	}
	var spans []span
	odd := map[string]int{}
	holders := 0
	for _, c := range calls {
		a := t.answered("contend", c)
		spans = append(spans, a.Spans...)
		for what, n := range a.Odd {
			odd[what] += n
		}
		if len(a.Spans) > 0 {
			holders++
		}
	}
	if holders < 2 {
		t.nothing("of %d clients that contended %d were granted the lock; calls came to %v", clients, holders, odd)
	}
	sort.Slice(spans, func(i, j int) bool { return spans[i].From < spans[j].From })
	unsure := 2 * t.unsure()
	last := spans[0]
	for _, s := range spans[1:] {
		if s.From < last.To-unsure {
			if odd[wasLate] > 0 {
				t.nothing("a client that contended released after its lease of %v was over", t.Config.TTL)
			}
			t.see(impls.Exclusive, No, "of %d clients that contended, one was granted the lock %v before another, who held it, released it",
				clients, time.Duration(last.To-s.From))
			return
		}
		if s.To > last.To {
			last = s
		}
	}
	t.see(impls.Exclusive, Yes, "%d grants to %d clients in %d processes that contended, and no two at once", len(spans), holders, sharedProcesses)
}

// unsure is by how much stamps of two client processes may be off, at most.
func (t *trial) unsure() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	var most int64
	for _, p := range t.processes {
		if p != nil {
			most = max(most, p.unsure)
		}
	}
	return most
}

// refusal tries a held lock. A try that waits is granted the lock once the holder
// has left; one that is refused only then may have waited, or the machine is slow.
func refusal(t *trial) {
	a, b, key := t.client(0), t.client(1), t.key()
	got := b.begin(doTry, 0, key)
	switch ans := t.answered("try", got); {
	case ans.Unsupported:
		t.see(impls.NonBlocking, No, "it cannot try: %s", ans.Error)
		return
	case ans.Outcome == history.Unknown:
		t.clean(got)
		t.nothing("a try of a free lock had no definite answer: %s", ans.Error)
	case !ans.ok():
		t.see(impls.NonBlocking, No, "a try of a free lock came to: %s", ans.Error)
		return
	}
	t.free(got)
	doubts := 0
	for range tries {
		held := t.acquire(a, key)
		try := b.begin(doTry, 0, key)
		if !t.within(settleFor, try) {
			t.free(held)
			switch ans := t.answered("try", try); {
			case ans.ok():
				t.free(try)
			case ans.Outcome == history.Busy:
				doubts++
			default:
				t.clean(try)
			}
			continue
		}
		if ans := t.answered("try", try); ans.Outcome != history.Busy {
			if ans.ok() && !inLease(t.look(held), ans.Returned) {
				t.nothing("the lease was over before it could be tried")
			}
			if ans.Outcome == history.Unknown {
				t.nothing("a try of a held lock had no definite answer: %s", ans.Error)
			}
			t.see(impls.NonBlocking, No, "a try of a held lock came to %s: %s", ans.Outcome, ans.Error)
			return
		}
		t.see(impls.NonBlocking, Yes, "a try of a held lock answered that it is busy, %v after it was sent",
			time.Duration(try.Reply.Returned-try.Reply.Sent).Round(time.Microsecond))
		t.free(held)
		return
	}
	if doubts > 0 {
		t.nothing("%d of %d tries of a held lock were refused only after %v, delayed by the lock or by a slow machine", doubts, tries, settleFor)
	}
	t.see(impls.NonBlocking, No, "%d times a try of a held lock was not answered before the holder released it, %v later", tries, settleFor)
}

// releasedTwice releases what was released, with no other client and with a
// successor.
func releasedTwice(t *trial) {
	a, b, c, key := t.client(0), t.client(1), t.client(2), t.key()
	first := t.acquire(a, key)
	t.must("release", first.hold(doRelease, 0))
	if again := t.free(first); again.ok() {
		t.see(impls.Once, No, "a second release of the same hold answered as if it had freed something")
		return
	}
	next := t.acquire(b, key)
	if again := t.free(first); again.ok() {
		t.see(impls.Once, No, "a second release, while a successor held the lock, answered as if it had freed something")
		return
	}
	t.cleanUp(a, first.order.Attempt, key)
	if !t.guarded(c, key, next) {
		t.see(impls.Once, No, "a second release freed the successor's lock")
		return
	}
	t.see(impls.Once, Yes, "a second release said that the lock was lost, and the successor kept it")
	t.free(next)
}

// foreignCleanup cleans up attempts that were never made.
func foreignCleanup(t *trial) {
	a, b, c, key := t.client(0), t.client(1), t.client(2), t.key()
	held := t.acquire(a, key)
	for who, r := range map[string]*remote{"another client": b, "the holder": a} {
		ans := t.cleanUp(r, attempt(), key)
		if !t.guarded(c, key, held) {
			t.see(impls.Symmetric, No, "the clean-up by %s of an attempt that was never made freed the lock (it answered %s)", who, ans.Outcome)
			return
		}
	}
	t.see(impls.Symmetric, Yes, "clean-ups of attempts that were never made freed nothing")
	t.free(held)
}

// unheardRefusal loses the answer to a try of a held lock, so that the client
// owes a clean-up of what it never got.
func unheardRefusal(t *trial) {
	a, b, c, key := t.client(0), t.proxied(1), t.client(2), t.key()
	held := t.acquire(a, key)
	defer t.keep(held)()
	t.must("mute a client", b.order(order{Do: doNetwork, Network: muted}))
	try := b.begin(doTry, answerLimit, key)
	if t.answered("try", try).Unsupported {
		try = b.begin(doAcquire, answerLimit, key)
	}
	ans := t.answered("try without hearing the answer", try)
	t.must("end the muting", b.order(order{Do: doNetwork, Network: alive}))
	if ans.Outcome != history.Unknown {
		t.nothing("a try whose answer was lost came to %s: does the recipe dial through Config.Dial?", ans.Outcome)
	}
	cleaned, ok := t.clean(try)
	if !t.guarded(c, key, held) {
		t.see(impls.Symmetric, No, "a client that did not receive the refusal cleaned up, and so freed the holder's (the clean-up answered %s)", cleaned.Outcome)
		return
	}
	if !ok {
		t.nothing("the clean-up had no definite answer: %s", cleaned.Error)
	}
	t.see(impls.Symmetric, Yes, "a client that did not receive the refusal cleaned up, and the holder kept it")
	t.free(held)
}

// extended renews a lease beyond its first end.
func extended(t *trial) {
	a, b, key := t.client(0), t.client(1), t.key()
	held := t.acquire(a, key)
	start := held.Reply.Returned
	renewed := 0
	for t.clock.Now() < start+int64(2*t.Config.TTL) {
		before := t.look(held)
		ans := t.answered("extend", held.hold(doExtend, 0))
		switch {
		case ans.Unsupported:
			t.see(impls.Extends, NotApplicable, "a hold cannot be extended: %s", ans.Error)
			return
		case !ans.ok() && !inLease(before, ans.Returned):
			t.nothing("a lease of %v was over between two renewals", t.Config.TTL)
		case ans.Outcome == history.Unknown: // it may have been extended
			t.nothing("extending a hold %v after its grant had no definite answer: %s", since(start, ans.Sent), ans.Error)
		case !ans.ok():
			t.see(impls.Extends, No, "extending a hold %v after its grant came to: %s", since(start, ans.Sent), ans.Error)
			return
		}
		renewed++
		if at, ok := t.refused(b, key, ans); !ok {
			t.see(impls.Extends, No, "another was granted the lock %v after it was extended by %v", since(ans.Sent, at), t.Config.TTL)
			return
		}
		t.pause(t.Config.TTL / 8)
	}
	t.free(held)
	t.see(impls.Extends, Yes, "extended %d times, the lock was held for %v with a TTL of %v", renewed, since(start, t.clock.Now()), t.Config.TTL)
}

// refused probes the key after it was extended, and reports whether it was
// refused, and when it was granted if not. The lease is a TTL again, whatever
// the hold says.
func (t *trial) refused(c *remote, key string, extension answer) (at int64, ok bool) {
	got := t.probe(c, key)
	if !got.granted() {
		return 0, true
	}
	if got.Reply.Returned >= extension.Sent+int64(t.Config.TTL) {
		t.nothing("the lease of %v was over before it could be probed", t.Config.TTL)
	}
	return got.Reply.Returned, false
}

// notRevived extends a hold whose lease is over, before another client is
// granted the lock and after. Before, it may still be the holder's: then it
// must be so for others too.
func notRevived(t *trial) {
	a, b, c, key := t.client(0), t.client(1), t.client(2), t.key()
	held := t.acquire(a, key)
	probe := t.answered("extend", held.hold(doExtend, 0))
	if probe.Unsupported {
		return // which extended reports
	}
	t.pause(t.bound() + t.Config.TTL/8)
	if late := t.answered("extend", held.hold(doExtend, 0)); late.ok() {
		if at, ok := t.refused(b, key, late); !ok {
			t.see(impls.Extends, No, "a hold was extended after its lease was over, and another was granted the lock %v later, within the new one", since(late.Sent, at))
			return
		}
	}
	next := b.begin(doAcquire, t.long(), key)
	if !t.answered("acquire", next).ok() {
		return // it does not expire: there is no successor to be harmed
	}
	if ans := t.answered("extend", held.hold(doExtend, 0)); ans.ok() && inLease(t.look(next), ans.Returned) {
		t.see(impls.Extends, No, "a hold was extended %v after a successor was granted the lock", since(next.Reply.Returned, ans.Returned))
		return
	}
	if !t.guarded(c, key, next) {
		t.see(impls.Extends, No, "extending a lost hold cost the successor the lock")
		return
	}
	t.see(impls.Extends, Yes, "a hold whose lock had passed to a successor could not be extended")
	t.free(next)
}

// reentry acquires again what the client holds, and releases in both orders.
func reentry(t *trial) {
	a, b, w, key := t.client(0), t.client(1), t.client(2), t.key()
	depth := func() (int, bool) {
		ans := t.answered("depth", a.order(order{Do: doDepth, Keys: []string{key}}))
		return ans.Depth, !ans.Unsupported
	}
	if _, ok := depth(); !ok {
		t.see(impls.Reenterable, No, "its client does not offer it: it is no impls.Reentrant")
		return
	}
	for _, inner := range []verb{doAcquire, doTry} {
		outer := t.acquire(a, key)
		waiting := t.queue(w, key)
		again := a.begin(inner, t.Grace, key)
		if ans := t.answered("acquire again", again); !ans.ok() {
			t.see(impls.Reenterable, No, "the holder's second %s came to: %s", inner, ans.Error)
			return
		}
		if d, _ := depth(); d != 2 {
			t.see(impls.Reenterable, No, "after two acquires the client counts %d", d)
			return
		}
		// By turns the inner hold goes first, and the outer.
		pair, names := []*call{again, outer}, "inner"
		if inner == doTry {
			pair, names = []*call{outer, again}, "outer"
		}
		if ans := t.freeInTime(pair[0]); !ans.ok() {
			t.see(impls.Reenterable, No, "the release of the %s hold came to: %s", names, ans.Error)
			return
		}
		// The waiter looks once more, or has been granted what b was refused.
		looked := t.waits(w)
		guarded := t.guarded(b, key, pair[1])
		t.settle(waiting, looked)
		if !guarded || waiting.granted() && inLease(t.look(pair[1]), waiting.Reply.Returned) {
			t.see(impls.Reenterable, No, "the release of the %s hold freed the lock, and another was granted it while the holder had one left to release", names)
			return
		}
		if ans := t.freeInTime(pair[1]); !ans.ok() {
			t.see(impls.Reenterable, No, "the second release came to: %s", ans.Error)
			return
		}
		if !t.answered("acquire", waiting).ok() {
			t.see(impls.Reenterable, No, "after two acquires and two releases another was not granted the lock: %s", waiting.Reply.Error)
			return
		}
		t.free(waiting)
	}
	t.see(impls.Reenterable, Yes, "the holder acquired again while another waited, and that one was granted the lock after the second release, not before")
}
