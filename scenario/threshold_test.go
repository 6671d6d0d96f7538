package scenario_test

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/scenario"
)

func TestThresholds(t *testing.T) {
	throughput, fairness := 1000.0, 0.9
	var recovery int64 = 2_000_000_000
	measured := scenario.Result{
		Acquire:    &scenario.Latency{P50: 1_000_000, P99: 20_000_000, Mean: 1.5e6, Count: 10},
		Release:    &scenario.Latency{},
		Throughput: &throughput, FairnessJain: &fairness, RecoveryNS: &recovery,
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
