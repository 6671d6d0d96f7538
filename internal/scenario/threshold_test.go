package scenario_test

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

func TestThresholds(t *testing.T) {
	throughput, fairness := 1000.0, 0.9
	var recovery int64 = 2_000_000_000
	measured := scenario.Result{
		Acquire:    &scenario.Latency{P50: 1_000_000, P99: 20_000_000, Mean: 1.5e6, Count: 10},
		Release:    &scenario.Latency{},
		Throughput: &throughput, FairnessJain: &fairness, RecoveryNS: &recovery,
		Failed: 3, WokenPerRelease: &fairness,
		Takeover: &scenario.TakeoverTimes{
			Holds: 2, Granted: 2,
			FromDeath: &scenario.Latency{P50: 2_000_000_000, Max: 3_000_000_000, Count: 2}, Lifetime: &scenario.Latency{P99: 4_000_000_000, Count: 2},
		},
	}
	for text, want := range map[string]struct{ met, known bool }{
		"acquire.p99 < 20ms":         {false, true},
		"acquire.p99 <= 20ms":        {true, true},
		"acquire.p99<20.000001ms":    {true, true},
		"acquire.p50 > 500us":        {true, true},
		"acquire.mean >= 2ms":        {false, true},
		"throughput > 1000/s":        {false, true},
		"throughput >= 1000":         {true, true},
		"fairness > 0.8":             {true, true},
		"recovery < 3s":              {true, true},
		"takeover.max < 2s":          {false, true},
		"lifetime.p99 < 4.1s":        {true, true},
		"failed < 3":                 {false, true},
		"busy < 1":                   {true, true},
		"woken < 2":                  {true, true},
		"order_inversions < 1":       {false, false}, // no queue
		"handoff.p99 < 1h":           {false, false}, // not measured
		"release.p99 < 1h":           {false, false}, // no sample
		"requests_per_acquire < 100": {false, false},
	} {
		th, err := scenario.ParseThreshold(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if met, known := th.Check(measured); met != want.met || known != want.known {
			t.Errorf("%s: met %t, known %t; want %+v", text, met, known, want)
		}
		if got, known := th.Measured(measured); known != want.known || known && got == "" {
			t.Errorf("%s: measured %q, %t", text, got, known)
		}
		if again, err := scenario.ParseThreshold(th.String()); err != nil || again != th {
			t.Errorf("%s is written as %s, which reads as %+v, %v", text, th, again, err)
		}
	}
	for text, want := range map[string]string{
		"acquire.p99":           "is no threshold",
		"acquire.p99 = 20ms":    "is no threshold",
		"acquire.p99 < 20":      "no unit",
		"acquire.p99 < ":        "empty",
		"throughput > fast":     "is no rate",
		"throughput > NaN":      "is no rate",
		"fairness > 1e300":      "is no number",
		"fairnes > 0.9":         "did you mean fairness?",
		"throughput > 1000/s/s": "is no rate",
	} {
		if _, err := scenario.ParseThreshold(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q in it", text, err, want)
		}
	}
}

// The times of those takeovers that came say nothing good of one that never
// came.
func TestThresholdOfTakeovers(t *testing.T) {
	th, err := scenario.ParseThreshold("takeover.p99 < 10s")
	if err != nil {
		t.Fatal(err)
	}
	times := &scenario.TakeoverTimes{Holds: 3, Granted: 2, FromDeath: &scenario.Latency{P99: 1_000_000_000, Count: 2}, UnansweredNS: 60_000_000_000}
	if met, known := th.Check(scenario.Result{Takeover: times}); met || known {
		t.Errorf("one of three keys was never granted, and yet the threshold is met (%t) or known (%t)", met, known)
	}
	times.Granted = 3
	if met, _ := th.Check(scenario.Result{Takeover: times}); !met {
		t.Error("all were granted within a second, and yet the threshold is not met")
	}
}
