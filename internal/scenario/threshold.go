package scenario

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Threshold is an expectation of performance: "acquire.p99 < 20ms",
// "throughput > 1000/s".
type Threshold struct {
	Metric string  // "acquire.p99"
	Op     string  // <, <=, >, >=
	Value  float64 // nanoseconds, a rate per second, or a bare number, as the metric is
}

// The units of metrics.
const (
	unitTime   = "time"
	unitRate   = "rate"
	unitNumber = "number"
)

// Metric is a number that results have, by the name that thresholds use.
type Metric struct {
	unit string
	read func(Result) (float64, bool)
}

// ParseMetric finds a metric by its name.
func ParseMetric(name string) (Metric, error) {
	known := metrics()
	m, ok := known[name]
	if !ok {
		all := slices.Sorted(maps.Keys(known))
		return Metric{}, fmt.Errorf("no metric %q; %s", name, didYouMean(Nearest(name, all), all))
	}
	return m, nil
}

// Read is what r measured; known is false if it did not.
func (m Metric) Read(r Result) (value float64, known bool) { return m.read(r) }

func metrics() map[string]Metric {
	all := map[string]Metric{
		"throughput":           {unitRate, func(r Result) (float64, bool) { return optional(r.Throughput) }},
		"fairness":             {unitNumber, func(r Result) (float64, bool) { return optional(r.FairnessJain) }},
		"requests_per_acquire": {unitNumber, func(r Result) (float64, bool) { return optional(r.RequestsPerAcquire) }},
		"requests_per_s":       {unitRate, func(r Result) (float64, bool) { return optional(r.RequestsPerSecond) }},
		"unavailable":          {unitTime, func(r Result) (float64, bool) { return optional(r.UnavailableNS) }},
		"recovery":             {unitTime, func(r Result) (float64, bool) { return optional(r.RecoveryNS) }},
		"tries":                {unitRate, func(r Result) (float64, bool) { return optional(r.TriesPerSecond) }},
		"woken":                {unitNumber, func(r Result) (float64, bool) { return optional(r.WokenPerRelease) }},
		"order_inversions":     {unitNumber, func(r Result) (float64, bool) { return optional(r.OrderInversions) }},
		"orphans":              {unitNumber, func(r Result) (float64, bool) { return optional(r.Safety.Orphans) }},
		"acquired":             {unitNumber, func(r Result) (float64, bool) { return float64(r.Acquired), true }},
		"failed":               {unitNumber, func(r Result) (float64, bool) { return float64(r.Failed), true }},
		"busy":                 {unitNumber, func(r Result) (float64, bool) { return float64(r.Busy), true }},
		"unknown":              {unitNumber, func(r Result) (float64, bool) { return float64(r.Unknown), true }},
		"server_cpu":           {unitNumber, func(r Result) (float64, bool) { return optional(r.ServerCPU) }},
		"client_cpu":           {unitNumber, func(r Result) (float64, bool) { return optional(r.ClientCPU) }},
		"requests_per_cpu_s":   {unitRate, requestsPerCPU},
		"outage":               {unitTime, outage},
		"granted_to_others":    {unitNumber, grantedToOthers},
		"overlap":              {unitTime, func(r Result) (float64, bool) { return float64(r.Safety.OverlapNS), judged(r) }},
		"unsafe":               {unitNumber, unsafeShare},
		"code_lines":           {unitNumber, func(r Result) (float64, bool) { return codeLines(r, false) }},
		"code_lines_all":       {unitNumber, func(r Result) (float64, bool) { return codeLines(r, true) }},
	}
	quantiles := map[string]func(Latency) float64{
		"p50": func(l Latency) float64 { return float64(l.P50) }, "p90": func(l Latency) float64 { return float64(l.P90) },
		"p95": func(l Latency) float64 { return float64(l.P95) }, "p99": func(l Latency) float64 { return float64(l.P99) },
		"p999": func(l Latency) float64 { return float64(l.P999) }, "max": func(l Latency) float64 { return float64(l.Max) },
		"mean": func(l Latency) float64 { return l.Mean },
	}
	for name, get := range map[string]func(Result) *Latency{
		"acquire":  func(r Result) *Latency { return r.Acquire },
		"response": func(r Result) *Latency { return r.Response },
		"release":  func(r Result) *Latency { return r.Release },
		"handoff":  func(r Result) *Latency { return r.Handoff },
		"takeover": func(r Result) *Latency { return takeoverOf(r).FromDeath },
		"lifetime": func(r Result) *Latency { return takeoverOf(r).Lifetime },
	} {
		for q, of := range quantiles {
			all[name+"."+q] = Metric{unitTime, func(r Result) (float64, bool) {
				l := get(r)
				if l == nil || l.Count == 0 {
					return 0, false // no sample is no answer, and not a fast one
				}
				return of(*l), true
			}}
		}
	}
	return all
}

// takeoverOf is empty where no holder was killed, and where a dead client's key
// was not granted again: the times of the others would look better than it was.
func takeoverOf(r Result) TakeoverTimes {
	if r.Takeover == nil || r.Takeover.Granted < r.Takeover.Holds {
		return TakeoverTimes{}
	}
	return *r.Takeover
}

