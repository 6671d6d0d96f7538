package history

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestClock(t *testing.T) {
	c := NewClock()
	if u := c.Uncertainty(); u < 0 || u > int64(time.Second) {
		t.Errorf("uncertainty %d ns", u)
	}
	last := c.Now()
	if last <= 0 {
		t.Errorf("stamp %d", last)
	}
	for range 1000 {
		now := c.Now()
		if now < last {
			t.Fatalf("backwards: %d after %d", now, last)
		}
		last = now
	}
	before := c.Now()
	now := time.Now()
	after := c.Now()
	if at := c.At(now); at < before || at > after {
		t.Errorf("At: %d is not within %d and %d", at, before, after)
	}
	if back := c.Time(c.At(now)); !back.Equal(now) {
		t.Errorf("Time(At(t)) = %v, want %v", back, now)
	}
}

// Two clocks, as of two processes, agree within what they say of themselves.
func TestClocksAgree(t *testing.T) {
	a, b := NewClock(), NewClock()
	before := a.Now()
	mid := b.Now()
	after := a.Now()
	doubt := a.Uncertainty() + b.Uncertainty()
	if mid < before-doubt || mid > after+doubt {
		t.Errorf("%d is not within %d and %d, give or take %d", mid, before, after, doubt)
	}
}

