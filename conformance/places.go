package conformance

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// place is where a client may be held, or die: a step of a call.
type place struct {
	do    verb // one that acquires, release, extend
	state keyState
	step  impls.Step
}

// keyState is what a client finds that acquires.
type keyState string

const (
	isFree      keyState = "a free key"
	isHeld      keyState = "a held key, which its holder then released"
	isAbandoned keyState = "a key whose holder had died"
	isMine      keyState = "a key that it held already"
	isPartly    keyState = "keys of which one was taken"
	isOwn       keyState = "" // of calls on a hold
)

// String is the place in words.
func (p place) String() string {
	s := fmt.Sprintf("at the step %q of its %s", string(p.step), p.do)
	if p.state != isOwn {
		s += " of " + string(p.state)
	}
	return s
}

// placeProperties are the properties that depend on what happens in the middle
// of a call.
func placeProperties() []impls.Property {
	return []impls.Property{impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.ReportsLost, impls.Extends, impls.Batch}
}

// explore finds the steps that calls come to, by making them once.
func (h *harness) explore(ctx context.Context) ([]place, []seen) {
	var places []place
	add := func(do verb, state keyState, a answer) {
		for _, s := range a.Passed {
			places = append(places, place{do, state, s})
		}
	}
	_, err := h.try(ctx, func(t *trial) {
		places = nil
		a, h, key := t.client(0), t.client(1), t.key()
		got := t.acquire(a, key)
		add(doAcquire, isFree, got.Reply)
		if ext := t.answered("extend", got.hold(doExtend, 0)); !ext.Unsupported {
			add(doExtend, isOwn, ext)
		}
		add(doRelease, isOwn, t.free(got))

		held := t.acquire(h, key)
		got = t.queue(a, key)
		t.free(held)
		add(doAcquire, isHeld, t.must("acquire", got))
		t.free(got)

		t.exploreAbilities(a, h, key, add)
		if t.info.Takeover == nil {
			return
		}
		t.abandon(key)
		got = a.begin(doAcquire, t.long(), key)
		if t.answered("acquire", got).ok() {
			add(doAcquire, isAbandoned, got.Reply)
		}
	})
	var saw []seen
	if err != nil {
		for _, p := range placeProperties() {
			saw = append(saw, seen{p, Unknown, fmt.Sprintf("the steps of the calls could not be found out: %v", err)})
		}
	}
	return places, saw
}

// exploreAbilities finds the steps of what only some locks can do.
func (t *trial) exploreAbilities(a, h *remote, key string, add func(verb, keyState, answer)) {
	if !t.answered("depth", a.order(order{Do: doDepth, Keys: []string{key}})).Unsupported {
		outer, inner := t.acquire(a, key), t.acquire(a, key)
		add(doAcquire, isMine, inner.Reply)
		add(doRelease, isMine, t.free(inner))
		t.free(outer)
	}
	shared := a.begin(doAcquireRead, t.long(), key)
	if t.answered("acquire for reading", shared).ok() {
		add(doAcquireRead, isFree, shared.Reply)
		t.free(shared)
		held := t.acquire(h, key)
		before := t.waits(a)
		shared = a.begin(doAcquireRead, t.long(), key)
		t.settle(shared, before)
		t.free(held)
		add(doAcquireRead, isHeld, t.must("acquire for reading", shared))
		t.free(shared)
	}
	keys := []string{key, t.key(), t.key()}
	taken := t.acquire(h, keys[1])
	batch := a.begin(doAcquireAll, giveUpAfter, keys...)
	if !t.answered("acquire all", batch).Unsupported {
		add(doAcquireAll, isPartly, batch.Reply)
		t.clean(batch)
	}
	t.free(taken)
}

