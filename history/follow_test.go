package history

import (
	"bytes"
	"os"
	"testing"
)

// TestFollow: what is written between two polls is seen by the second, calls
// twice, each in its client's order.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	f := Follow(dir)
	defer f.Close()
	type seen struct {
		client, seq uint32
		kind        Kind
		outcome     Outcome
		returned    bool
	}
	poll := func() (list []seen) {
		t.Helper()
		if err := f.Poll(func(c *Call, returned bool) {
			list = append(list, seen{c.Client, c.Seq, c.Kind, c.Outcome, returned})
		}); err != nil {
			t.Fatal(err)
		}
		return list
	}
	want := func(got []seen, want ...seen) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("got %v, want %v", got, want)
			}
		}
	}
	want(poll())
	clock := NewClock()
	w, _ := create(t, dir, Options{Client: 4, Clock: clock})
	defer w.Close()
	begin := func(k Kind) {
		t.Helper()
		if _, err := w.Begin(&Op{Kind: k}); err != nil {
			t.Fatal(err)
		}
	}
	want(poll())
	if f.Uncertainty() != clock.Uncertainty() {
		t.Errorf("the clock is said to be off by %d at most, want %d", f.Uncertainty(), clock.Uncertainty())
	}
	begin(KindAcquire)
	want(poll(), seen{4, 0, KindAcquire, Open, false})
	want(poll())
	if _, err := w.Point(&Op{Kind: KindEnqueued}, &Result{Outcome: Accepted}); err != nil {
		t.Fatal(err)
	}
	w.End(&Result{Outcome: Held})
	begin(KindRelease)
	want(poll(), seen{4, 0, KindAcquire, Held, true}, seen{4, 1, KindEnqueued, Accepted, true}, seen{4, 2, KindRelease, Open, false})
	w.End(&Result{Outcome: Released})
	begin(KindAcquire)
	begin(KindTry) // the one before was given up
	want(poll(), seen{4, 2, KindRelease, Released, true}, seen{4, 3, KindAcquire, Open, true}, seen{4, 4, KindTry, Open, false})
}

// TestFollowMany: however the polls fall, all is seen once begun or returned,
// and returned in the end.
func TestFollowMany(t *testing.T) {
	dir := t.TempDir()
	f := Follow(dir)
	defer f.Close()
	var returned int
	count := func(c *Call, r bool) {
		if r {
			returned++
		}
	}
	const n = 5000
	for client := range uint32(3) {
		w, _ := create(t, dir, Options{Client: client, Clock: NewClock()})
		for i := range n {
			if _, err := w.Begin(&Op{Kind: KindAcquire}); err != nil {
				t.Fatal(err)
			}
			if i%7 == 0 {
				if err := f.Poll(count); err != nil {
					t.Fatal(err)
				}
			}
			w.End(&Result{Outcome: Failed})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Poll(count); err != nil || returned != 3*n {
		t.Errorf("%d calls returned, want %d (%v)", returned, 3*n, err)
	}
}

// A record that makes no sense ends what is read of its file, and that is said.
func TestFollowDamage(t *testing.T) {
	dir := t.TempDir()
	f := Follow(dir)
	defer f.Close()
	w, path := create(t, dir, Options{Client: 1, Clock: NewClock()})
	for range 2 {
		if _, err := w.Begin(&Op{Kind: KindAcquire}); err != nil {
			t.Fatal(err)
		}
		w.End(&Result{Outcome: Held})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	n := 0
	poll := func() {
		t.Helper()
		if err := f.Poll(func(*Call, bool) { n++ }); err != nil {
			t.Fatal(err)
		}
	}
	if poll(); n != 2 || !f.Whole() {
		t.Fatalf("%d calls, whole %v", n, f.Whole())
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(bytes.Repeat([]byte("nonsense"), slotSize/8), headerSize+2*slotSize); err != nil {
		t.Fatal(err)
	}
	if poll(); n != 2 || f.Whole() {
		t.Errorf("%d calls, whole %v after a record that makes no sense", n, f.Whole())
	}
}
