package reports

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Experiments that differ in one time alone make a curve, and no others do.
func TestSweepsDrawCurves(t *testing.T) {
	var d scenario.Document
	add := func(group, ttl, hold string, clients int, faults ...scenario.FaultResult) {
		for _, recipe := range []string{"redis/token", "etcd/mutex"} {
			for repeat := range 3 {
				rate := 100 + float64(repeat)
				length := func(s string) time.Duration {
					d, err := time.ParseDuration(s)
					if err != nil {
						t.Fatal(err)
					}
					return d
				}
				d.Scenarios = append(d.Scenarios, scenario.Result{
					Name: fmt.Sprintf("%s-%s-%d-%d", group, recipe, clients, repeat), Group: group, Recipe: recipe, Topology: "single", Status: scenario.StatusDone, Clients: clients,
					Workload: scenario.Load{Kind: scenario.HotKey, Hold: scenario.Constant(length(hold)), Think: scenario.Constant(length(hold))}, TTL: scenario.Duration(length(ttl)),
					Throughput: &rate, Faults: faults,
				})
			}
		}
	}
	for _, ttl := range []string{"10s", "2s", "5s"} {
		add("hot-key-ttl-"+ttl, ttl, "1ms", 8)
		add("paused-"+ttl, ttl, "1ms", 8, scenario.FaultResult{Kind: "holder-pause"})
	}
	add("alone", "2s", "1ms", 1)
	add("hot-key-hold-5ms", "2s", "5ms", 8)
	es := experiments(d.Scenarios)
	var got []string
	for _, f := range sweeps(es, looks(es)) {
		x := f.plots[0].X
		got = append(got, fmt.Sprintf("%s: %s from %.3g to %.3g, %d curves", f.name, x.Label.Text, x.Min/0.9, x.Max/1.1, len(f.legend)))
	}
	want := "throughput-vs-ttl-hot-key-8-clients: TTL from 2 to 10, 2 curves; throughput-vs-hold-hot-key-8-clients: hold from 0.001 to 0.005, 2 curves"
	if strings.Join(got, "; ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "; "), want)
	}
}
