package workloads

import (
	"path/filepath"
	"testing"

	"github.com/lockbench/lockbench/history"
)

// The board shows of a round what is on record, and nothing sooner: a reader that
// stops a process by it relies on that.
func TestBoardShowsWhatIsOnRecord(t *testing.T) {
	board := must[*Board](t)(CreateBoard(filepath.Join(t.TempDir(), "board"), 1))
	defer board.Close()
	clock := history.NewClock()
	path := filepath.Join(t.TempDir(), "client.lbh")
	hist := must[*history.Writer](t)(history.Create(path, history.Options{Clock: clock}))
	p := &phases{}
	p.end.Store(1 << 62)
	r := &recorder{hist: hist, clock: clock, slot: board.client(0), phases: p}
	expect := func(state State, since int64) {
		t.Helper()
		if st := board.Status(0); st.State != state || st.Since != since {
			t.Errorf("the board shows %s since %d, want %s since %d", st.State, st.Since, state, since)
		}
	}
	recorded := func() history.Call {
		t.Helper()
		h := must[*history.History](t)(history.Read(path))
		return h.Calls[len(h.Calls)-1]
	}

	a := history.Attempt{1}
	if err := r.acquire(&history.Op{Kind: history.KindAcquire, Attempt: a}); err != nil {
		t.Fatal(err)
	}
	expect(Acquiring, recorded().Invoke)
	r.acquired(&history.Result{Outcome: history.Held})
	granted := recorded().Return
	expect(Holding, granted)
	if err := r.release(&history.Op{Kind: history.KindRelease, Attempt: a}); err != nil {
		t.Fatal(err)
	}
	if c := recorded(); c.Kind != history.KindRelease || c.Outcome != history.Open {
		t.Errorf("a release about to be sent is on record as %+v", c)
	}
	expect(Releasing, granted)
	r.end(&history.Result{Outcome: history.Released})

	// What cannot be recorded is not to be done; the hold is over all the same.
	if err := hist.Close(); err != nil {
		t.Fatal(err)
	}
	r.slot.idle()
	if err := r.acquire(&history.Op{Kind: history.KindAcquire, Attempt: history.Attempt{2}}); err == nil {
		t.Error("an acquire that is not on record may go")
	}
	expect(Idle, 0)
}
