package conformance

import (
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// recovery is how long clients may take to find the servers that are left, and
// these to agree on a leader.
func (t *trial) recovery() time.Duration { return t.bound() + 3*t.Grace }

// available takes away each server in turn, whichever leads, and sees whether
// clients that were connected before go on to lock.
func available(t *trial) {
	n := len(t.Config.Addresses)
	if n < 2 {
		t.see(impls.Available, No, "one server serves it, and without that no client can lock")
		return
	}
	if t.Servers == nil {
		t.nothing("no server can be taken away: Subject.Servers is nil")
	}
	key := t.key()
	var clients []*remote
	for i := range sharedProcesses {
		clients = append(clients, t.client(i))
	}
	var slowest time.Duration
	for node := range n {
		if err := t.Servers.Kill(t.ctx, node); err != nil {
			t.nothing("take server %d away: %w", node+1, err)
		}
		gone := t.clock.Now()
		for _, c := range clients {
			at, ok := t.locksAgain(c, key)
			if !ok {
				t.see(impls.Available, No, "without server %d of %d a client could not lock in the %v after it was killed", node+1, n, since(gone, t.clock.Now()))
				break
			}
			slowest = max(slowest, since(gone, at))
		}
		if err := t.Servers.Restart(t.ctx, node); err != nil {
			t.nothing("bring server %d back: %w", node+1, err)
		}
		t.whole()
		if len(t.saw) > 0 {
			return
		}
		for _, c := range clients {
			if _, ok := t.locksAgain(c, key); !ok {
				t.nothing("with server %d back again a client could not lock for %v", node+1, t.recovery())
			}
		}
	}
	t.see(impls.Available, Yes, "each of %d servers was killed in turn, and every client locked again, the last one %v after the death", n, slowest)
}

// whole waits until the servers have recovered from what was done to one of
// them: without the next, before that, two would be missing.
func (t *trial) whole() {
	deadline := time.Now().Add(t.recovery())
	for {
		err := t.Servers.Healthy(t.ctx)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.nothing("the servers have not recovered in %v: %w", t.recovery(), err)
		}
		t.pause(20 * time.Millisecond)
	}
}

// locksAgain acquires and releases, again and again until both worked, and
// returns when.
func (t *trial) locksAgain(c *remote, key string) (at int64, ok bool) {
	deadline := time.Now().Add(t.recovery())
	for time.Now().Before(deadline) {
		got := c.begin(doAcquire, t.long(), key)
		if !t.within(t.long()+t.Config.Timeout, got) || got.Err != nil {
			return 0, false
		}
		if got.granted() {
			if t.free(got).Outcome == history.Released {
				return got.Reply.Returned, true
			}
		} else {
			t.clean(got)
		}
		t.pause(20 * time.Millisecond)
	}
	return 0, false
}
