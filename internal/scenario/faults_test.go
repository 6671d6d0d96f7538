package scenario_test

import (
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

func TestFaultsBringTheirTimes(t *testing.T) {
	for text, want := range map[string]struct {
		at, long, duration time.Duration
	}{
		"faults: holder-pause":                                                      {time.Second, 10 * time.Second, 13 * time.Second},
		"faults: [holder-pause], ttl: 1s":                                           {time.Second, 4 * time.Second, 10 * time.Second},
		"faults: {kind: holder-pause, at: 3s, for: 12s}":                            {3 * time.Second, 12 * time.Second, 17 * time.Second},
		"faults: [holder-pause], duration: 13s":                                     {time.Second, 10 * time.Second, 13 * time.Second},
		"faults: [{kind: holder-pause, for: 0s}], duration: 1m":                     {time.Second, 10 * time.Second, time.Minute},
		"faults: holder-pause, workload: {kind: guarded-counter, hold: 5s}":         {time.Second, 10 * time.Second, 21 * time.Second},
		"faults: [holder-pause, {kind: holder-pause, at: 12s}]":                     {time.Second, 10 * time.Second, 24 * time.Second},
		"faults: holder-pause, workload: {kind: hot-key, hold: 'uniform(1s,2s)'}":   {time.Second, 10 * time.Second, 15 * time.Second},
		"faults: holder-pause, workload: {kind: hot-key, hold: exponential(500ms)}": {time.Second, 10 * time.Second, 16 * time.Second},
	} {
		if !strings.Contains(text, "workload") {
			text += ", workload: hot-key"
		}
		sc := expand(t, parse(t, "name: t\nscenarios:\n  - {name: b, recipes: etcd/mutex, clients: 6, "+text+"}\n"))[0]
		if f := sc.Faults[0]; f.At.D() != want.at || f.For.D() != want.long || sc.Duration.D() != want.duration {
			t.Errorf("%s: at %s for %s in %s, want %+v", text, f.At, f.For, sc.Duration, want)
		}
		if sc.Workers != 6 {
			t.Errorf("%s: %d workers for 6 clients", text, sc.Workers)
		}
	}
}

// A takeover brings its kill with it, within the lease of the first holder.
func TestTakeoverBringsItsFault(t *testing.T) {
	times := map[scenario.Duration]bool{}
	for _, sc := range expand(t, parse(t, "name: t\nscenarios:\n  - {name: b, recipes: etcd/mutex, clients: 32, ttl: 8s, workload: takeover, repeat: 20}\n")) {
		if len(sc.Faults) != 1 || sc.Faults[0].Kind != scenario.HolderKill || sc.Workers != 2 || sc.Workload.Keys != 16 {
			t.Fatalf("%s: %+v, %d workers, %d keys", sc.Name, sc.Faults, sc.Workers, sc.Workload.Keys)
		}
		at := sc.Faults[0].At
		times[at] = true
		if sc.Warmup != sc.TTL/2 || at < 0 || at >= sc.TTL/4 {
			t.Errorf("%s: warm-up %s, kill at %s", sc.Name, sc.Warmup, at)
		}
		if least := at + scenario.Duration(12*time.Second); sc.Duration != max(least, scenario.Duration(10*time.Second)) {
			t.Errorf("%s: %s, want room for a takeover of 10s and 2s after the kill at %s", sc.Name, sc.Duration, at)
		}
	}
	if len(times) < 10 {
		t.Errorf("20 seeds give %d different times", len(times))
	}
	none := expand(t, parse(t, "name: t\nscenarios:\n  - {name: b, recipes: etcd/mutex, workload: takeover, faults: []}\n"))[0]
	if len(none.Faults) != 0 || none.Workers != 2 {
		t.Errorf("without faults: %+v, %d workers", none.Faults, none.Workers)
	}
}
