package reports

import (
	"slices"

	"github.com/lockbench/lockbench/internal/scenario"
)

// stat is one number over the repeats of an experiment.
type stat struct {
	n             int // repeats that measured it
	med, min, max float64
}

// statOf summarises one number of several runs. The median of an even count is
// the mean of the two values in the middle.
func statOf(runs []scenario.Result, get func(scenario.Result) (float64, bool)) stat {
	var vs []float64
	for _, r := range runs {
		if r.Status != scenario.StatusDone {
			continue
		}
		if v, ok := get(r); ok {
			vs = append(vs, v)
		}
	}
	if len(vs) == 0 {
		return stat{}
	}
	slices.Sort(vs)
	m := len(vs) / 2
	s := stat{n: len(vs), min: vs[0], max: vs[len(vs)-1], med: vs[m]}
	if len(vs)%2 == 0 {
		s.med = (vs[m-1] + vs[m]) / 2
	}
	return s
}

// metric is a number of a result: how to get it, how to print it, and the JSON
// name under which the result has the reason if it is absent.
type metric struct {
	field  string
	get    func(scenario.Result) (float64, bool)
	format func(float64) string
}

func float(field string, format func(float64) string, get func(scenario.Result) *float64) metric {
	return metric{field, func(r scenario.Result) (float64, bool) {
		if p := get(r); p != nil {
			return *p, true
		}
		return 0, false
	}, format}
}

func latency(field string, of func(scenario.Result) *scenario.Latency, q func(*scenario.Latency) int64) metric {
	return metric{field, func(r scenario.Result) (float64, bool) {
		if l := of(r); l != nil && l.Count > 0 {
			return float64(q(l)), true
		}
		return 0, false
	}, nanos}
}

func p50(l *scenario.Latency) int64 { return l.P50 }
func p90(l *scenario.Latency) int64 { return l.P90 }
func p99(l *scenario.Latency) int64 { return l.P99 }
func top(l *scenario.Latency) int64 { return l.Max }

func acquire(r scenario.Result) *scenario.Latency  { return r.Acquire }
func response(r scenario.Result) *scenario.Latency { return r.Response }
func handoff(r scenario.Result) *scenario.Latency  { return r.Handoff }

// The metrics of the tables.
func mThroughput() metric {
	return float("throughput_per_s", rate, func(r scenario.Result) *float64 { return r.Throughput })
}
func mAcquire(q func(*scenario.Latency) int64) metric { return latency("acquire_ns", acquire, q) }
func mResponse(q func(*scenario.Latency) int64) metric {
	return latency("response_ns", response, q)
}
func mHandoff() metric { return latency("handoff_ns", handoff, p50) }
func mFairness() metric {
	return float("fairness_jain", func(v float64) string { return fixed2(v) }, func(r scenario.Result) *float64 { return r.FairnessJain })
}
func mRequests() metric {
	return float("requests_per_acquire", number, func(r scenario.Result) *float64 { return r.RequestsPerAcquire })
}
func mServerCPU() metric {
	return float("server_cpu_s_per_1000", number, func(r scenario.Result) *float64 { return r.ServerCPU })
}
func mClientCPU() metric {
	return float("client_cpu_s_per_1000", number, func(r scenario.Result) *float64 { return r.ClientCPU })
}

func mWoken() metric {
	return float("woken_per_release", number, func(r scenario.Result) *float64 { return r.WokenPerRelease })
}
func mTries() metric {
	return float("tries_per_s", rate, func(r scenario.Result) *float64 { return r.TriesPerSecond })
}
func mInversions() metric {
	return metric{"order_inversions", func(r scenario.Result) (float64, bool) {
		if p := r.OrderInversions; p != nil {
			return float64(*p), true
		}
		return 0, false
	}, func(v float64) string { return count(int64(v)) }}
}

// why is the reason for which runs have no number of that field.
func why(runs []scenario.Result, field string) string {
	for _, r := range runs {
		if s := r.Unmeasured[field]; s != "" {
			return clean(s)
		}
	}
	return noReason
}
