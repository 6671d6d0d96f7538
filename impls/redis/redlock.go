package redis

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
)

// The steps of redis/redlock.
const (
	// stepCount: every server has answered or had its time; what follows is to
	// look at the clock and to count.
	stepCount impls.Step = "count"
	// stepRollback: the attempt has failed; what it left is taken out next.
	stepRollback impls.Step = "rollback"
)

// redlock is redis/redlock: redis/token on several independent masters, held by
// whoever has most of them.
//
//	acquire  SET key token NX PX ttl on all masters at once, each with a tenth
//	         of the TTL to answer; held if a majority took it, and less time has
//	         passed than the TTL without the drift, a hundredth of it and 2 ms;
//	         else the release script on all, and again after a wait
//	extend   the extend script on all; done if a majority did it in that time
//	release  the release script on all
//
// Round trips: 1 to acquire, 1 to release, each to all N masters at once: 2N
// requests, which is what is counted (10 with five). A failed try costs as much.
// Bound: the TTL, by the masters' clocks; the lease that the client may trust is
// the TTL less the drift, from before the first request. Takeover: the TTL, and
// as long as a try under way takes when a master does not answer.
//
// It promises one holder until the TTL is over, though a minority of masters be
// down. What is disputed is what it takes for granted: that no client works on
// after its lease's end, which a pause between the count and the work brings
// about (there is no token to fence with); that no master's clock jumps; and
// that a master that lost its keys stays away for a TTL. Tries that collide may
// all be told busy though nobody gets the lock.
//
// What a call comes to is decided by majorities too. An attempt of which less
// than a majority can be left does not hold the lock and never will, so this is
// definite: busy, failed, lost or cleaned up. What a minority of masters that
// did not answer may still have of it ends with its TTL, and stands in the way
// of others only if more masters fail. If so many did not answer that it might
// hold the lock, that is a doubt.
//
// Source: the algorithm of Redis' author for several masters.
type redlock struct{ plain }

func (redlock) Info() impls.Info {
	return impls.Info{
		ID:         "redis/redlock",
		Backend:    "redis",
		Summary:    "SET NX PX with a random token on five independent masters at once, a majority holds; release by script on all: 2 parallel round trips of 5 requests each",
		Promise:    "one holder until its TTL is over, though a minority of masters be down, while no master's clock jumps and none that lost its keys comes back within a TTL (disputed)",
		Document:   "the algorithm of Redis' author for several independent masters, which an article on the design of locks discusses",
		Bound:      impls.BoundTTL,
		Properties: promised(impls.Available, impls.Extends),
		Steps:      []impls.Step{stepCount, stepRollback},
		Polls:      true,

		Topologies: []string{"quorum"},
		RoundTrips: 10, // requests of the 2 that go out in parallel
		Requests:   []string{"set", "eval", "evalsha"},
		// A try that began before the end may fail for one server's sake: its
		// sets and its rollback, and then the sets of the next.
		Takeover: func(ttl time.Duration) time.Duration { return ttl + 3*each(ttl) },
	}
}

// each is how long one server has to answer: little beside the TTL, since a
// server that is down costs everybody that long.
func each(ttl time.Duration) time.Duration { return ttl / 10 }

// minRedlockTTL leaves each server 10 ms to answer.
const minRedlockTTL = 100 * time.Millisecond

func (redlock) CheckTTL(ttl time.Duration, lim impls.Limits) error {
	if ttl < minRedlockTTL {
		return fmt.Errorf("redis/redlock cannot serve a TTL of %s: a tenth of it is what a server has to answer; choose at least %s", ttl, minRedlockTTL)
	}
	return plain{}.CheckTTL(ttl, lim)
}

