package history

import (
	"path/filepath"
	"testing"
)

// BenchmarkRecord is the shipped path of one call: Begin and End, with their
// two clock readings, growth of the file and new mappings included.
func BenchmarkRecord(b *testing.B) {
	w, err := Create(filepath.Join(b.TempDir(), "c"), Options{Client: 1, Clock: NewClock()})
	if err != nil {
		b.Fatal(err)
	}
	op := Op{Kind: KindAcquire, Key: 3, Attempt: Attempt{1, 2, 3}}
	res := Result{Outcome: Held, Fence: 9}
	b.ReportAllocs()
	b.SetBytes(slotSize)
	for b.Loop() {
		if _, err := w.Begin(&op); err != nil {
			b.Fatal(err)
		}
		res.LeaseEnd = w.End(&res)
	}
	b.StopTimer()
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkClock is one reading of the clock.
func BenchmarkClock(b *testing.B) {
	c := NewClock()
	b.ReportAllocs()
	b.ReportMetric(float64(c.Uncertainty()), "ns-uncertain")
	for b.Loop() {
		c.Now()
	}
}
