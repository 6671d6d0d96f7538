package redis_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

const (
	getset = "redis/getset"
	// over is when a key is free to be replaced: the TTL, the document's
	// second, and the second that has to pass to be greater.
	over = ttl + 2*time.Second
)

// until is the Unix time that key holds.
func (s served) until(t *testing.T, key string) int64 {
	t.Helper()
	text, err := s.admin.Get(t.Context(), key).Result()
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return seconds
}

// TestGetsetTimes: a lock lasts as long as the document's formula, and not
// a second less or more.
func TestGetsetTimes(t *testing.T) {
	s := serve(t)
	clock := recipetest.NewWall()
	a, b, key := s.open(t, getset, with(clock)), s.open(t, getset, with(clock)), recipetest.NewKey()
	h := recipetest.Try(t, a, key)
	if got, want := s.until(t, key), clock.Now().Add(ttl+time.Second).Unix(); got != want {
		t.Errorf("the key holds %d, want %d", got, want)
	}
	if want := clock.Now().Add(ttl); !h.LeaseEnd().Equal(want) {
		t.Errorf("the lease ends at %v, want %v", h.LeaseEnd(), want)
	}
	clock.Advance(over - time.Second)
	busy(t, b, key)
	// Its own holder counts it as over a second earlier, and leaves it.
	recipetest.WantOutcome(t, "a late release", h.Release(t.Context()), impls.ErrLost)
	s.there(t, 1, key)
	clock.Advance(time.Second)
	release(t, recipetest.Try(t, b, key))
	s.there(t, 0, key)
}

// TestGetsetOneWins: of two that saw that a lock's time is over, one gets it.
// That is the race which memcached's timestamps lose.
func TestGetsetOneWins(t *testing.T) {
	s := serve(t)
	clock, gate := recipetest.NewWall(), recipetest.NewGate()
	a, b, c, key := s.open(t, getset, with(clock), stepping(gate)), s.open(t, getset, with(clock)), s.open(t, getset, with(clock)), recipetest.NewKey()
	recipetest.Try(t, c, key)
	clock.Advance(over)
	open, got := gate.Shut("getset"), recipetest.TryBeside(t, a, key)
	gate.Await(t, "getset", 1)
	h := recipetest.Try(t, b, key)
	open()
	recipetest.WantOutcome(t, "the slower one", <-got, impls.ErrBusy)
	busy(t, c, key)
	release(t, h)
}

// TestGetsetShift: the loser's GETSET puts its own time in place of the
// winner's: nothing if it comes at once, which the document calls negligible,
// and otherwise as much as it was held up. What is longer than the lock itself
// ends the winner's at once.
func TestGetsetShift(t *testing.T) {
	s := serve(t)
	for _, pause := range []time.Duration{0, 300 * time.Millisecond, 10 * time.Second, ttl / 2, over} {
		clock, gate := recipetest.NewWall(), recipetest.NewGate()
		loser, winner, third := s.open(t, getset, with(clock), stepping(gate)), s.open(t, getset, with(clock)), s.open(t, getset, with(clock))
		key := recipetest.NewKey()
		recipetest.Try(t, third, key)
		clock.Advance(over)
		open, got := gate.Shut("getset"), recipetest.TryBeside(t, loser, key)
		gate.Await(t, "getset", 1)
		clock.Advance(pause)
		h := recipetest.Try(t, winner, key)
		before := s.until(t, key)
		open()
		recipetest.WantOutcome(t, "the loser", <-got, impls.ErrBusy)
		shift := time.Duration(before-s.until(t, key)) * time.Second
		t.Logf("held up for %v, the loser moved the winner's end by %v", pause, -shift)
		if shift != pause.Truncate(time.Second) {
			t.Errorf("held up for %v, the loser moved the winner's end by %v", pause, shift)
		}
		if pause < over {
			busy(t, third, key)
			continue
		}
		recipetest.Try(t, third, key)
		recipetest.Within(t, h, clock)
	}
}

func TestGetsetSkew(t *testing.T) {
	s := serve(t)
	recipetest.Skew(t, over, func(clock impls.Clock) impls.Client { return s.open(t, getset, with(clock)) })
	// A slow one leaves a lock that is over for the others from the start.
	clock, slow := recipetest.NewWall(), recipetest.NewWall()
	slow.Advance(-over)
	a, b, key := s.open(t, getset, with(slow)), s.open(t, getset, with(clock)), recipetest.NewKey()
	recipetest.Try(t, a, key)
	recipetest.Try(t, b, key)
}

// TestGetsetLateDelete: a late holder reads its successor's time, takes it for
// its own, and deletes the key. No bad moment is needed for that.
func TestGetsetLateDelete(t *testing.T) {
	s := serve(t)
	clock, gate := recipetest.NewWall(), recipetest.NewGate()
	a, b, c := s.open(t, getset, with(clock), stepping(gate)), s.open(t, getset, with(clock)), s.open(t, getset, with(clock))
	key := recipetest.NewKey()
	h := recipetest.Try(t, a, key)
	clock.Advance(over)
	recipetest.Try(t, b, key)
	release(t, h)
	recipetest.Try(t, c, key)

	// In time when it looked, and late when it deleted.
	key = recipetest.NewKey()
	h = recipetest.Try(t, a, key)
	open, released := gate.Shut("delete"), make(chan error, 1)
	go func() { released <- h.Release(t.Context()) }()
	gate.Await(t, "delete", 2)
	clock.Advance(over)
	successor := recipetest.Try(t, b, key)
	open()
	recipetest.WantOutcome(t, "the late release", <-released, nil)
	recipetest.Try(t, c, key)
	recipetest.Within(t, successor, clock)
}

// TestGetsetDies: a client that dies at any step has a successor.
func TestGetsetDies(t *testing.T) {
	s := serve(t)
	for _, step := range []impls.Step{"get", "getset", "delete"} {
		clock := recipetest.NewWall()
		a, b, key := s.open(t, getset, with(clock), stepping(recipetest.Dies(step))), s.open(t, getset, with(clock)), recipetest.NewKey()
		if step != "delete" {
			recipetest.Try(t, b, key)
			clock.Advance(over)
		}
		recipetest.RunUntilDeath(func() { _ = recipetest.Try(t, a, key).Release(t.Context()) })
		clock.Advance(over)
		release(t, recipetest.Try(t, b, key))
	}
}

// TestGetsetGone: a key that is gone when it is read counts as over.
func TestGetsetGone(t *testing.T) {
	s := serve(t)
	clock := recipetest.NewWall()
	key := recipetest.NewKey()
	gone := func() { s.remove(t, key) }
	a, b := s.open(t, getset, with(clock), stepping(at{"get", gone})), s.open(t, getset, with(clock))
	recipetest.Try(t, b, key)
	release(t, recipetest.Try(t, a, key))
}

// TestGetsetForeignValue: a key of another program is left alone.
func TestGetsetForeignValue(t *testing.T) {
	s := serve(t)
	a, key := s.open(t, getset), recipetest.NewKey()
	if err := s.admin.Set(t.Context(), key, "hello", 0).Err(); err != nil {
		t.Fatal(err)
	}
	_, err := a.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try", err, impls.ErrFailed)
	if value := s.admin.Get(t.Context(), key).Val(); value != "hello" {
		t.Errorf("it is %q now", value)
	}
}