// Open needs a majority of the servers.
func (r redlock) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	n := len(cfg.Addresses)
	if n < 3 || n > 64 {
		return nil, fmt.Errorf("open redis/redlock: want the addresses of 3 to 64 independent masters, got %d", n)
	}
	if err := r.CheckTTL(cfg.TTL, impls.Limits{}); err != nil {
		return nil, err
	}
	c := &redlocks{
		cfg:      cfg,
		majority: n/2 + 1,
		validity: cfg.TTL - cfg.TTL/100 - 2*time.Millisecond,
		taken:    map[impls.Attempt]uint64{},
	}
	for _, address := range cfg.Addresses {
		one := cfg
		one.Addresses = []string{address}
		s, err := connect(ctx, one)
		if err != nil {
			_ = c.Close()
			return nil, err
		}
		c.masters = append(c.masters, &tokens{server: s, release: redis.NewScript(releaseScript), extend: redis.NewScript(extendScript)})
	}
	loaded := c.ask(ctx, func(ctx context.Context, m *tokens) error {
		return m.ask(ctx, "load the scripts on", m.cfg.Addresses[0], func(rdb *redis.Client) error {
			return errors.Join(m.release.Load(ctx, rdb).Err(), m.extend.Load(ctx, rdb).Err())
		})
	})
	if loaded.count(done) < c.majority {
		_ = c.Close()
		return nil, fmt.Errorf("open redis/redlock: less than a majority of %d masters answers: %w", n, errors.Join(loaded...))
	}
	return c, nil
}

type redlocks struct {
	cfg      impls.Config
	masters  []*tokens
	majority int
	validity time.Duration // of a lease, from before its requests
	// taken tells, of attempts in doubt, from which masters they have been
	// taken out: a bit each, in their order. Asked again these say that there
	// is nothing.
	taken map[impls.Attempt]uint64
}

func (c *redlocks) Close() error {
	var errs []error
	for _, m := range c.masters {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

func (c *redlocks) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *redlocks) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("acquire %s: %w", key, impls.NotSent(err))
	}
	began := impls.Monotonic(c.cfg.Clock)
	sets := c.all(ctx, func(ctx context.Context, m *tokens) error {
		_, err := m.set(ctx, key, a)
		return err
	})
	c.cfg.Reach(ctx, stepCount)
	if sets.count(done) >= c.majority && c.intime(began) {
		return impls.NewLease(key, a, 0, began, impls.Leaser{
			Clock:  c.cfg.Clock,
			TTL:    c.validity,
			Extend: func(ctx context.Context) error { return c.extend(ctx, key, a) },
			Free:   func(ctx context.Context) error { return c.free(ctx, key, a) },
		}), nil
	}
	c.cfg.Reach(ctx, stepRollback)
	return nil, c.rollBack(ctx, key, a, sets)
}

// rollBack takes a failed attempt out again and names what the try came to.
func (c *redlocks) rollBack(ctx context.Context, key string, a impls.Attempt, sets answers) error {
	// It is owed also where ctx has ended, which may be why the try failed.
	freed := c.takeOut(context.WithoutCancel(ctx), "roll back", key, a)
	left := 0
	for i, err := range sets {
		if (err == nil || unknown(err)) && !impls.Definite(freed[i]) {
			left++
		}
	}
	if left >= c.majority {
		return failed(ctx, "acquire", key, impls.ErrUnknown, append(sets, freed...))
	}
	delete(c.taken, a)
	won := sets.count(done)
	switch {
	case won >= c.majority:
		return tooLate("acquire", key, impls.ErrFailed)
	case won+sets.count(is(impls.ErrBusy)) >= c.majority:
		return impls.ErrBusy
	default:
		return failed(ctx, "acquire", key, impls.ErrFailed, sets)
	}
}

func (c *redlocks) extend(ctx context.Context, key string, a impls.Attempt) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("extend %s: %w", key, impls.NotSent(err))
	}
	began := impls.Monotonic(c.cfg.Clock)
	got := c.all(ctx, func(ctx context.Context, m *tokens) error {
		return m.compare(ctx, "extend", m.extend, []string{key}, a.String(), c.cfg.TTL.Milliseconds())
	})
	switch {
	case got.count(done) >= c.majority && c.intime(began):
		return nil
	case got.count(done) >= c.majority:
		return tooLate("extend", key, impls.ErrUnknown)
	case len(c.masters)-got.count(is(impls.ErrLost)) < c.majority:
		return impls.ErrLost
	default:
		return failed(ctx, "extend", key, got.doubt(), got)
	}
}

