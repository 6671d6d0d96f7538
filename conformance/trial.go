package conformance

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// trial is one thing that is done to a lock. Its methods end it by the
// goroutine's end when something was not to be had; then nothing is known.
type trial struct {
	*harness
	ctx     context.Context
	saw     []seen
	why     error // it came to nothing
	own     []*process
	clients []*remote
	stops   []func()
}

// try makes a trial, more than once if it comes to nothing, and returns what
// it saw; the error says why it came to nothing.
func (h *harness) try(ctx context.Context, f func(*trial)) ([]seen, error) {
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-h.slots }()
	var t *trial
	for range tries {
		trying, cancel := context.WithTimeout(ctx, h.forever())
		t = &trial{harness: h, ctx: trying}
		done := make(chan struct{})
		go func() {
			defer close(done)
			defer t.end()
			f(t)
		}()
		<-done
		cancel()
		if t.why == nil || ctx.Err() != nil {
			break
		}
	}
	return t.saw, t.why
}

// end closes the trial's clients, so that what hangs on their connections is
// freed, and ends its processes.
func (t *trial) end() {
	for _, stop := range t.stops {
		stop()
	}
	var group sync.WaitGroup
	for _, c := range t.clients {
		group.Go(func() {
			c.goOn()
			c.order(order{Do: doCancel})
			select {
			case <-c.begin(doClose, time.Second).Done:
			case <-time.After(time.Second):
			}
		})
	}
	group.Wait()
	for _, p := range t.own {
		_ = p.Kill()
	}
}

// nothing ends a trial that came to nothing.
func (t *trial) nothing(format string, args ...any) {
	t.why = fmt.Errorf(format, args...)
	runtime.Goexit()
}

// see notes what speaks for or against a property.
func (t *trial) see(p impls.Property, a Answer, format string, args ...any) {
	t.saw = append(t.saw, seen{p, a, fmt.Sprintf(format, args...)})
}

// key prepares a new key.
func (t *trial) key() string {
	key := newKey()
	if err := impls.PreparePatiently(t.ctx, t.Recipe, t.config(), []string{key}); err != nil {
		t.nothing("prepare a key: %w", err)
	}
	return key
}

// process starts a process of the trial's own.
func (t *trial) process() *process {
	p, err := t.start(t.ctx)
	if err != nil {
		t.nothing("%w", err)
	}
	t.own = append(t.own, p)
	return p
}

// client opens a client in one of the shared processes.
func (t *trial) client(i int) *remote { return t.clientOf(i, false) }

// proxied is client with a network that can be changed.
func (t *trial) proxied(i int) *remote { return t.clientOf(i, true) }

func (t *trial) clientOf(i int, proxied bool) *remote {
	p, err := t.shared(t.ctx, i%sharedProcesses)
	if err != nil {
		t.nothing("%w", err)
	}
	c := t.open(p, proxied)
	t.clients = append(t.clients, c)
	return c
}

// alone opens a client in a process of its own.
func (t *trial) alone() *remote { return t.open(t.process(), false) }

func (t *trial) open(p *process, proxied bool) *remote {
	c := &remote{p, attempt().String()}
	t.must("open a client", c.order(order{Do: doOpen, Limit: t.Patience, Proxied: proxied}))
	return c
}

// kill ends a client's process.
func (t *trial) kill(c *remote) {
	if err := c.Kill(); err != nil {
		t.nothing("kill a client: %w", err)
	}
}

// freeze stops a client's process, and resume lets it go on.
func (t *trial) freeze(c *remote) {
	if err := c.Freeze(t.ctx); err != nil {
		t.nothing("stop a client: %w", err)
	}
}

func (t *trial) resume(c *remote) {
	if err := c.Resume(); err != nil {
		t.nothing("let a client go on: %w", err)
	}
}

// within waits for calls, and reports whether all were answered in time.
func (t *trial) within(limit time.Duration, calls ...*call) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for _, c := range calls {
		select {
		case <-c.Done:
		case <-timer.C:
			return false
		case <-t.ctx.Done():
			t.nothing("%w", t.ctx.Err())
		}
	}
	return true
}

// first waits until one of the calls was answered.
func (t *trial) first(limit time.Duration, a, b *call) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-a.Done:
	case <-b.Done:
	case <-timer.C:
	case <-t.ctx.Done():
		t.nothing("%w", t.ctx.Err())
	}
}

// must waits for a call that has to work.
func (t *trial) must(doing string, c *call) answer {
	a := t.answered(doing, c)
	if !a.ok() {
		t.nothing("%s: %s", doing, a.Error)
	}
	return a
}

// answered waits for an answer, whatever it is.
func (t *trial) answered(doing string, c *call) answer {
	switch {
	case !t.within(t.long()+t.Config.Timeout, c):
		t.nothing("%s: no answer within %v", doing, t.long()+t.Config.Timeout)
	case c.Err != nil:
		t.nothing("%s: %w", doing, c.Err)
	}
	return c.Reply
}

// acquire acquires a key, which has to work.
func (t *trial) acquire(c *remote, keys ...string) *call {
	got := c.begin(doAcquire, t.long(), keys...)
	t.must("acquire", got)
	return got
}

// free releases what a call was granted.
func (t *trial) free(c *call) answer {
	return t.answered("release", c.hold(doRelease, t.long()))
}

