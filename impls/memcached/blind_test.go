package memcached_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

const (
	addDelete = "memcached/add-delete"
	timestamp = "memcached/timestamp"
	// over is when a time in a value is over for others: the TTL, the
	// document's second, and the second that has to pass to be greater.
	over = ttl + 2*time.Second
)

// TestBlind: what the locks that store no owner can and cannot do.
func TestBlind(t *testing.T) {
	s := serve(t)
	for _, id := range []string{addDelete, timestamp} {
		blind := recipetest.Blind{Lapse: s.lapse, Open: func(t *testing.T, dial impls.DialFunc) impls.Client {
			return s.open(t, id, dialing(dial))
		}}
		t.Run(id+"/record", blind.Record)
		t.Run(id+"/doubt", blind.Doubt)
	}
}

// TestLateDelete: a holder that is late to release deletes its successor's
// item, and a third takes it. A look at the time before the delete narrows that
// to those who are held up between the two.
func TestLateDelete(t *testing.T) {
	s := serve(t)
	for _, tt := range []struct {
		id     string
		within bool // its release when it is held up, instead of before
		want   error
	}{
		{addDelete, false, nil},
		{addDelete, true, nil},
		{timestamp, false, impls.ErrLost},
		{timestamp, true, nil},
		{"memcached/cas", false, impls.ErrLost},
		{"memcached/cas", true, impls.ErrLost},
	} {
		clock, gate := recipetest.NewWall(), recipetest.NewGate()
		a, b, c := s.open(t, tt.id, with(clock), stepping(gate)), s.open(t, tt.id, with(clock)), s.open(t, tt.id, with(clock))
		key := recipetest.NewKey()
		h := recipetest.Try(t, a, key)
		step := recipe(t, tt.id).Info().Steps[len(recipe(t, tt.id).Info().Steps)-1]
		open, released := gate.Shut(step), make(chan error, 1)
		if tt.within {
			go func() { released <- h.Release(t.Context()) }()
			gate.Await(t, step, 1)
		}
		clock.Advance(over)
		if tt.id != timestamp {
			s.lapse(t, key)
		}
		successor := recipetest.Try(t, b, key)
		open()
		if !tt.within {
			released <- h.Release(t.Context())
		}
		recipetest.WantOutcome(t, tt.id+": the late release", <-released, tt.want)
		_, err := c.TryAcquire(t.Context(), key, recipetest.NewAttempt())
		if freed := tt.want == nil; freed != (err == nil) {
			t.Errorf("%s: late, within the release %t: a third's try: %v", tt.id, tt.within, err)
		}
		recipetest.Within(t, successor, clock)
	}
}

// TestEvicted: an item that the server forgot makes a second holder, whatever
// the recipe.
func TestEvicted(t *testing.T) {
	s := serve(t)
	for _, r := range all() {
		a, b, key := s.open(t, r), s.open(t, r), recipetest.NewKey()
		h := recipetest.Try(t, a, key)
		s.lapse(t, key)
		recipetest.Try(t, b, key)
		recipetest.Within(t, h, impls.SystemClock())
	}
}

func all() []string { return []string{"memcached/cas", addDelete, timestamp} }

// TestTimestampTimes: a lock lasts as long as the document's formula says, and
// not a second less or more; the item itself does not expire.
func TestTimestampTimes(t *testing.T) {
	s := serve(t)
	clock := recipetest.NewWall()
	a, b, key := s.open(t, timestamp, with(clock)), s.open(t, timestamp, with(clock)), recipetest.NewKey()
	h := recipetest.Try(t, a, key)
	if got, want := s.value(t, key), strconv.FormatInt(clock.Now().Add(ttl+time.Second).Unix(), 10); got != want {
		t.Errorf("the item holds %s, want %s", got, want)
	}
	clock.Advance(over - time.Second)
	recipetest.Busy(t, b, key)
	recipetest.WantOutcome(t, "a late release", h.Release(t.Context()), impls.ErrLost)
	recipetest.Busy(t, b, key)
	clock.Advance(time.Second)
	h = recipetest.Try(t, b, key)
	if want := clock.Now().Add(ttl); !h.LeaseEnd().Equal(want) {
		t.Errorf("the lease ends at %v, want %v", h.LeaseEnd(), want)
	}
	release(t, h)
	if got := s.value(t, key); got != "" {
		t.Errorf("the item holds %q after the release", got)
	}
}

// TestTimestampTwoTakers: two that both saw that a lock's time is over both
// take it, wherever the slower one is held up.
func TestTimestampTwoTakers(t *testing.T) {
	s := serve(t)
	for _, step := range []impls.Step{"get", "delete", "set"} {
		clock, gate := recipetest.NewWall(), recipetest.NewGate()
		a, b, dead := s.open(t, timestamp, with(clock), stepping(gate)), s.open(t, timestamp, with(clock)), s.open(t, timestamp, with(clock))
		key := recipetest.NewKey()
		recipetest.Try(t, dead, key)
		clock.Advance(over)
		open, got := gate.Shut(step), recipetest.TryBeside(t, a, key)
		gate.Await(t, step, 1)
		h := recipetest.Try(t, b, key)
		open()
		err := <-got
		if step == "get" {
			recipetest.WantOutcome(t, "one that looked after the other had taken it", err, impls.ErrBusy)
			continue
		}
		recipetest.WantOutcome(t, "the slower one", err, nil)
		recipetest.Within(t, h, clock)
	}
}

func TestTimestampSkew(t *testing.T) {
	s := serve(t)
	recipetest.Skew(t, over, func(clock impls.Clock) impls.Client { return s.open(t, timestamp, with(clock)) })
}

// TestDies: a client that dies at any step has a successor.
func TestDies(t *testing.T) {
	s := serve(t)
	for _, id := range all() {
		for _, step := range recipe(t, id).Info().Steps {
			clock := recipetest.NewWall()
			a, b, key := s.open(t, id, with(clock), stepping(recipetest.Dies(step))), s.open(t, id, with(clock)), recipetest.NewKey()
			if id == timestamp && step != "free" {
				recipetest.Try(t, b, key)
				clock.Advance(over)
			}
			recipetest.RunUntilDeath(func() { _ = recipetest.Try(t, a, key).Release(t.Context()) })
			clock.Advance(over)
			if id != timestamp {
				s.lapse(t, key)
			}
			release(t, recipetest.Try(t, b, key))
		}
	}
}

// TestTimestampForeignValue: an item of another program is left alone, and
// one that is gone when it is read is not taken for one whose time is over.
func TestTimestampForeignValue(t *testing.T) {
	s := serve(t)
	key := recipetest.NewKey()
	if err := s.admin.Set(&memcache.Item{Key: key, Value: []byte("hello")}); err != nil {
		t.Fatal(err)
	}
	gate := recipetest.NewGate()
	a := s.open(t, timestamp, stepping(gate))
	_, err := a.TryAcquire(t.Context(), key, recipetest.NewAttempt())
	recipetest.WantOutcome(t, "try", err, impls.ErrFailed)
	if got := s.value(t, key); got != "hello" {
		t.Errorf("it is %q now", got)
	}

	open, got := gate.Shut("get"), recipetest.TryBeside(t, a, key)
	gate.Await(t, "get", 2)
	s.lapse(t, key)
	open()
	recipetest.WantOutcome(t, "try of what is gone", <-got, impls.ErrBusy)
	release(t, recipetest.Try(t, a, key))
}