// free releases a hold: nil if a majority had it, ErrLost if none can have.
func (c *redlocks) free(ctx context.Context, key string, a impls.Attempt) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("release %s: %w", key, impls.NotSent(err))
	}
	got := c.takeOut(ctx, "release", key, a)
	had := bits.OnesCount64(c.taken[a])
	open := len(got) - got.count(impls.Definite)
	switch {
	case had >= c.majority:
		delete(c.taken, a)
		return nil
	case had+open < c.majority:
		delete(c.taken, a)
		return impls.ErrLost
	default:
		return failed(ctx, "release", key, got.doubt(), got)
	}
}

// Cleanup takes the attempt out of all masters. It had the lock if a majority
// had it: what a minority had, because it collided there or was asked again too
// late, has kept nobody out. It is definite once less than a majority can have
// anything of it: those that do not answer forget it with its TTL. A SET that is
// still on its way on a connection that was given up may be carried out after it;
// what it leaves ends with its TTL too.
func (c *redlocks) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("clean up %s: %w", key, impls.NotSent(err))
	}
	got := c.takeOut(ctx, "clean up", key, a)
	if len(got)-got.count(impls.Definite) >= c.majority {
		return failed(ctx, "clean up", key, got.doubt(), got)
	}
	had := bits.OnesCount64(c.taken[a])
	delete(c.taken, a)
	if had < c.majority {
		return impls.ErrLost
	}
	return nil
}

// takeOut runs the release script on all masters and notes where the attempt
// was.
func (c *redlocks) takeOut(ctx context.Context, doing, key string, a impls.Attempt) answers {
	got := c.all(ctx, func(ctx context.Context, m *tokens) error {
		return m.compare(ctx, doing, m.release, []string{key}, a.String())
	})
	for i, err := range got {
		if err == nil {
			c.taken[a] |= 1 << i
		}
	}
	return got
}

// intime reports whether a lease that was asked for when it began is not over.
func (c *redlocks) intime(began time.Time) bool {
	return impls.Monotonic(c.cfg.Clock).Before(began.Add(c.validity))
}

func tooLate(doing, key string, outcome error) error {
	return fmt.Errorf("%s %s: %w: a majority did it, but by now its lease is over", doing, key, outcome)
}

// all asks all masters side by side, each for as long as one has to answer.
func (c *redlocks) all(ctx context.Context, ask func(context.Context, *tokens) error) answers {
	ctx, cancel := context.WithTimeout(ctx, each(c.cfg.TTL))
	defer cancel()
	return c.ask(ctx, ask)
}

func (c *redlocks) ask(ctx context.Context, ask func(context.Context, *tokens) error) answers {
	got := make(answers, len(c.masters))
	var group sync.WaitGroup
	for i, m := range c.masters {
		group.Go(func() { got[i] = ask(ctx, m) })
	}
	group.Wait()
	return got
}

// failed is the error of a call that came to outcome because of what masters
// answered. Their own outcomes, which differ, are told and not wrapped.
func failed(ctx context.Context, doing, key string, outcome error, got answers) error {
	return ended(ctx, fmt.Errorf("%s %s: %w: too few of the masters answered in time: %v", doing, key, outcome, errors.Join(got...)))
}

// answers are what became of one request at each master, in their order.
type answers []error

func (as answers) count(which func(error) bool) (n int) {
	for _, err := range as {
		if which(err) {
			n++
		}
	}
	return n
}

// doubt is ErrFailed if certainly no request had an effect, else ErrUnknown.
func (as answers) doubt() error {
	if as.count(is(impls.ErrFailed)) == len(as) {
		return impls.ErrFailed
	}
	return impls.ErrUnknown
}

func done(err error) bool    { return err == nil }
func unknown(err error) bool { return errors.Is(err, impls.ErrUnknown) }

// is matches answers that are outcome for certain.
func is(outcome error) func(error) bool {
	return func(err error) bool { return errors.Is(err, outcome) && !unknown(err) }
}
