package workloads

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
)

// table is a lock for several keys in memory, whose clients record what they do.
type table struct {
	dir   string
	board *Board
	grant func(rng *rand.Rand, holders, writers int, shared bool) bool

	looks atomic.Int64 // at the board; holds last for some of them

	mu      sync.Mutex
	holders map[uint32][2]int // all of them, and the writers
}

func newTable(t *testing.T, clients int, grant func(rng *rand.Rand, holders, writers int, shared bool) bool) *table {
	dir := t.TempDir()
	board := must[*Board](t)(CreateBoard(filepath.Join(t.TempDir(), "board"), clients))
	t.Cleanup(func() { board.Close() })
	return &table{dir: dir, board: board, grant: grant, holders: map[uint32][2]int{}}
}

func (l *table) change(key uint32, shared bool, by int) {
	h := l.holders[key]
	h[0] += by
	if !shared {
		h[1] += by
	}
	l.holders[key] = h
}

// client makes n rounds.
func (l *table) client(t *testing.T, id uint32, n int) {
	clock := history.NewClock()
	w, err := history.Create(filepath.Join(l.dir, fmt.Sprintf("client-%06d.lbh", id)), history.Options{Client: id, Clock: clock})
	if err != nil {
		t.Error(err)
		return
	}
	p := &phases{}
	p.end.Store(1 << 62)
	r := &recorder{hist: w, clock: clock, slot: l.board.client(id), phases: p}
	rng := rand.New(rand.NewPCG(uint64(id), 1))
	for i := range n {
		op := history.Op{Kind: history.KindTry, Key: rng.Uint32N(2)}
		if rng.IntN(2) == 0 {
			op.Flags = history.FlagShared
		}
		shared := op.Flags != 0
		binary.BigEndian.PutUint64(op.Attempt[:], uint64(id+1)<<32|uint64(i))
		if err := r.acquire(&op); err != nil {
			t.Error(err)
			return
		}
		l.mu.Lock()
		h := l.holders[op.Key]
		granted := l.grant(rng, h[0], h[1], shared)
		if granted {
			l.change(op.Key, shared, 1)
		}
		l.mu.Unlock()
		if !granted {
			r.acquired(&history.Result{Outcome: history.Busy})
			r.slot.idle()
			continue
		}
		r.acquired(&history.Result{Outcome: history.Held})
		for until := l.looks.Load() + int64(rng.IntN(4)); l.looks.Load() < until; {
			runtime.Gosched()
		}
		op.Kind = history.KindRelease
		if err := r.release(&op); err != nil {
			t.Error(err)
			return
		}
		l.mu.Lock()
		l.change(op.Key, shared, -1)
		l.mu.Unlock()
		r.end(&history.Result{Outcome: history.Released})
		r.slot.idle()
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// pairOf names a double hold, whichever came first.
func pairOf(a, b history.Attempt) [2]history.Attempt {
	if string(a[:]) > string(b[:]) {
		a, b = b, a
	}
	return [2]history.Attempt{a, b}
}

// What the board shows at two looks, the check of the history reports too: of a
// correct lock nothing.
func TestDoubleHoldsAreOverlaps(t *testing.T) {
	free := func(_ *rand.Rand, holders, writers int, shared bool) bool {
		return holders == 0 || shared && writers == 0
	}
	for name, tt := range map[string]struct {
		grant  func(*rand.Rand, int, int, bool) bool
		broken bool
	}{
		"correct": {free, false},
		"broken": {func(rng *rand.Rand, holders, writers int, shared bool) bool {
			return rng.IntN(4) == 0 || free(rng, holders, writers, shared)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			const clients = 6
			l := newTable(t, clients, tt.grant)
			var wg sync.WaitGroup
			for c := range uint32(clients) {
				wg.Go(func() { l.client(t, c, 1500) })
			}
			var over atomic.Bool
			go func() { wg.Wait(); over.Store(true) }()
			seen := map[[2]history.Attempt]DoubleHold{}
			before := map[DoubleHold]bool{}
			for !over.Load() {
				found := map[DoubleHold]bool{}
				for _, d := range l.board.DoubleHolds() {
					if found[d] = true; before[d] {
						seen[pairOf(d.First.Attempt, d.Second.Attempt)] = d
					}
				}
				before = found
				l.looks.Add(1)
				runtime.Gosched()
			}
			wg.Wait()
			r := checker.Check(must[*history.History](t)(history.Read(l.dir)), checker.Options{MaxWitnesses: 1 << 20})
			reported := map[[2]history.Attempt]bool{}
			for _, w := range r.Witnesses {
				if w.Class == checker.Overlap {
					reported[pairOf(w.Calls[0].Attempt, w.Calls[1].Attempt)] = true
				}
			}
			for pair, d := range seen {
				if !reported[pair] {
					t.Errorf("the board shows %+v, the check does not", d)
				}
			}
			t.Logf("%d looks show %d double holds, the check %d", l.looks.Load(), len(seen), len(reported))
			if (len(seen) > 0) != tt.broken || (r.Overlaps > 0) != tt.broken {
				t.Errorf("the board shows %d double holds, the check %d", len(seen), r.Overlaps)
			}
		})
	}
}

// A double hold shows while it lasts, with its clients and its key, whatever the
// order of their slots.
func TestDoubleHolds(t *testing.T) {
	board := must[*Board](t)(CreateBoard(filepath.Join(t.TempDir(), "board"), 4))
	defer board.Close()
	hold := func(client, key uint32, shared bool, since int64) {
		board.client(client).acquiring(key, shared, &history.Attempt{byte(client + 1)}, since-1)
		if found := board.DoubleHolds(); len(found) > 0 {
			t.Errorf("a client that asks for the lock holds it: %+v", found)
		}
		board.client(client).holding(since)
	}
	hold(0, 7, false, 20)
	hold(1, 8, false, 10) // another key
	if found := board.DoubleHolds(); len(found) > 0 {
		t.Errorf("holds of two keys are one: %+v", found)
	}
	hold(2, 7, true, 10)
	found := board.DoubleHolds()
	if len(found) != 1 || found[0].First.Client != 2 || found[0].Second.Client != 0 || found[0].Second.Key != 7 {
		t.Errorf("found %+v, want clients 2 and 0 with key 7", found)
	}
	board.client(0).releasing()
	hold(3, 7, true, 30)
	if found := board.DoubleHolds(); len(found) > 0 {
		t.Errorf("two readers, and a writer that is gone: %+v", found)
	}
}
