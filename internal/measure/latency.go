package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Histograms span 1 µs to 1 h with 3 significant digits, in nanoseconds.
const (
	shortest = int64(time.Microsecond)
	longest  = int64(time.Hour)
	digits   = 3
)

func newHistogram() *hdr.Histogram { return hdr.New(shortest, longest, digits) }

// series is one kind of latency, by the second of the window in which each
// sample ended.
type series struct {
	tag     string
	seconds [][]int64
}

func (s *series) add(second, ns int64) {
	for int64(len(s.seconds)) <= second {
		s.seconds = append(s.seconds, nil)
	}
	s.seconds[second] = append(s.seconds[second], ns)
}

// allSeries are the latencies of a scenario.
type allSeries struct{ acquire, response, release, handoff, hold series }

func (a *allSeries) each() []*series {
	return []*series{&a.acquire, &a.response, &a.release, &a.handoff, &a.hold}
}

// series gathers the latencies of all measured calls.
func (d *derivation) series() *allSeries {
	s := &allSeries{acquire: series{tag: "acquire"}, response: series{tag: "response"}, release: series{tag: "release"}, handoff: series{tag: "handoff"}, hold: series{tag: "hold"}}
	second := func(stamp int64) int64 { return (stamp - d.samples.Start) / int64(time.Second) }
	calls := d.history.Calls
	for i := range calls {
		c := &calls[i]
		if !d.measured(c) {
			continue
		}
		switch {
		case asks(c) && c.Outcome == history.Held:
			s.acquire.add(second(c.Return), c.Return-c.Invoke)
			if d.openLoop() {
				s.response.add(second(c.Return), c.Return-c.Intended)
			}
		case c.Kind == history.KindRelease && c.Outcome == history.Released:
			s.release.add(second(c.Return), c.Return-c.Invoke)
		}
	}
	for i, h := range d.holds {
		grant := &calls[h.Grant]
		if !d.measured(grant) {
			continue
		}
		if h.Ended == checker.ReleaseSent && h.End < d.samples.End {
			s.hold.add(second(h.End), h.End-h.Start)
		}
		// Handed over: from a release to somebody who was waiting for it. The
		// next grant to one who came later, or to the releaser itself, says
		// nothing of the lock's speed.
		if i == 0 {
			continue
		}
		p := d.holds[i-1]
		if p.Key == h.Key && p.Client != h.Client && p.Ended == checker.ReleaseSent && p.End <= h.Start && grant.Invoke <= p.End && p.End >= d.samples.Start {
			s.handoff.add(second(grant.Return), grant.Return-p.End)
		}
	}
	return s
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
	h := newHistogram()
	var most, sum, n int64
	for _, second := range s.seconds {
		for _, ns := range second {
			record(h, ns)
			most = max(most, ns)
			sum += ns
			n++
		}
	}
	if n == 0 {
		return nil
	}
	at := func(p float64) int64 { return min(h.ValueAtPercentile(p), most) }
	return &scenario.Latency{P50: at(50), P90: at(90), P95: at(95), P99: at(99), P999: at(99.9), Max: most, Mean: float64(sum) / float64(n), Count: n}
}

// record adds a value; what is out of the histogram's range counts at its
// edge, and cannot fail.
func record(h *hdr.Histogram, ns int64) { _ = h.RecordValue(min(max(ns, 0), longest)) }

// writeLatencies writes the series as an HDR histogram log (format 1.3): one
// interval per second and tag, its time counted from the window's start, its
// values in nanoseconds and its maximum column in milliseconds.
func writeLatencies(path string, all *allSeries) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".latency-*")
	if err != nil {
		return fmt.Errorf("write the latency log: %w", err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	w := hdr.NewHistogramLogWriter(f)
	for _, head := range []func() error{
		func() error {
			return w.OutputComment("[times count from the start of the measured window; values in ns]")
		},
		w.OutputLogFormatVersion,
		func() error { return w.OutputStartTime(0) },
		w.OutputLegend,
	} {
		if err := head(); err != nil {
			return fmt.Errorf("write the latency log: %w", err)
		}
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
			for _, ns := range s.seconds[second] {
				record(h, ns)
			}
			if err := w.OutputIntervalHistogram(h); err != nil {
				return fmt.Errorf("write the latency log: %w", err)
			}
		}
	}
	if err := f.Chmod(0o644); err != nil {
		return fmt.Errorf("write the latency log: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write the latency log: %w", err)
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return fmt.Errorf("write the latency log: %w", err)
	}
	return nil
}