// abandon leaves the key to a holder that died. The lease of one that is bound
// by a TTL is over when it returns.
func (t *trial) abandon(key string) {
	dying := t.alone()
	held := t.acquire(dying, key)
	t.kill(dying)
	if t.info.Bound == impls.BoundTTL && held.Reply.LeaseEnd > 0 {
		t.until(min(held.Reply.LeaseEnd, t.clock.Now()+int64(t.bound())))
	}
}

// atPlaces lists what is done at each of the places.
func atPlaces(info impls.Info, places []place) []procedure {
	var list []procedure
	for _, p := range places {
		if p.do == doAcquireAll {
			list = append(list, procedure{about(impls.Batch), func(t *trial) { diesInBatch(t, p.step) }})
			continue
		}
		list = append(list, procedure{about(impls.DeadlockFree), func(t *trial) { diesAt(t, p) }})
		if p.state == isMine {
			continue
		}
		if p.do == doAcquire {
			list = append(list, procedure{about(impls.Exclusive), func(t *trial) { overtaken(t, p, false) }})
		}
		if !info.Bound.Leased() {
			continue
		}
		switch p.do {
		case doAcquire:
			list = append(list, procedure{about(impls.Exclusive), func(t *trial) { overtaken(t, p, true) }})
		case doRelease:
			list = append(list, procedure{about(impls.Symmetric, impls.ReportsLost), func(t *trial) { lateAt(t, p) }})
		case doExtend:
			list = append(list, procedure{about(impls.Extends, impls.Exclusive), func(t *trial) { extendsLate(t, p) }})
		}
	}
	return list
}

// come has a client acquire, and be held at a place of that. It returns the
// acquire, and the hold of another that still has the key, nil if no client has it.
// ok is false if the client did not come there this time.
func (t *trial) come(a *remote, key string, p place) (got, holder *call, ok bool) {
	switch p.state {
	case isHeld:
		holder = t.acquire(t.client(0), key)
	case isAbandoned:
		t.abandon(key)
	case isMine:
		t.acquire(a, key)
	}
	before := t.waits(a)
	there := a.arm(p.step)
	got = a.begin(p.do, t.forever(), key)
	if holder != nil {
		waiting := a.order(order{Do: doReach, Step: impls.StepWaiting, Count: before + 1})
		t.first(settleFor, there, waiting)
		t.first(settleGrace, there, got)
		if !there.ended() {
			t.freeInTime(holder)
			holder = nil
		}
	}
	t.first(t.long(), there, got)
	if there.ended() {
		return got, holder, there.Err == nil
	}
	a.goOn()
	return got, holder, false
}

// diesAt kills the process of a client in the middle of a call.
func diesAt(t *trial, p place) {
	a, b, key := t.alone(), t.client(1), t.key()
	var holder *call
	if p.do == doAcquire || p.do == doAcquireRead {
		var ok bool
		if _, holder, ok = t.come(a, key, p); !ok {
			return
		}
	} else if _, ok := t.heldAt(a, key, p); !ok {
		return
	}
	t.kill(a)
	died := t.clock.Now()
	if holder != nil {
		t.free(holder)
	}
	t.granted(b.begin(doAcquire, t.forever(), key), died, p.String())
}

// heldAt acquires, and has the client held at a place of a release or extend.
func (t *trial) heldAt(a *remote, key string, p place) (under [2]*call, ok bool) {
	held := t.acquire(a, key)
	if p.state == isMine {
		held = t.acquire(a, key)
	}
	there := a.arm(p.step)
	under = [2]*call{held, held.hold(p.do, t.forever())}
	t.first(t.long(), there, under[1])
	return under, there.ended() && there.Err == nil
}

