package conformance

import (
	"fmt"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// readersAndWriters lets readers share the lock, and a writer exclude.
func readersAndWriters(t *trial) {
	a, b, w, key := t.client(0), t.client(1), t.client(2), t.key()
	first := a.begin(doAcquireRead, t.long(), key)
	if t.answered("acquire for reading", first).Unsupported {
		t.see(impls.ReadWrite, No, "its client does not offer it: it is no impls.ReadWriter")
		return
	}
	t.must("acquire for reading", first)
	for _, do := range []verb{doTryRead, doAcquireRead} {
		second := b.begin(do, t.Grace, key)
		if ans := t.answered("acquire for reading", second); !ans.ok() {
			t.see(impls.ReadWrite, No, "while one reader held the lock, another reader's %s came to: %s", do, ans.Error)
			return
		}
		if !t.guarded(w, key, second) {
			t.see(impls.ReadWrite, No, "a writer was granted a lock that readers held")
			return
		}
		t.free(second)
	}
	if !t.guarded(w, key, first) {
		t.see(impls.ReadWrite, No, "a writer was granted the lock when one of two readers had released")
		return
	}
	writer := t.queue(w, key)
	if writer.granted() && inLease(t.look(first), writer.Reply.Returned) {
		t.see(impls.ReadWrite, No, "a waiting writer was granted a lock that a reader held")
		return
	}
	t.free(first)
	if !t.answered("acquire for writing", writer).ok() {
		t.see(impls.ReadWrite, No, "after the last reader released, the waiting writer was not granted the lock: %s", writer.Reply.Error)
		return
	}
	for _, r := range []*remote{a, b} {
		got := r.begin(doTryRead, t.Config.Timeout, key)
		if ans := t.answered("try for reading", got); ans.ok() && inLease(t.look(writer), ans.Returned) {
			t.see(impls.ReadWrite, No, "a reader was granted a lock that a writer held")
			return
		}
		t.clean(got)
	}
	if !t.guarded(b, key, writer) {
		t.see(impls.ReadWrite, No, "a writer was granted a lock that another writer held")
		return
	}
	reader := a.begin(doAcquireRead, t.forever(), key)
	t.settle(reader, 0)
	t.free(writer)
	if !t.answered("acquire for reading", reader).ok() {
		t.see(impls.ReadWrite, No, "after the writer released, a waiting reader was not granted the lock: %s", reader.Reply.Error)
		return
	}
	t.free(reader)
	t.see(impls.ReadWrite, Yes, "two readers held the lock at once and kept a writer out, and a writer kept out readers and writers")
}

// batches takes several keys at once, all or none.
func batches(t *trial) {
	a, b, c := t.client(0), t.client(1), t.client(2)
	keys := []string{t.key(), t.key(), t.key()}
	all := a.begin(doTryAll, t.Config.Timeout, keys...)
	if t.answered("try all", all).Unsupported {
		t.see(impls.Batch, No, "its client does not offer it: it is no impls.Batcher")
		return
	}
	if !all.granted() {
		t.see(impls.Batch, No, "a try of %d free keys came to: %s", len(keys), all.Reply.Error)
		return
	}
	for i, key := range keys {
		if !t.guarded(b, key, all) {
			t.see(impls.Batch, No, "key %d of a batch was granted to another while the batch was held", i+1)
			return
		}
	}
	t.free(all)
	// The key in the middle is taken: the one before it must be given back,
	// and the one after it never be had.
	for _, do := range []verb{doTryAll, doAcquireAll} {
		taken := t.acquire(b, keys[1])
		got := a.begin(do, giveUpAfter, keys...)
		ans := t.answered("acquire all", got)
		if ans.ok() {
			if !inLease(t.look(taken), ans.Returned) {
				t.nothing("the lease was over before the batch was refused")
			}
			t.see(impls.Batch, No, "a batch was granted though another held one of its keys")
			return
		}
		if do == doTryAll && ans.Outcome != history.Busy {
			t.see(impls.Batch, No, "a try of keys of which one is taken came to %s: %s", ans.Outcome, ans.Error)
			return
		}
		if _, ok := t.clean(got); !ok {
			t.nothing("the clean-up of a batch has no definite answer")
		}
		if !t.othersFree(c, keys, fmt.Sprintf("after a %s that found key 2 taken", do)) {
			return
		}
		t.free(taken)
	}
	t.crossing(a, b, keys)
}

// othersFree sees whether the first and the last of three keys can be had.
func (t *trial) othersFree(c *remote, keys []string, when string) bool {
	for _, i := range []int{0, 2} {
		if got := t.probe(c, keys[i]); !got.granted() {
			t.see(impls.Batch, No, "%s, key %d was not free: %s", when, i+1, got.Reply.Error)
			return false
		}
	}
	return true
}

// crossing has two clients take the same keys in opposite orders, again and
// again: if one holds what the other waits for, both wait for ever.
func (t *trial) crossing(a, b *remote, keys []string) {
	const rounds = 10
	back := []string{keys[2], keys[1], keys[0]}
	for range rounds {
		x, y := a.begin(doAcquireAll, t.forever(), keys...), b.begin(doAcquireAll, t.forever(), back...)
		t.first(t.long(), x, y)
		for _, c := range []*call{x, y} {
			if c.granted() {
				t.free(c)
			}
		}
		for _, c := range []*call{x, y} {
			if !t.within(t.long(), c) || c.Err != nil || !c.Reply.ok() {
				t.see(impls.Batch, No, "of two clients that took the same keys in opposite orders, one was not granted them in %v", t.long())
				return
			}
		}
		for _, c := range []*call{x, y} {
			t.answered("release", c.hold(doRelease, t.long())) // once more, of what was released: it says so
		}
	}
	t.see(impls.Batch, Yes, "a batch holds all its keys; one that found a key taken left the others free; and two that took the same keys in opposite orders both went on")
}

// diesInBatch kills the process of a client at a step of taking a batch.
func diesInBatch(t *trial, step impls.Step) {
	a, b, c := t.alone(), t.client(0), t.client(1)
	keys := []string{t.key(), t.key(), t.key()}
	taken := t.acquire(b, keys[1])
	there := a.arm(step)
	got := a.begin(doAcquireAll, t.forever(), keys...)
	t.first(settleFor, there, got)
	if !there.ended() {
		return
	}
	t.kill(a)
	died := t.clock.Now()
	t.free(taken)
	var last int64
	for i, key := range keys {
		next := c.begin(doAcquire, t.forever(), key)
		if !t.within(t.long(), next) || !next.granted() {
			t.see(impls.Batch, No, "a client died at the step %q of taking a batch, and key %d of it was not granted to another in the %v after; %s",
				string(step), i+1, since(died, t.clock.Now()), t.boundWords())
			return
		}
		last = next.Reply.Returned
		t.free(next)
	}
	t.see(impls.Batch, Yes, "a client died at the step %q of taking a batch, and all its keys were granted to another within %v; %s", string(step), since(died, last), t.boundWords())
}
