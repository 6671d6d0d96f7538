package redis

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
)

// The steps of redis/redlock.
const (
	// stepCount: every master has answered or timed out; the client reads the clock
	// and counts next.
	stepCount impls.Step = "count"
	// stepRollback: the attempt has failed, and its keys are removed next.
	stepRollback impls.Step = "rollback"
)

// redlock is redis/redlock: redis/token on several independent masters; the client
// that has a majority of them is the holder.
//
// Document: the algorithm of Redis' author for several masters.
//
//	acquire  SET key token NX PX ttl on all masters in parallel, each with a tenth
//	         of the TTL to answer; held if a majority set it in less than the TTL
//	         minus the drift (a hundredth of the TTL and 2 ms); otherwise the
//	         release script on all, and again after a wait
//	extend   the extend script on all; extended if a majority did it in that time
//	release  the release script on all
//
// Round trips: 1 to acquire, 1 to release, each to all N masters in parallel: 2N
// requests, which is what is counted (10 with five). A failed try costs as much.
// Bound: the TTL, by the masters' clocks; the client's lease is the TTL less the
// drift, from before the first request. Takeover: the TTL, plus the duration of a
// try under way while a master does not answer.
// Guarantee (disputed): one holder until the end of the TTL, also while a minority
// of masters is down.
// Failure: a client that continues after its lease, for example because of a pause
// between counting and working (there is no fencing token); a master whose clock
// jumps; a master that lost its keys and returns within a TTL. Tries that collide
// may all be busy although no client gets the lock.
//
// Majorities decide outcomes too. An attempt that can be left on less than a
// majority does not hold the lock and never will, so its outcome is definite: busy,
// failed, lost or cleaned up. What unanswered masters may keep of it ends with its
// TTL, and blocks other clients only if more masters fail. If the unanswered
// masters could make a majority, the outcome is unknown.
type redlock struct{ plain }

func (redlock) Info() impls.Info {
	return impls.Info{
		ID:         "redis/redlock",
		Backend:    "redis",
		Summary:    "SET NX PX with a random token on five independent masters at once, a majority holds; release by script on all: 2 parallel round trips of 5 requests each",
		Promise:    "one holder until its TTL is over, also while a minority of masters is down, while no master's clock jumps and no master that lost its keys returns within a TTL (disputed)",
		Document:   "the algorithm of Redis' author for several independent masters, which an article on the design of locks discusses",
		Bound:      impls.BoundTTL,
		Properties: promised(impls.Available, impls.Extends),
		Steps:      []impls.Step{stepCount, stepRollback},
		Polls:      true,

		Topologies: []string{"quorum"},
		RoundTrips: 10, // requests of the 2 parallel round trips
		Requests:   []string{"set", "eval", "evalsha"},
		// A try that began before the end may fail because of one master: its sets,
		// its rollback, and then the sets of the next try.
		Takeover:    func(ttl time.Duration) time.Duration { return ttl + 3*each(ttl) },
		AnswerLimit: each,
	}
}

// each is how long one master has to answer: short, since a master that is down
// delays every call by that time.
func each(ttl time.Duration) time.Duration { return ttl / 10 }

// minRedlockTTL leaves each server 10 ms to answer.
const minRedlockTTL = 100 * time.Millisecond

func (redlock) CheckTTL(ttl time.Duration, lim impls.Limits) error {
	if ttl < minRedlockTTL {
		return fmt.Errorf("redis/redlock cannot serve a TTL of %s: each server has a tenth of it to answer; choose at least %s", ttl, minRedlockTTL)
	}
	return plain{}.CheckTTL(ttl, lim)
}

// Open needs a majority of the masters.
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
	// taken records, for attempts of unknown outcome, which masters have removed
	// them, as a bit set: a second release there would return "not found".
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

// rollBack removes a failed attempt and returns the try's outcome.
func (c *redlocks) rollBack(ctx context.Context, key string, a impls.Attempt, sets answers) error {
	// Also after the end of ctx, which may be why the try failed.
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

// free releases a hold: nil if a majority had it, ErrLost if no majority can have.
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

// Cleanup removes the attempt from all masters. The attempt had the lock if a
// majority had it; an attempt on a minority, after a collision or a late request,
// excluded no client. The outcome is definite once less than a majority can have
// the attempt: on masters that do not answer it ends with its TTL. A SET still
// under way on an abandoned connection may be executed later; its key ends with
// its TTL too.
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

// Left lists the attempts on each master, also on a minority.
func (c *redlocks) Left(ctx context.Context, key string) ([]impls.Entry, error) {
	var list []impls.Entry
	var errs []error
	for _, m := range c.masters {
		left, err := m.Left(ctx, key)
		list, errs = append(list, left...), append(errs, err)
	}
	return list, errors.Join(errs...)
}

// takeOut runs the release script on all masters and records which had the
// attempt.
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

// intime reports whether a lease requested at began still runs.
func (c *redlocks) intime(began time.Time) bool {
	return impls.Monotonic(c.cfg.Clock).Before(began.Add(c.validity))
}

func tooLate(doing, key string, outcome error) error {
	return fmt.Errorf("%s %s: %w: a majority did it, but its lease has ended", doing, key, outcome)
}

// all asks all masters in parallel, each within its time to answer.
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

// failed is the error of a call whose outcome was decided by the masters' answers.
// It quotes their own outcomes, which differ, and wraps no more than a timeout.
func failed(ctx context.Context, doing, key string, outcome error, got answers) error {
	err := fmt.Errorf("%s %s: %w: too few of the masters answered in time: %v", doing, key, outcome, errors.Join(got...))
	if got.count(impls.TimedOut) > 0 {
		err = fmt.Errorf("%w (%w)", err, os.ErrDeadlineExceeded)
	}
	return ended(ctx, err)
}

// answers are the results of one request at each master, in their order.
type answers []error

func (as answers) count(which func(error) bool) (n int) {
	for _, err := range as {
		if which(err) {
			n++
		}
	}
	return n
}

// doubt is ErrFailed if certainly no request had an effect, otherwise ErrUnknown.
func (as answers) doubt() error {
	if as.count(is(impls.ErrFailed)) == len(as) {
		return impls.ErrFailed
	}
	return impls.ErrUnknown
}

func done(err error) bool    { return err == nil }
func unknown(err error) bool { return errors.Is(err, impls.ErrUnknown) }

// is matches answers whose outcome is certain.
func is(outcome error) func(error) bool {
	return func(err error) bool { return errors.Is(err, outcome) && !unknown(err) }
}