// requestsPerCPU is how many requests the servers serve in a second of their CPU
// time.
func requestsPerCPU(r Result) (float64, bool) {
	if r.ServerCPU == nil || r.RequestsPerAcquire == nil || *r.ServerCPU <= 0 {
		return 0, false
	}
	return 1000 * *r.RequestsPerAcquire / *r.ServerCPU, true
}

// outage is the longest time without a grant of a key that a fault touched, whether
// clients waited meanwhile or were refused.
func outage(r Result) (longest float64, known bool) {
	for _, f := range r.Faults {
		longest = max(longest, float64(f.OutageNS))
	}
	return longest, longest > 0
}

// grantedToOthers counts the faults during which another client was granted a key
// of the client that they hit.
func grantedToOthers(r Result) (n float64, known bool) {
	for _, f := range r.Faults {
		if f.OthersGrantedNS > 0 {
			n++
		}
	}
	return n, len(r.Faults) > 0
}

func judged(r Result) bool { return r.Safety.Verdict == Safe || r.Safety.Verdict == Unsafe }

// unsafeShare is 1 or 0; its mean is the share of unsafe scenarios.
func unsafeShare(r Result) (float64, bool) {
	if r.Safety.Verdict == Unsafe {
		return 1, true
	}
	return 0, judged(r)
}

// codeLines counts the recipe's own lines, or with shared also those that the
// recipes of its backend share.
func codeLines(r Result, shared bool) (float64, bool) {
	switch {
	case r.CodeLines == nil:
		return 0, false
	case shared:
		return float64(r.CodeLines.Recipe + r.CodeLines.Shared), true
	}
	return float64(r.CodeLines.Recipe), true
}

func optional[T int64 | float64](p *T) (float64, bool) {
	if p == nil {
		return 0, false
	}
	return float64(*p), true
}

// ParseThreshold reads a metric, one of < <= > >=, and a value with the
// metric's unit.
func ParseThreshold(s string) (Threshold, error) {
	i := strings.IndexAny(s, "<>")
	if i < 0 {
		return Threshold{}, fmt.Errorf(`%q is no threshold; write "acquire.p99 < 20ms" or "throughput > 1000/s"`, s)
	}
	t := Threshold{Metric: strings.TrimSpace(s[:i]), Op: s[i : i+1]}
	value := s[i+1:]
	if rest, ok := strings.CutPrefix(value, "="); ok {
		t.Op, value = t.Op+"=", rest
	}
	value = strings.TrimSpace(value)
	m, err := ParseMetric(t.Metric)
	if err != nil {
		return Threshold{}, err
	}
	if t.Value, err = parseValue(m.unit, value); err != nil {
		return Threshold{}, fmt.Errorf("threshold of %s: %w", t.Metric, err)
	}
	return t, nil
}

func parseValue(unit, s string) (float64, error) {
	if unit == unitTime {
		d, err := parseTime(s)
		return float64(d), err
	}
	number := s
	if unit == unitRate {
		number = strings.TrimSuffix(s, "/s")
	}
	v, err := strconv.ParseFloat(number, 64)
	// The comparison is written so that NaN fails it.
	if err != nil || !(v >= 0 && v <= 1e15) {
		if unit == unitRate {
			return 0, fmt.Errorf(`%q is no rate; write it like "1000/s"`, s)
		}
		return 0, fmt.Errorf("%q is no number", s)
	}
	return v, nil
}

// String is what ParseThreshold reads.
func (t Threshold) String() string {
	return t.Metric + " " + t.Op + " " + metrics()[t.Metric].write(t.Value)
}

// write is a value with its metric's unit.
func (m Metric) write(v float64) string {
	number := strconv.FormatFloat(v, 'f', -1, 64)
	switch m.unit {
	case unitTime:
		return Duration(v).String()
	case unitRate:
		return number + "/s"
	}
	return number
}

// Measured is what r measured of the threshold's metric, with its unit, rounded
// for a reader. known is false if it did not.
func (t Threshold) Measured(r Result) (text string, known bool) {
	m, ok := metrics()[t.Metric]
	if !ok {
		return "", false
	}
	got, ok := m.read(r)
	if !ok {
		return "", false
	}
	return m.Text(got), true
}

// Text is a value of the metric with its unit, rounded for a reader.
func (m Metric) Text(v float64) string {
	if m.unit == unitTime {
		step := time.Duration(1)
		for step*1000 <= time.Duration(v) {
			step *= 10
		}
		return m.write(float64(time.Duration(v).Round(step)))
	}
	if math.Abs(v) >= 100 {
		return m.write(math.Round(v))
	}
	return m.write(math.Round(v*100) / 100)
}

// Check compares what r measured. known is false if r did not measure it: then
// the threshold is neither met nor missed.
func (t Threshold) Check(r Result) (met, known bool) {
	m, ok := metrics()[t.Metric]
	if !ok {
		return false, false
	}
	got, ok := m.read(r)
	if !ok {
		return false, false
	}
	switch t.Op {
	case "<":
		return got < t.Value, true
	case "<=":
		return got <= t.Value, true
	case ">":
		return got > t.Value, true
	case ">=":
		return got >= t.Value, true
	}
	return false, false
}
