package scenario_test

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Any bytes parse to a suite or an Invalid; and a suite can be expanded, written
// and read back the same.
func FuzzParseFile(f *testing.F) {
	suites, err := filepath.Glob("../../suites/*.yaml")
	if err != nil || len(suites) == 0 {
		f.Fatalf("no suites to begin with: %v", err)
	}
	for _, name := range suites {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, seed := range []string{
		"", "a", "- a", "name: [", "name: &a x\nscenarios: *a", "name: t\nscenarios:\n  - <<: {x: 1}\n", "? a\n: b\n", "a: !!int x", "{a: {b: [1, .inf, ~]}}",
		"name: t\nscenarios: {name: b, recipes: etcd/mutex, workload: hot-key, faults: holder-pause, expect: {thresholds: throughput > 1/s}}\n",
		"name: t\nscenarios: {name: b, recipes: etcd/mutex, workload: hot-key, faults: [{kind: clock, target: holder, by: -3s, every: 1s, count: 3, within: 2s}, {kind: leader-delay, jitter: 1ms, step: held, nth: 2}]}\n",
		"name: t\nscenarios: {name: b, recipes: etcd/mutex, servers: {etcd: {a: |\n   x\n   y\n}}, workload: {kind: keys, arrival: poisson, rate: 1e-300}}\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := scenario.ParseFile("f.yaml", data, chaos.Actions())
		if err != nil {
			if !errors.Is(err, scenario.ErrInvalid) || err.Error() == "" {
				t.Fatalf("not an Invalid: %v", err)
			}
			return
		}
		all, err := file.Expand(nil)
		if err != nil {
			t.Fatalf("accepted, and then not expanded: %v", err)
		}
		if _, err := file.Expand(catalogue()); err != nil && !errors.Is(err, scenario.ErrInvalid) {
			t.Fatalf("not an Invalid: %v", err)
		}
		text, err := scenario.MarshalSuite(file.Name, file.Seed, all)
		if err != nil {
			t.Fatal(err)
		}
		back, err := scenario.ParseResolved("suite.yaml", text, nil)
		if err != nil {
			t.Fatalf("written, and then not read: %v\n%s", err, text)
		}
		if !reflect.DeepEqual(back.Scenarios, all) || back.Suite != file.Name || back.Seed != file.Seed {
			t.Fatalf("changed on its way through the file:\n%+v\n%+v\n%s", all, back.Scenarios, text)
		}
	})
}
