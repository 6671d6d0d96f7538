package history

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// BenchmarkRecord is the shipped path of one call: Begin and End, with their
// two clock readings, growth of the file and new mappings included.
func BenchmarkRecord(b *testing.B) {
	w, _ := create(b, b.TempDir(), Options{Client: 1, Clock: NewClock()})
	op := Op{Kind: KindAcquire, Key: 3, Attempt: Attempt{1, 2, 3}}
	r := Result{Outcome: Held, Fence: 9}
	b.ReportAllocs()
	b.SetBytes(slotSize)
	for b.Loop() {
		if _, err := w.Begin(&op); err != nil {
			b.Fatal(err)
		}
		r.LeaseEnd = w.End(&r)
	}
	b.StopTimer()
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRecordParallel is the same by several clients at once, which must
// not cost more: they share nothing.
func BenchmarkRecordParallel(b *testing.B) {
	dir, clock := b.TempDir(), NewClock()
	writers := make(chan *Writer, runtime.GOMAXPROCS(0))
	for i := range uint32(cap(writers)) {
		w, _ := create(b, dir, Options{Client: i, Clock: clock})
		writers <- w
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		w := <-writers
		op := Op{Kind: KindAcquire}
		r := Result{Outcome: Held}
		for pb.Next() {
			if _, err := w.Begin(&op); err != nil {
				b.Error(err)
				return
			}
			w.End(&r)
		}
		if err := w.Close(); err != nil {
			b.Error(err)
		}
	})
}

// BenchmarkClock is one reading of the clock.
func BenchmarkClock(b *testing.B) {
	c := NewClock()
	b.ReportAllocs()
	for b.Loop() {
		c.Now()
	}
	b.ReportMetric(float64(c.Uncertainty()), "ns-uncertain")
}

// bulk writes and merges a history of so many clients and calls each.
func bulk(tb testing.TB, clients, calls int) string {
	tb.Helper()
	dir, clock := tb.TempDir(), NewClock()
	var src []string
	var writers []*Writer
	for i := range uint32(clients) {
		w, path := create(tb, dir, Options{Client: i, Clock: clock})
		src, writers = append(src, path), append(writers, w)
	}
	op, r := Op{Kind: KindAcquire}, Result{Outcome: Held}
	for range calls { // by turns, as clients do
		for _, w := range writers {
			if _, err := w.Begin(&op); err != nil {
				tb.Fatal(err)
			}
			w.End(&r)
		}
	}
	for _, w := range writers {
		if err := w.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	path := filepath.Join(dir, "merged")
	if err := Merge(path, src...); err != nil {
		tb.Fatal(err)
	}
	for _, p := range src {
		if err := os.Remove(p); err != nil {
			tb.Fatal(err)
		}
	}
	return path
}

// BenchmarkRead reads two million calls of 32 clients; one operation is the
// whole history.
func BenchmarkRead(b *testing.B) {
	const clients, calls = 32, 62500
	path := bulk(b, clients, calls)
	b.ReportAllocs()
	for b.Loop() {
		h, err := Read(path)
		if err != nil || len(h.Calls) != clients*calls || len(h.Damage) != 0 {
			b.Fatal(err, len(h.Calls), h.Damage)
		}
	}
	b.ReportMetric(float64(clients*calls)*float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkMerge merges the files of 32 clients with 2000 calls each; one
// operation is one merge.
func BenchmarkMerge(b *testing.B) {
	dir, clock := b.TempDir(), NewClock()
	var src []string
	for i := range uint32(32) {
		w, path := create(b, dir, Options{Client: i, Clock: clock})
		pour(b, w, 1, 2000)
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
		src = append(src, path)
	}
	b.SetBytes(32 * 2000 * slotSize)
	for b.Loop() {
		if err := Merge(filepath.Join(dir, "merged"), src...); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkReadJSONL reads the log of another program, and an export of ours; one
// operation is the whole text.
func BenchmarkReadJSONL(b *testing.B) {
	const calls = 100_000
	var foreign strings.Builder
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for n := range calls / 2 {
		for _, kind := range []string{"acquire", "release"} {
			fmt.Fprintf(&foreign, "{\"client\":\"web-%d\",\"kind\":%q,\"key\":\"orders/%d\",\"outcome\":\"ok\",\"invoke\":%q,\"return\":%q}\n",
				n%32, kind, n%100, at.Format(time.RFC3339Nano), at.Add(time.Millisecond).Format(time.RFC3339Nano))
			at = at.Add(2 * time.Millisecond)
		}
	}
	h, err := Read(bulk(b, 32, calls/32))
	if err != nil {
		b.Fatal(err)
	}
	for name, text := range map[string]string{"foreign": foreign.String(), "ours": exported(b, h)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if h, err := ReadJSONL(strings.NewReader(text), "log"); err != nil || len(h.Calls) != calls || len(h.Damage) > 0 {
					b.Fatal(err, len(h.Calls), h.Damage)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*calls), "ns/call")
		})
	}
}
