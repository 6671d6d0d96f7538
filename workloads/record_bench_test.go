package workloads

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/history"
)

func benchRecorder(b *testing.B) (*recorder, func()) {
	b.Helper()
	board, err := CreateBoard(filepath.Join(b.TempDir(), "board"), 1)
	if err != nil {
		b.Fatal(err)
	}
	clock := history.NewClock()
	hist, err := history.Create(filepath.Join(b.TempDir(), "client.lbh"), history.Options{Clock: clock})
	if err != nil {
		b.Fatal(err)
	}
	p := &phases{windowStart: clock.Now()}
	p.end.Store(1 << 62)
	r := &recorder{hist: hist, clock: clock, slot: board.client(0), phases: p}
	return r, func() {
		b.StopTimer()
		if err := hist.Close(); err != nil {
			b.Fatal(err)
		}
		board.Close()
	}
}

// BenchmarkRecordedCall is what one call (an acquire or a release) costs to
// record as workers record it: the record before and after, both stamps, and
// the board.
func BenchmarkRecordedCall(b *testing.B) {
	r, done := benchRecorder(b)
	defer done()
	var a history.Attempt
	b.ReportAllocs()
	release := false
	for b.Loop() {
		recordCall(b, r, a, release)
		release = !release
	}
}

// BenchmarkRecordedCallWithHistogram adds the histogram value that measure
// derives from each call after the run: the sum is the cost of an operation
// from its record to its percentile.
func BenchmarkRecordedCallWithHistogram(b *testing.B) {
	r, done := benchRecorder(b)
	defer done()
	h := hdrhistogram.New(1000, int64(time.Hour), 3)
	var a history.Attempt
	b.ReportAllocs()
	release := false
	for b.Loop() {
		took := recordCall(b, r, a, release)
		if err := h.RecordValue(took); err != nil {
			b.Fatal(err)
		}
		release = !release
	}
}

// recordCall records an acquire or a release and answers how long it took.
func recordCall(b *testing.B, r *recorder, a history.Attempt, release bool) int64 {
	op := history.Op{Kind: history.KindAcquire, Attempt: a}
	if release {
		op.Kind = history.KindRelease
		if err := r.release(&op); err != nil {
			b.Fatal(err)
		}
		at := r.end(&history.Result{Outcome: history.Released})
		r.slot.idle()
		return at - r.invoked
	}
	if err := r.acquire(&op); err != nil {
		b.Fatal(err)
	}
	return r.acquired(&history.Result{Outcome: history.Held, Fence: 1, LeaseEnd: 1}) - r.invoked
}