// overtaken holds a client at a place of its acquire while another acquires.
// If its process is stopped meanwhile, it is so until whatever it knew is out
// of date and all leases are over, before the other comes, and after it went on
// the other's lease is watched to its end; otherwise the other goes on to where
// it waits.
func overtaken(t *trial, p place, stopped bool) {
	var a *remote
	if stopped {
		a = t.alone()
	} else {
		a = t.client(2)
	}
	b, key := t.client(1), t.key()
	first, holder, ok := t.come(a, key, p)
	if !ok {
		t.windUp(first)
		return
	}
	if stopped {
		t.freeze(a)
		if holder != nil {
			t.freeInTime(holder)
		}
		t.pause(t.bound())
	}
	second := t.queue(b, key)
	if holder != nil && !stopped {
		t.freeInTime(holder)
		t.first(settleFor, second, second)
	}
	how := "was held"
	if stopped {
		how = "was stopped"
		t.within(t.long(), second)
	}
	before := t.passedWaits(a, stopped)
	a.goOn()
	if stopped {
		t.resume(a)
	}
	if t.settle(first, before); stopped && second.granted() && t.info.Bound == impls.BoundTTL {
		t.first(time.Duration(second.Reply.LeaseEnd-t.clock.Now()), first, first)
	}
	if first.granted() && second.granted() && t.both(first, second) {
		t.see(impls.Exclusive, No, "a client %s %s, and another was granted the lock; it went on, and was granted it %v after the other, within both leases",
			how, p, since(second.Reply.Returned, first.Reply.Returned))
	} else {
		t.see(impls.Exclusive, Yes, "a client %s %s while another acquired, and went on, and the two never held the lock at once", how, p)
	}
	t.windUp(first, second)
}

// passedWaits is how often a client that is held has come to wait. A process
// that is stopped cannot report it; then the next wait counts, whichever it is.
func (t *trial) passedWaits(a *remote, stopped bool) int {
	if stopped {
		return 1
	}
	return t.waits(a)
}

// both reports whether two holds were held at once, when the later one was
// granted. Neither has been released.
func (t *trial) both(x, y *call) bool {
	at := max(x.Reply.Returned, y.Reply.Returned) + int64(time.Millisecond)
	return inLease(t.look(x), at) && inLease(t.look(y), at)
}

// windUp lets acquires come to their end, one after another, and releases what
// they are granted.
func (t *trial) windUp(calls ...*call) {
	freed := map[*call]bool{}
	for deadline := time.Now().Add(t.long()); len(freed) < len(calls); {
		for _, c := range calls {
			if freed[c] || !c.ended() {
				continue
			}
			freed[c] = true
			if c.granted() {
				t.free(c)
			} else if c.Err == nil && c.Reply.Outcome == history.Unknown {
				t.clean(c)
			}
		}
		if time.Now().After(deadline) {
			return // which the trial's end ends
		}
		t.pause(time.Millisecond)
	}
}

// lateAt stops a holder in the middle of its release until another has the
// lock.
func lateAt(t *trial, p place) {
	a, b, c, key := t.alone(), t.client(0), t.client(1), t.key()
	under, ok := t.heldAt(a, key, p)
	if !ok {
		return
	}
	t.freeze(a)
	t.late(a, b, c, key, under[0], under[1], fmt.Sprintf("it went on from the step %q of its release", string(p.step)))
}

// extendsLate stops a holder in the middle of an extend until another has the
// lock.
func extendsLate(t *trial, p place) {
	a, b, c, key := t.alone(), t.client(0), t.client(1), t.key()
	under, ok := t.heldAt(a, key, p)
	if !ok {
		return
	}
	t.freeze(a)
	next := t.succeed(b, key)
	a.goOn()
	t.resume(a)
	ans := t.answered("a late extend", under[1])
	switch {
	case ans.ok() && inLease(t.look(next), ans.Returned):
		t.see(impls.Extends, No, "a holder was stopped %s until another was granted the lock, and then extended its own hold", p)
	case !t.guarded(c, key, next):
		t.see(impls.Extends, No, "a holder was stopped %s until another was granted the lock; when it went on, its successor lost the lock", p)
	default:
		t.see(impls.Extends, Yes, "a holder was stopped %s until another was granted the lock, and its extend came to: %s", p, ans.Outcome)
	}
	t.free(next)
}
