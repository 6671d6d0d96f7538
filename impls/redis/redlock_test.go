package redis_test

import (
	"errors"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

const redlock = "redis/redlock"

// masters are five servers, and an operator's way to each.
type masters struct {
	*cluster.Cluster
	cfg   impls.Config
	admin []*goredis.Client
}

func serveMasters(t *testing.T) masters {
	t.Helper()
	t.Parallel()
	c := clustertest.Start(t, "redis", "quorum")
	m := masters{Cluster: c, cfg: recipetest.Config(c.Addresses(), c.Account(), ttl)}
	for _, a := range c.Addresses() {
		admin := goredis.NewClient(&goredis.Options{Addr: a})
		t.Cleanup(func() { _ = admin.Close() })
		m.admin = append(m.admin, admin)
	}
	return m
}

func (m masters) open(t *testing.T, change ...func(*impls.Config)) impls.Client {
	t.Helper()
	cfg := m.cfg
	for _, f := range change {
		f(&cfg)
	}
	return recipetest.Open(t, recipe(t, redlock), cfg)
}

// occupy stores another token on some masters.
func (m masters) occupy(t *testing.T, key, token string, which ...int) {
	t.Helper()
	for _, i := range which {
		if err := m.admin[i].Set(t.Context(), key, token, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
}

// on lists the masters on which key is.
func (m masters) on(t *testing.T, key string) (list []int) {
	t.Helper()
	for i, admin := range m.admin {
		if n, err := admin.Exists(t.Context(), key).Result(); err != nil {
			t.Fatal(err)
		} else if n == 1 {
			list = append(list, i)
		}
	}
	return list
}

func (m masters) wantOn(t *testing.T, key string, want int) {
	t.Helper()
	if list := m.on(t, key); len(list) != want {
		t.Fatalf("%s is on the masters %v, want it on %d of them", key, list, want)
	}
}

// TestRedlockMajority: three of five hold, two do not, and what failed leaves
// nothing on the others.
func TestRedlockMajority(t *testing.T) {
	m := serveMasters(t)
	a := m.open(t)
	for taken := range 6 {
		key := recipetest.NewKey()
		for i := range taken {
			m.occupy(t, key, "another's", i)
		}
		h, err := a.TryAcquire(t.Context(), key, recipetest.NewAttempt())
		if taken > 2 {
			recipetest.WantOutcome(t, "try", err, impls.ErrBusy)
			m.wantOn(t, key, taken)
			continue
		}
		recipetest.WantOutcome(t, "try", err, nil)
		m.wantOn(t, key, 5)
		recipetest.WantOutcome(t, "extend", h.Extend(t.Context()), nil)
		release(t, h)
		m.wantOn(t, key, taken)
		recipetest.WantOutcome(t, "release again", h.Release(t.Context()), impls.ErrLost)
	}
}

// TestRedlockThree: two of three hold, and one may be dead.
func TestRedlockThree(t *testing.T) {
	t.Parallel()
	c := clustertest.StartSpec(t, cluster.Spec{Backend: "redis", Topology: "quorum", Nodes: 3})
	m := masters{Cluster: c, cfg: recipetest.Config(c.Addresses(), c.Account(), ttl)}
	if err := c.Kill(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	a, b, key := m.open(t), m.open(t), recipetest.NewKey()
	h := recipetest.Try(t, a, key)
	busy(t, b, key)
	release(t, h)
	release(t, recipetest.Try(t, b, key))
}

// TestRedlockOptions: what it cannot work with is said when it is opened, or
// before.
func TestRedlockOptions(t *testing.T) {
	r := recipe(t, redlock)
	for _, n := range []int{0, 1, 2, 65} {
		cfg := recipetest.Config(make([]string, n), impls.Account{}, ttl)
		if _, err := r.Open(t.Context(), cfg); err == nil {
			t.Errorf("opened with %d addresses", n)
		}
	}
	for ttl, ok := range map[time.Duration]bool{
		0: false, 99 * time.Millisecond: false, 100 * time.Millisecond: true, time.Second + time.Microsecond: false, time.Hour: true,
	} {
		if err := r.CheckTTL(ttl, impls.DefaultLimits()); (err == nil) != ok {
			t.Errorf("CheckTTL(%s) = %v", ttl, err)
		}
	}
}

// TestRedlockSplit: tries that collide may all be busy, though no client holds
// the lock.
func TestRedlockSplit(t *testing.T) {
	m := serveMasters(t)
	a, key := m.open(t), recipetest.NewKey()
	m.occupy(t, key, "one", 0, 1)
	m.occupy(t, key, "two", 2)
	_, err := a.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try", err, impls.ErrBusy)
	for _, admin := range m.admin[:3] {
		if err := admin.Del(t.Context(), key).Err(); err != nil {
			t.Fatal(err)
		}
	}
	release(t, recipetest.Try(t, a, key))
}

// TestRedlockLosesMajority: a hold lives as long as a majority has it, and says
// so.
func TestRedlockLosesMajority(t *testing.T) {
	m := serveMasters(t)
	a, b := m.open(t), m.open(t)
	for lost := range 6 {
		key := recipetest.NewKey()
		h := recipetest.Try(t, a, key)
		for i := range lost {
			if err := m.admin[i].Del(t.Context(), key).Err(); err != nil {
				t.Fatal(err)
			}
		}
		if lost <= 2 {
			busy(t, b, key)
			recipetest.WantOutcome(t, "extend", h.Extend(t.Context()), nil)
			m.wantOn(t, key, 5-lost) // it takes nothing back
			release(t, h)
		} else if lost == 3 {
			recipetest.WantOutcome(t, "extend", h.Extend(t.Context()), impls.ErrLost)
			recipetest.WantOutcome(t, "release", h.Release(t.Context()), impls.ErrLost)
		} else {
			recipetest.WantOutcome(t, "release", h.Release(t.Context()), impls.ErrLost)
			m.wantOn(t, key, 0)
			recipetest.WantOutcome(t, "clean-up", a.Cleanup(t.Context(), key, h.Attempt()), impls.ErrLost)
		}
	}
}

// TestRedlockMinorityDown: with two of five dead, a client that was there
// before, and one that was not, lock all the same; with three dead none does,
// and it is said that nothing came of it.
func TestRedlockMinorityDown(t *testing.T) {
	m := serveMasters(t)
	a, key := m.open(t), recipetest.NewKey()
	h := acquire(t, a, key)
	for _, i := range []int{1, 4} {
		if err := m.Kill(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	recipetest.WantOutcome(t, "extend", h.Extend(t.Context()), nil)
	release(t, h)
	b := m.open(t)
	for _, pair := range [][2]impls.Client{{a, b}, {b, a}} {
		h := acquire(t, pair[0], key)
		busy(t, pair[1], key)
		release(t, h)
	}

	h = acquire(t, a, key)
	if err := m.Kill(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	// The two that answer may be a minority of a majority that has it.
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), impls.ErrUnknown)
	mine := recipetest.NewAttempt()
	_, err := a.TryAcquire(t.Context(), key, mine)
	if !errors.Is(err, impls.ErrUnknown) && !errors.Is(err, impls.ErrFailed) {
		t.Fatalf("try without a majority: %v", err)
	}
	_, err = a.TryAcquire(t.Context(), key, mine)
	recipetest.WantOutcome(t, "try once the connections are known to be broken", err, impls.ErrFailed)
	if _, err := recipe(t, redlock).Open(t.Context(), m.cfg); err == nil {
		t.Error("opened without a majority")
	}

	for _, i := range []int{0, 1, 4} {
		if err := m.Restart(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	// It was taken out of two; a third that says that it has nothing settles it.
	recipetest.WantOutcome(t, "release", h.Release(t.Context()), impls.ErrLost)
	release(t, acquire(t, b, key))
}

// TestRedlockForgets: masters that come back within the TTL without their keys
// give the lock to a second holder. This is how it fails.
func TestRedlockForgets(t *testing.T) {
	m := serveMasters(t)
	a, b, key := m.open(t), m.open(t), recipetest.NewKey()
	h := acquire(t, a, key)
	for i := range 3 {
		if err := m.Kill(t.Context(), i); err != nil {
			t.Fatal(err)
		}
		if err := m.Restart(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	acquireAnew(t, b, key)
	recipetest.Within(t, h, impls.SystemClock())
}

// acquireAnew acquires by a client whose connections may be broken.
func acquireAnew(t *testing.T, c impls.Client, key string) {
	t.Helper()
	for {
		a := recipetest.NewAttempt()
		_, err := c.Acquire(t.Context(), key, a)
		if err == nil {
			return
		}
		_ = recipetest.CleanUp(t, c, key, a)
	}
}

// TestRedlockElapsed: a client that is held up after the masters answered looks
// at its clock again before it believes that it holds the lock, and takes out
// what it left.
func TestRedlockElapsed(t *testing.T) {
	m := serveMasters(t)
	validity := ttl - ttl/100 - 2*time.Millisecond
	for _, pause := range []time.Duration{0, validity - 1, validity, 2 * ttl} {
		clock, key := recipetest.NewWall(), recipetest.NewKey()
		began := clock.Now()
		a := m.open(t, with(clock), stepping(at{"count", func() { clock.Advance(pause) }}))
		h, err := a.TryAcquire(t.Context(), key, recipetest.NewAttempt())
		if pause >= validity {
			recipetest.WantOutcome(t, "a late try", err, impls.ErrFailed)
			m.wantOn(t, key, 0)
			continue
		}
		recipetest.WantOutcome(t, "try", err, nil)
		if !h.LeaseEnd().Equal(began.Add(validity)) {
			t.Errorf("the lease ends %v after it began, want %v", h.LeaseEnd().Sub(began), validity)
		}
		release(t, h)
	}
}

// TestRedlockDies: what a client leaves that dies in the middle ends with its
// TTL, everywhere.
func TestRedlockDies(t *testing.T) {
	m := serveMasters(t)
	for _, step := range []impls.Step{"count", "rollback"} {
		key := recipetest.NewKey()
		a, b := m.open(t, stepping(recipetest.Dies(step))), m.open(t)
		if step == "rollback" {
			m.occupy(t, key, "another's", 0, 1, 2)
		}
		recipetest.RunUntilDeath(func() { _, _ = a.TryAcquire(t.Context(), key, recipetest.NewAttempt()) })
		busy(t, b, key)
		m.wantOn(t, key, 5)
		for i, admin := range m.admin {
			if step == "rollback" && i < 3 {
				continue
			}
			if left, err := admin.PTTL(t.Context(), key).Result(); err != nil || left <= 0 || left > ttl {
				t.Errorf("master %d keeps it for %v (%v)", i, left, err)
			}
		}
	}
}
