package workloads

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/lockbench/lockbench/history"
)

func TestBoardFollowsARound(t *testing.T) {
	path := filepath.Join(t.TempDir(), "board")
	b := must[*Board](t)(CreateBoard(path, 3))
	defer b.Close()
	other := must[*Board](t)(OpenBoard(path)) // as another process has it
	defer other.Close()
	if unsafe.Sizeof(slot{}) != 128 {
		t.Errorf("a slot has %d bytes; neighbours would share cache lines", unsafe.Sizeof(slot{}))
	}
	a := history.Attempt{1, 2, 3, 15: 9}
	s := other.client(1)
	s.open(77)
	want := Status{Client: 1, PID: 77}
	check := func() {
		t.Helper()
		if got := b.Status(1); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	check()
	for round := range uint64(3) {
		s.acquiring(5, false, &a, 100)
		want.State, want.Key, want.Attempt, want.Since = Acquiring, 5, a, 100
		check()
		s.holding(110)
		want.State, want.Since, want.Acquired = Holding, 110, round+1
		check()
		s.releasing()
		want.State = Releasing
		check()
		s.idle()
		want = Status{Client: 1, PID: 77, Acquired: round + 1}
		check()
	}
	// A failed acquire is no grant.
	s.acquiring(5, false, &a, 120)
	s.idle()
	check()
	if got := b.Acquired(); got != 3 {
		t.Errorf("acquired %d, want 3", got)
	}
	if got := b.Status(2); got != (Status{Client: 2}) {
		t.Errorf("a neighbour changed: %+v", got)
	}
	if got := b.Status(99); got != (Status{Client: 99}) {
		t.Errorf("a client that is not there: %+v", got)
	}
}

// A reader never sees parts of two rounds as one.
func TestBoardIsReadWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "board")
	b := must[*Board](t)(CreateBoard(path, 1))
	defer b.Close()
	s := b.client(0)
	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer stop.Store(true)
		r := rand.New(rand.NewPCG(1, 2))
		for range 200_000 {
			x := r.Uint64()
			var a history.Attempt
			putAttempt(&a, x, ^x)
			s.acquiring(uint32(x), x&4 != 0, &a, int64(x>>1))
			if x&3 != 0 {
				s.holding(int64(x>>1) + 1)
				s.releasing()
			}
			s.idle()
		}
	})
	looks := 0
	for !stop.Load() {
		st := b.Status(0)
		if st.State == Idle {
			continue
		}
		looks++
		hi, lo := getAttempt(&st.Attempt)
		since := int64(hi >> 1)
		if st.State != Acquiring {
			since++
		}
		if lo != ^hi || st.Key != uint32(hi) || st.Shared != (hi&4 != 0) || st.Since != since {
			t.Fatalf("torn: %+v", st)
		}
	}
	wg.Wait()
	t.Logf("%d looks at a busy slot", looks)
}

func TestBoardRefusesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	for name, data := range map[string][]byte{"empty": nil, "odd": make([]byte, 300), "zeros": make([]byte, 3*slotSize)} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := OpenBoard(path); err == nil {
			b.Close()
			t.Errorf("%s: opened", name)
		}
	}
	path := filepath.Join(dir, "board")
	must[*Board](t)(CreateBoard(path, 1)).Close()
	if b, err := CreateBoard(path, 1); err == nil {
		b.Close()
		t.Error("created over an existing file")
	}
	if _, err := CreateBoard(filepath.Join(dir, "none"), 0); err == nil {
		t.Error("created for no client")
	}
}

func BenchmarkBoardRound(b *testing.B) {
	board, err := CreateBoard(filepath.Join(b.TempDir(), "board"), 1)
	if err != nil {
		b.Fatal(err)
	}
	defer board.Close()
	s := board.client(0)
	var a history.Attempt
	b.ReportAllocs()
	for b.Loop() {
		s.acquiring(1, false, &a, 1)
		s.holding(2)
		s.releasing()
		s.idle()
	}
}
