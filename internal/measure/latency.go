package measure

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Histograms span 1 µs to 1 h with 3 significant digits, in nanoseconds.
const (
	shortest = int64(time.Microsecond)
	longest  = int64(time.Hour)
	digits   = 3
)

func newHistogram() *hdr.Histogram { return hdr.New(shortest, longest, digits) }

// series is one kind of latency. Its samples are counted by the second of the
// window in which each ended, and by the bucket of a histogram.
type series struct {
	tag          string
	seconds      [][]bucket // in order
	most, sum, n int64
}

// bucket counts samples that the histograms do not distinguish.
type bucket struct{ code, n uint32 }

// The histograms' buckets are 1/2048 to 1/1024 of their values wide, and at least
// 512 ns.
const (
	bucketBits = 11
	leastShift = 9
)

// codeOf numbers the bucket of a value, in the order of the values.
func codeOf(ns int64) uint32 {
	ns = min(max(ns, 0), longest)
	shift := max(leastShift, bits.Len64(uint64(ns))-bucketBits)
	return uint32(shift-leastShift)<<bucketBits + uint32(ns>>shift)
}

// value is the least of the values in a bucket.
func (b bucket) value() int64 {
	shift := b.code >> bucketBits
	return int64(b.code-shift<<bucketBits) << (shift + leastShift)
}

func (s *series) add(second, ns int64) {
	for int64(len(s.seconds)) <= second {
		s.seconds = append(s.seconds, nil)
	}
	s.most = max(s.most, ns)
	s.sum += ns
	s.n++
	of, code := s.seconds[second], codeOf(ns)
	i, found := slices.BinarySearchFunc(of, code, func(b bucket, code uint32) int { return cmp.Compare(b.code, code) })
	if !found {
		of = slices.Insert(of, i, bucket{code: code})
		s.seconds[second] = of
	}
	of[i].n++
}

// allSeries are the latencies of a scenario.
type allSeries struct{ acquire, response, release, handoff, hold series }

func (a *allSeries) each() []*series {
	return []*series{&a.acquire, &a.response, &a.release, &a.handoff, &a.hold}
}

func newSeries() *allSeries {
	return &allSeries{acquire: series{tag: "acquire"}, response: series{tag: "response"}, release: series{tag: "release"}, handoff: series{tag: "handoff"}, hold: series{tag: "hold"}}
}

func (d *derivation) openLoop() bool {
	a := d.scenario.Workload.Arrival
	return a != "" && a != "closed"
}

// latencies summarises the series.
func (d *derivation) latencies(s *allSeries) {
	r := &d.result
	r.Acquire, r.Response, r.Release, r.Handoff, r.HoldNS = summary(&s.acquire), summary(&s.response), summary(&s.release), summary(&s.handoff), summary(&s.hold)
	if r.Acquire == nil {
		d.unmeasured("acquire_ns", "no acquire that began within the window was granted within it")
	}
	if r.Release == nil {
		d.unmeasured("release_ns", "no release was confirmed within the window")
	}
	if r.HoldNS == nil {
		d.unmeasured("hold_ns", "no hold ended by a release within the window")
	}
	if r.Handoff == nil {
		d.unmeasured("handoff_ns", "the lock never passed from one client to another that was waiting")
	}
	if !d.openLoop() {
		d.unmeasured("response_ns", "the load is a closed loop: no call had a time at which it should have begun")
	} else if r.Response == nil {
		d.unmeasured("response_ns", "no acquire that began within the window was granted within it")
	}
}

func summary(s *series) *scenario.Latency {
	if s.n == 0 {
		return nil
	}
	h := newHistogram()
	for _, second := range s.seconds {
		record(h, second)
	}
	at := func(p float64) int64 { return min(h.ValueAtPercentile(p), s.most) }
	return &scenario.Latency{P50: at(50), P90: at(90), P95: at(95), P99: at(99), P999: at(99.9), Max: s.most, Mean: float64(s.sum) / float64(s.n), Count: s.n}
}

// record adds the samples of a second. It cannot fail: samples out of the
// histogram's range were counted at its edge.
func record(h *hdr.Histogram, second []bucket) {
	for _, b := range second {
		_ = h.RecordValues(b.value(), int64(b.n))
	}
}

// writeLatencies writes the series as an HDR histogram log (format 1.3): one
// interval per second and tag, its time counted from the window's start, its
// values in nanoseconds and its maximum column in milliseconds.
func writeLatencies(path string, all *allSeries) error {
	err := scenario.ReplaceFile(path, func(to io.Writer) error {
		w := hdr.NewHistogramLogWriter(to)
		comment := w.OutputComment("[times count from the start of the measured window; values in ns]")
		if err := errors.Join(comment, w.OutputLogFormatVersion(), w.OutputStartTime(0), w.OutputLegend()); err != nil {
			return err
		}
		seconds := 0
		for _, s := range all.each() {
			seconds = max(seconds, len(s.seconds))
		}
		h := newHistogram()
		for second := range seconds {
			for _, s := range all.each() {
				if second >= len(s.seconds) || len(s.seconds[second]) == 0 {
					continue
				}
				h.Reset()
				h.SetTag(s.tag)
				h.SetStartTimeMs(int64(second) * 1000)
				h.SetEndTimeMs(int64(second+1) * 1000)
				record(h, s.seconds[second])
				if err := w.OutputIntervalHistogram(h); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("write the latency log: %w", err)
	}
	return nil
}