// freeInTime releases what a call was granted before its lease is over: a later
// release says nothing of the lock, and may do harm that is no fault of what is
// measured.
func (t *trial) freeInTime(c *call) answer {
	ans := t.free(c)
	if c.Reply.LeaseEnd != 0 && t.info.Bound == impls.BoundTTL && max(c.Reply.LeaseEnd, ans.LeaseEnd) <= ans.Returned {
		t.nothing("the lease of %v was over before it could be released", t.Config.TTL)
	}
	return ans
}

// look returns the state of a hold.
func (t *trial) look(c *call) answer { return t.must("look at a hold", c.hold(doLook, 0)) }

// cleanUp has a client clean up after an attempt once.
func (t *trial) cleanUp(c *remote, a impls.Attempt, keys ...string) answer {
	do := doCleanup
	if len(keys) > 1 {
		do = doCleanupAll
	}
	return t.answered("clean up", c.order(order{Do: do, Keys: keys, Attempt: a, Limit: t.Config.Timeout}))
}

// clean repeats the clean-up that a call owes, if it does, until its answer is
// definite, and returns that; ok is false if it never is.
func (t *trial) clean(c *call) (a answer, ok bool) {
	if c.Reply.Outcome != history.Unknown {
		return answer{Outcome: history.Lost}, true
	}
	deadline := time.Now().Add(t.long())
	for {
		a := t.cleanUp(c.client, c.order.Attempt, c.order.Keys...)
		if a.Outcome == history.Released || a.Outcome == history.Lost {
			return a, true
		}
		if time.Now().After(deadline) {
			return a, false
		}
		t.pause(5 * time.Millisecond)
	}
}

// keep renews a hold while it is to be held, where it can be extended at all,
// so that what takes time can be seen within a short lease. It stops with the
// trial, or by the function that it returns.
func (t *trial) keep(c *call) (stop func()) {
	ctx, cancel := context.WithCancel(t.ctx)
	t.stops = append(t.stops, cancel)
	go func() {
		for t.Config.Clock.Sleep(ctx, t.Config.TTL/4) == nil {
			ext := c.hold(doExtend, t.Config.Timeout)
			select {
			case <-ext.Done:
			case <-ctx.Done():
			}
			if ext.ended() && !ext.Reply.ok() {
				return
			}
		}
	}()
	return cancel
}

// pause waits.
func (t *trial) pause(d time.Duration) {
	if t.Config.Clock.Sleep(t.ctx, d) != nil {
		t.nothing("%w", t.ctx.Err())
	}
}

// until waits for the moment of a stamp.
func (t *trial) until(stamp int64) { t.pause(time.Duration(stamp - t.clock.Now())) }

// waits is how often a client has begun to wait.
func (t *trial) waits(c *remote) int {
	return t.must("count steps", c.order(order{Do: doSteps})).Steps[impls.StepWaiting]
}

// settle returns when the call was answered, or its client waits, as far as
// can be seen: it has come to StepWaiting more often than before.
func (t *trial) settle(c *call, before int) {
	waiting := c.client.order(order{Do: doReach, Step: impls.StepWaiting, Count: before + 1})
	t.first(settleFor, c, waiting)
	if waiting.ended() {
		t.first(settleGrace, c, c)
	}
}

// queue begins an acquire and lets it settle.
func (t *trial) queue(c *remote, keys ...string) *call {
	before := t.waits(c)
	got := c.begin(doAcquire, t.forever(), keys...)
	t.settle(got, before)
	return got
}

// probe asks whether a key is free, by a try, or by a short wait where the
// recipe cannot try. What it is granted it releases again.
func (t *trial) probe(c *remote, key string) *call {
	for deadline := time.Now().Add(t.long()); ; {
		got := c.begin(doTry, t.Config.Timeout, key)
		ans := t.answered("try", got)
		// A request that timed out says nothing about the key.
		definite := ans.Outcome != history.Failed && ans.Outcome != history.Unknown
		if ans.Unsupported {
			got = c.begin(doAcquire, settleFor, key)
			ans = t.answered("acquire", got)
			// One that gave up before it waited was not refused.
			definite = got.granted() || slices.Contains(ans.Passed, impls.StepWaiting)
		}
		if got.granted() {
			t.free(got)
		} else if _, ok := t.clean(got); !ok {
			t.nothing("the clean-up of a try has no definite answer")
		}
		if definite {
			return got
		}
		if time.Now().After(deadline) {
			t.nothing("no definite answer about the key within %v: %s", t.long(), ans.Error)
		}
		t.pause(5 * time.Millisecond)
	}
}

// inLease reports whether a hold, looked at now, was one at a stamp no later.
func inLease(h answer, stamp int64) bool {
	return (h.LeaseEnd == 0 || h.LeaseEnd > stamp) && (h.Lost == 0 || h.Lost > stamp)
}

// guarded probes the key while it is to be held, and reports whether it was
// refused. If the holder's lease was over by then, the machine was too slow
// and the trial comes to nothing.
func (t *trial) guarded(c *remote, key string, holder *call) bool {
	got := t.probe(c, key)
	if !got.granted() {
		return true
	}
	if !inLease(t.look(holder), got.Reply.Returned) {
		t.nothing("the lease of %v was over before it could be probed", t.Config.TTL)
	}
	return false
}
