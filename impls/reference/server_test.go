package reference

import (
	"bytes"
	"crypto/rand"
	"errors"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

func serve(t *testing.T, seed uint64) (*Server, impls.Config) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	s, err := NewServer(path, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var d net.Dialer
	return s, impls.Config{Addresses: []string{path}, Dial: d.DialContext, Clock: impls.SystemClock(),
		Wait: impls.NewUniform(0, 0, 1), TTL: time.Minute, Timeout: 10 * time.Second}
}

func newAttempt() (a impls.Attempt) {
	_, _ = rand.Read(a[:])
	return a
}

// hammer lets clients acquire and release one key and counts the grants that
// found another holder inside.
func hammer(t *testing.T, r impls.Recipe, cfg impls.Config, clients, rounds int) (grants, doubles int64) {
	t.Helper()
	var inside, granted, seen atomic.Int64
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			cfg := cfg
			cfg.Wait = impls.NewUniform(0, 50*time.Microsecond, uint64(i))
			c, err := r.Open(t.Context(), cfg)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			var last uint64
			for range rounds {
				h, err := c.Acquire(t.Context(), "k", newAttempt())
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) > 1 {
					seen.Add(1)
				}
				granted.Add(1)
				if h.Fence() <= last {
					t.Errorf("token %d after %d", h.Fence(), last)
				}
				last = h.Fence()
				time.Sleep(20 * time.Microsecond)
				inside.Add(-1)
				if err := h.Release(t.Context()); err != nil {
					t.Errorf("release: %v", err)
				}
			}
		})
	}
	wg.Wait()
	return granted.Load(), seen.Load()
}

func TestRightLockNeverGrantsTwice(t *testing.T) {
	s, cfg := serve(t, 1)
	if _, doubles := hammer(t, Recipes()[0], cfg, 16, 100); doubles != 0 || s.Misdeeds() != 0 {
		t.Errorf("%d double grants seen, %d counted, want none", doubles, s.Misdeeds())
	}
}

func TestWrongLockGrantsTwice(t *testing.T) {
	s, cfg := serve(t, 1)
	grants, doubles := hammer(t, Recipes()[1], cfg, 16, 200)
	if s.Misdeeds() == 0 || doubles == 0 {
		t.Errorf("%d double grants of %d, of which %d were seen: want some", s.Misdeeds(), grants, doubles)
	}
}

// The share is exact arithmetic on hashes, not a matter of timing.
func TestShareOfMisdeeds(t *testing.T) {
	for seed := range uint64(20) {
		ls := locks{seed: seed}
		n := 0
		var a impls.Attempt
		for i := range 20000 {
			a[15], a[14] = byte(i), byte(i>>8)
			if ls.chosen(a) {
				n++
			}
		}
		if n < 140 || n > 260 {
			t.Errorf("seed %d: %d of 20000 attempts are chosen, want about 200", seed, n)
		}
	}
}

func TestSameSeedSameDecision(t *testing.T) {
	one, two, other := locks{seed: 7}, locks{seed: 7}, locks{seed: 8}
	differ := false
	for range 10000 {
		a := newAttempt()
		if one.chosen(a) != two.chosen(a) {
			t.Fatal("two servers of one seed disagree")
		}
		differ = differ || one.chosen(a) != other.chosen(a)
	}
	if !differ {
		t.Error("the seed has no influence")
	}
}

func TestLeaseEndsExactly(t *testing.T) {
	ls := locks{keys: map[string]*lock{}}
	now := time.Now()
	first, second := newAttempt(), newAttempt()
	ask := func(o op, a impls.Attempt, at time.Duration) (status, uint64) {
		return ls.handle(&frame{op: o, id: a, n: int64(time.Second), key: "k"}, now.Add(at))
	}
	want := func(what string, st status, is status) {
		t.Helper()
		if st != is {
			t.Errorf("%s: status %d, want %d", what, st, is)
		}
	}
	st, f1 := ask(opAcquire, first, 0)
	want("acquire", st, statusDone)
	st, _ = ask(opAcquire, second, time.Second-1)
	want("acquire just before the end", st, statusBusy)
	st, _ = ask(opExtend, first, time.Second-1)
	want("extend", st, statusDone)
	st, _ = ask(opAcquire, second, 2*time.Second-2)
	want("acquire just before the new end", st, statusBusy)
	st, f2 := ask(opAcquire, second, 2*time.Second-1)
	want("acquire at the end", st, statusDone)
	if f2 <= f1 {
		t.Errorf("token %d after %d", f2, f1)
	}
	for _, o := range []op{opExtend, opRelease, opCleanup} {
		st, _ = ask(o, first, 2*time.Second)
		want(o.String()+" of what expired", st, statusGone)
	}
	st, _ = ask(opRelease, second, 2*time.Second)
	want("release", st, statusDone)
	st, _ = ask(opRelease, second, 2*time.Second)
	want("second release", st, statusGone)
}

// What sits unread in an old connection must not take effect after a newer
// connection was answered.
func TestOldConnectionIsVoid(t *testing.T) {
	s, cfg := serve(t, 1)
	var w [2]wire
	for i := range w {
		w[i] = wire{dial: cfg.Dial, path: cfg.Addresses[0], timeout: cfg.Timeout, id: [16]byte{1}, generation: int64(i)}
		if err := w[i].connect(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer w[i].close()
	}
	a := newAttempt()
	if st, _, err := w[1].call(t.Context(), &frame{op: opCleanup, id: a, key: "k"}); err != nil || st != statusGone {
		t.Fatalf("clean-up on the new connection: status %d, %v", st, err)
	}
	_, _, err := w[0].call(t.Context(), &frame{op: opAcquire, id: a, n: int64(time.Minute), key: "k"})
	if !errors.Is(err, impls.ErrUnknown) {
		t.Errorf("acquire on the old connection: %v, want unknown", err)
	}
	if st, _, err := w[1].call(t.Context(), &frame{op: opCleanup, id: a, key: "k"}); err != nil || st != statusGone {
		t.Errorf("the old connection's acquire took effect: status %d, %v", st, err)
	}
	if got := s.Counters()["cleanup"]; got != 2 {
		t.Errorf("counted %d clean-ups, want 2", got)
	}
}

func FuzzReadFrame(f *testing.F) {
	f.Add((&frame{op: opAcquire, id: [16]byte{1}, n: 5, key: "key"}).append(nil))
	f.Add([]byte{0, 0})
	f.Add([]byte{255, 255, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := readFrame(bytes.NewReader(b), make([]byte, frameMax))
		if err != nil {
			return
		}
		if again := got.append(nil); !bytes.Equal(again, b[:len(again)]) {
			t.Errorf("%x is written as %x", b, again)
		}
	})
}

// A holder of the control sends requests in a loop, and stops at its release.
func TestEndlessRequests(t *testing.T) {
	for _, r := range Recipes() {
		s, cfg := serve(t, 1)
		c, err := r.Open(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		h, err := c.TryAcquire(t.Context(), "k", impls.Attempt{1})
		if err != nil {
			continue // another defect
		}
		floods := r.Info().ID == "reference/broken-traffic"
		for floods && s.Counters()["extend"] < 100 {
			time.Sleep(time.Millisecond)
		}
		if err := h.Release(t.Context()); floods && err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if n := s.Counters()["extend"]; (n > 0) != floods {
			t.Errorf("%s: %d requests during a hold", r.Info().ID, n)
		}
	}
}