func TestRoundTrip(t *testing.T) {
	clock := NewClock()
	for _, n := range []int{1, 2, 145, 146, 147, 5000} {
		for seed := range uint64(10) {
			dir := t.TempDir()
			w, path := create(t, dir, Options{Client: 7, Worker: 3, Clock: clock})
			want := pour(t, w, seed, n)
			live := sound(t, path) // a reader may look while the client works
			sameCalls(t, live.Calls, sorted(want))
			if live.Streams[0].Sealed {
				t.Error("sealed before Close")
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			for _, p := range []string{path, dir} {
				h := sound(t, p)
				sameCalls(t, h.Calls, sorted(want))
				st := h.Streams[0]
				if len(h.Streams) != 1 || st.Client != 7 || st.Worker != 3 || st.Records != n || !st.Sealed ||
					st.SealedAt < want[n-1].Invoke || st.ClockUncertainty != clock.Uncertainty() {
					t.Errorf("streams %+v", h.Streams)
				}
			}
			if size := int64(len(load(t, path))); size != headerSize+int64(n)*slotSize {
				t.Errorf("%d bytes for %d records", size, n)
			}
		}
	}
}

func sorted(calls []Call) []Call {
	c := slices.Clone(calls)
	slices.SortFunc(c, compareCalls)
	return c
}

func TestMergeKeepsAll(t *testing.T) {
	path, want := small(t, 400)
	h := sound(t, path)
	sameCalls(t, h.Calls, want)
	if len(h.Streams) != 3 || !h.Streams[0].Sealed || h.Streams[1].Sealed || !h.Streams[2].Sealed {
		t.Errorf("streams %+v", h.Streams)
	}
	if got, most := len(load(t, path)), 3*(frameSize+headerSize+400*slotSize); got != most {
		t.Errorf("%d bytes, want %d", got, most)
	}
}

func TestMergeRefuses(t *testing.T) {
	path, _ := small(t, 3)
	dir := t.TempDir()
	dst := filepath.Join(dir, "out")
	for name, src := range map[string][]string{
		"nothing": nil,
		"absent":  {filepath.Join(dir, "absent")},
		"merged":  {path},
		"folder":  {dir},
	} {
		if err := Merge(dst, src...); err == nil {
			t.Errorf("%s: no error", name)
		}
		left, err := os.ReadDir(dir)
		if err != nil || len(left) != 0 {
			t.Errorf("%s: left behind: %v %v", name, left, err)
		}
	}
}

func TestCreateNeverOverwrites(t *testing.T) {
	dir := t.TempDir()
	w, path := create(t, dir, Options{Clock: NewClock()})
	pour(t, w, 1, 3)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(path, Options{Clock: NewClock()}); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v", err)
	}
	if _, err := Create(filepath.Join(dir, "none", "c"), Options{Clock: NewClock()}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	sound(t, dir)
}

// A wrong use is rejected, or returned by Close; records of correct calls stay.
func TestMisuse(t *testing.T) {
	w, path := create(t, t.TempDir(), Options{Clock: NewClock()})
	want := pour(t, w, 1, 50)
	for _, op := range []Op{{}, {Kind: 200}, {Kind: KindTry, Flags: 0x80}} {
		if _, err := w.Begin(&op); err == nil {
			t.Errorf("%+v was recorded", op)
		}
	}
	for range 2 { // the second End has no Begin
		w.End(&Result{Outcome: Held})
	}
	op := Op{Kind: KindTry}
	at, err := w.Begin(&op)
	if err != nil {
		t.Fatal(err)
	}
	ret := w.End(&Result{Outcome: Open})
	want = append(want, expected(0, 50, op, Result{Outcome: Unknown}, at, ret))
	if err := w.Close(); err == nil || !strings.Contains(err.Error(), "End without a Begin") {
		t.Errorf("Close: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := w.Begin(&op); !errors.Is(err, os.ErrClosed) {
		t.Errorf("Begin after Close: %v", err)
	}
	got := sound(t, path)
	sameCalls(t, got.Calls[49:], sorted(want)[49:])
}

// A call may stay open over many windows of points, and return in the end.
func TestLongOpenCall(t *testing.T) {
	w, path := create(t, t.TempDir(), Options{Clock: NewClock()})
	op := Op{Kind: KindAcquire}
	if _, err := w.Begin(&op); err != nil {
		t.Fatal(err)
	}
	for range 5000 {
		if _, err := w.Point(&Op{Kind: KindLost}, &Result{Outcome: Lost}); err != nil {
			t.Fatal(err)
		}
	}
	ret := w.End(&Result{Outcome: Held, Value: 5})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h := sound(t, path)
	if c := h.Calls[0]; len(h.Calls) != 5001 || c.Outcome != Held || c.Return != ret || c.Value != 5 {
		t.Errorf("%d calls, the first %+v", len(h.Calls), c)
	}
}

// A file that cannot grow is an error of Begin with its name; the records
// before it stay, and the Writer goes on once there is room.
func TestGrowthFails(t *testing.T) {
	full := true
	room := int64(1 << 20)
	w, path := create(t, t.TempDir(), Options{Clock: NewClock(), allocate: func(f *os.File, from, size int64) error {
		if full && size > room {
			return syscall.ENOSPC
		}
		return allocate(f, from, size)
	}})
	op, n := Op{Kind: KindTry}, uint32(0)
	var err error
	for {
		if _, err = w.Begin(&op); err != nil {
			break
		}
		w.End(&Result{Outcome: Busy})
		n++
	}
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), path) {
		t.Errorf("got %v", err)
	}
	if used := int64(n) * slotSize; used < room-maxWindow-slotSize*2 {
		t.Errorf("gave up after %d of %d bytes", used, room)
	}
	if h := sound(t, path); len(h.Calls) != int(n) {
		t.Errorf("%d calls, want %d", len(h.Calls), n)
	}
	full = false
	if _, err := w.Begin(&op); err != nil {
		t.Errorf("with room again: %v", err)
	}
	w.End(&Result{Outcome: Held})
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if h := sound(t, path); len(h.Calls) != int(n)+1 {
		t.Errorf("%d calls, want %d", len(h.Calls), n+1)
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	w, _ := create(t, t.TempDir(), Options{Clock: NewClock()})
	op, r := Op{Kind: KindTry}, Result{Outcome: Held}
	if a := testing.AllocsPerRun(20000, func() {
		if _, err := w.Begin(&op); err != nil {
			t.Error(err)
		}
		w.End(&r)
	}); a != 0 {
		t.Errorf("%v allocations a record", a)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// A past call keeps its stamps and stands in order, also in an open stream.
func TestPast(t *testing.T) {
	w, path := create(t, t.TempDir(), Options{Client: 1, Clock: NewClock()})
	acquire, extend := Op{Kind: KindAcquire, Attempt: Attempt{1}}, Op{Kind: KindExtend, Attempt: Attempt{1}, Fence: 3}
	if _, err := w.Begin(&acquire); err != nil {
		t.Fatal(err)
	}
	if err := w.Past(&extend, &Result{Outcome: Extended}, 1, 2); err == nil {
		t.Error("a past call was recorded within an open one")
	}
	from := w.End(&Result{Outcome: Held})
	to := w.clock.Now()
	if err := w.Past(&extend, &Result{Outcome: Extended}, from, to); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Begin(&Op{Kind: KindRelease, Attempt: Attempt{1}}); err != nil {
		t.Fatal(err)
	}
	w.End(&Result{Outcome: Released})
	calls := sound(t, path).Calls
	if len(calls) != 3 || calls[1].Kind != KindExtend || calls[1].Outcome != Extended || calls[1].Invoke != from || calls[1].Return != to || calls[1].Seq != 1 || calls[1].Fence != 3 {
		t.Errorf("read back %+v", calls)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Past(&extend, &Result{Outcome: Extended}, from, to); err == nil {
		t.Error("a past call was recorded in a closed stream")
	}
}
