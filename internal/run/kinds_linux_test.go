package run

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/scenario"
)

// trial is one scenario and what it must come to.
type trial struct {
	name, recipe string
	settings     scenario.Settings
	check        func(t *testing.T, r scenario.Result)
}

// long bounds a load that is ended when it has shown enough.
const long = scenario.Duration(2 * time.Minute)

// shown ends a load when each of its faults has missed, or is over and followed by
// a grant, and the clients have acquired enough locks since. out is the run's
// Options.Out.
func shown(out string) func(scenario.Scenario, uint64) bool {
	var mu sync.Mutex
	since := map[string]uint64{} // locks acquired when the faults were over, by scenario
	return func(sc scenario.Scenario, acquired uint64) bool {
		mu.Lock()
		defer mu.Unlock()
		if _, over := since[sc.Name]; !over {
			if faultLogged(out, sc, "missed", "first_grant") < len(sc.Faults) {
				return false
			}
			since[sc.Name] = acquired
		}
		if sc.Workload.Kind == scenario.Takeover {
			return acquired >= uint64(sc.Clients) // each client acquires once
		}
		// As many as fit two seconds, but neither one nor very many.
		want := min(400, max(5, 2*time.Second/max(sc.Workload.Hold.A, time.Millisecond)))
		return acquired >= since[sc.Name]+uint64(want)
	}
}

// faultLogged counts such events in the fault log of a scenario under way.
func faultLogged(out string, sc scenario.Scenario, events ...string) (n int) {
	logs, err := filepath.Glob(filepath.Join(out, "*", scenario.DirScenarios, sc.Name, scenario.FileFaults))
	if err != nil || len(logs) != 1 {
		return 0
	}
	list, err := readFaultEvents(filepath.Dir(logs[0]))
	if err != nil {
		return 0
	}
	for _, e := range list {
		if slices.Contains(events, e.Event) {
			n++
		}
	}
	return n
}

// soFar judges what the clients of a scenario have recorded by now.
func soFar(out string, sc scenario.Scenario) scenario.Safety {
	dirs, err := filepath.Glob(filepath.Join(out, "*", scenario.DirScenarios, sc.Name))
	if err != nil || len(dirs) != 1 {
		return scenario.Safety{}
	}
	recipe, _ := all.Find(sc.Recipe)
	r, err := measure.Scenario(dirs[0], recipe.Info(), measure.Options{SkipLatencyFile: true})
	if err != nil { // a file is just being written: the next look has more
		return scenario.Safety{}
	}
	return r.Safety
}

// try carries all trials out in one run, so that they share their servers.
func try(t *testing.T, trials []trial) Outcome { return tryWith(t, trials, func(*Options) {}) }

// tryWith is try with options of its own.
func tryWith(t *testing.T, trials []trial, adjust func(*Options)) Outcome {
	t.Helper()
	var list []scenario.Scenario
	for _, tr := range trials {
		s := tr.settings
		if s.Warmup == 0 && s.Workload.Kind != scenario.Takeover && s.Workload.Kind != scenario.Properties {
			s.Warmup = scenario.Duration(100 * time.Millisecond)
		}
		sc := plan(t, []string{tr.recipe}, s)[0]
		sc.Name = tr.name
		list = append(list, sc)
	}
	o := options(t, list)
	if etcd := clustertest.Binary(t, "etcd"); etcd != "" {
		o.Binaries["etcd"] = etcd
	}
	o.enough = shown(o.Out)
	adjust(&o)
	out, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for i, tr := range trials {
		t.Run(tr.name, func(t *testing.T) {
			r := out.Document.Scenarios[i]
			if r.Status != scenario.StatusDone {
				t.Fatalf("%s: %s", r.Status, r.Reason)
			}
			tr.check(t, r)
			if t.Failed() {
				t.Logf("verdict %s, promise %s, liveness %s: %v; surprises %v, warnings %v, faults %+v", r.Safety.Verdict, r.Safety.Promise, r.Safety.Liveness, r.Safety.Why, r.Surprises, r.Warnings, r.Faults)
			}
		})
	}
	return out
}

// asExpected is the check of a lock that does what it should.
func asExpected(t *testing.T, r scenario.Result) {
	t.Helper()
	if r.AsExpected == nil || !*r.AsExpected || r.Acquired+r.Busy == 0 {
		t.Errorf("%s: not as expected; %d acquired", r.Recipe, r.Acquired)
	}
}

func load(kind string) scenario.Load {
	return scenario.Load{Kind: kind, Hold: scenario.Dist{Kind: scenario.DistConstant, A: 2 * time.Millisecond}}
}

// Every kind of load on a lock that is right, and those that find something on
// one that is wrong, whole runs through.
func TestLoads(t *testing.T) {
	t.Parallel()
	try(t, []trial{
		{"try-storm", "reference/mutex", scenario.Settings{Clients: []int{8}, Scenario: scenario.Scenario{Workload: load(scenario.TryStorm), Duration: long}}, func(t *testing.T, r scenario.Result) {
			asExpected(t, r)
			if r.Busy == 0 || r.Acquired == 0 {
				t.Errorf("%d tries held, %d busy", r.Acquired, r.Busy)
			}
		}},
		{"churn", "redis/token", scenario.Settings{Clients: []int{8}, Scenario: scenario.Scenario{Workload: load(scenario.Churn), Duration: long}}, func(t *testing.T, r scenario.Result) {
			asExpected(t, r)
			if r.Failed == 0 {
				t.Error("no client gave up")
			}
		}},
		{"reentrant", "redis/reentrant", scenario.Settings{Clients: []int{6}, Scenario: scenario.Scenario{Workload: load(scenario.Reentrant), Duration: long}}, asExpected},
		{"reentrant-naive", "mysql/insert-reentrant", scenario.Settings{Clients: []int{6}, Scenario: scenario.Scenario{Workload: load(scenario.Reentrant), Duration: long}}, func(t *testing.T, r scenario.Result) {
			if r.Safety.Verdict != scenario.Unsafe {
				t.Error("the inner release frees the outer hold, and the check does not show it")
			}
		}},
		{"batch", "redis/batch", scenario.Settings{Clients: []int{6}, Scenario: scenario.Scenario{Workload: load(scenario.Batch), Duration: long}}, asExpected},
		{"read-write", "zookeeper/read-write", scenario.Settings{Clients: []int{6}, Scenario: scenario.Scenario{Workload: load(scenario.ReadWrite), Duration: long}}, func(t *testing.T, r scenario.Result) {
			if r.Safety.Verdict != scenario.Safe || r.Safety.Liveness != scenario.Live {
				t.Error("readers that share the lock are taken for holders that exclude")
			}
		}},
	})
}

// A client killed by a fault is reported as such, and proves nothing against the
// lock.
func TestHolderKill(t *testing.T) {
	t.Parallel()
	ttl := scenario.Duration(4 * time.Second) // longer than a busy machine stalls
	out := try(t, []trial{
		{"killed", "reference/mutex", scenario.Settings{Clients: []int{4}, Faults: faults(scenario.Fault{Kind: scenario.HolderKill, At: scenario.Duration(200 * time.Millisecond)}), Scenario: scenario.Scenario{Workload: load(scenario.HotKey), TTL: ttl, Duration: long}},
			func(t *testing.T, r scenario.Result) {
				asExpected(t, r)
				if len(r.Faults) != 1 || r.Faults[0].Status != "effective" {
					t.Error("the kill was not effective")
				}
				if r.Takeover == nil || r.Takeover.Holds != 1 || r.Takeover.Granted != 1 {
					t.Errorf("takeover %+v, want one hold that passed on", r.Takeover)
				}
			}},
		{"again", "reference/mutex", scenario.Settings{
			Clients: []int{6},
			// The second kill must not take the first one's victim for a holder.
			Faults: faults(scenario.Fault{Kind: scenario.HolderKill, At: scenario.Duration(200 * time.Millisecond)}, scenario.Fault{Kind: scenario.HolderKill, At: scenario.Duration(250 * time.Millisecond)}), Scenario: scenario.Scenario{Workload: scenario.Load{Kind: scenario.Keys, Keys: 3, Hold: scenario.Dist{Kind: scenario.DistConstant, A: 5 * time.Millisecond}},
				TTL: ttl, Duration: long},
		}, func(t *testing.T, r scenario.Result) {
			asExpected(t, r)
			if len(r.Faults) != 2 || r.Faults[0].Status != "effective" || r.Faults[1].Status != "effective" || r.Faults[0].Target == r.Faults[1].Target {
				t.Error("the kills were not of two holders")
			}
		}},
		{"takeover", "reference/mutex", scenario.Settings{Clients: []int{8}, Scenario: scenario.Scenario{Workload: load(scenario.Takeover), TTL: ttl, Duration: long}},
			func(t *testing.T, r scenario.Result) {
				asExpected(t, r)
				if r.Takeover == nil || r.Takeover.Holds != 4 || r.Takeover.Granted != 4 {
					t.Errorf("takeover %+v, want four holds that passed on", r.Takeover)
				}
			}},
	})
	for name, clients := range map[string]int{"killed": 1, "takeover": 4} {
		dir := filepath.Join(out.Dir, scenario.DirScenarios, name)
		var samples scenario.Samples
		readJSON(t, filepath.Join(dir, scenario.FileSamples), &samples)
		killed := 0
		for _, w := range samples.Workers {
			switch {
			case w.Error != "":
				t.Errorf("%s: %+v", name, w)
			case w.Killed != "":
				killed++
				if w.Killed != "holder-kill-1" || len(w.Clients) != clients {
					t.Errorf("%s: killed %+v", name, w)
				}
			}
		}
		h, err := history.Read(filepath.Join(dir, scenario.FileHistory))
		if err != nil || killed != 1 {
			t.Fatalf("%s: %d workers killed, %v", name, killed, err)
		}
		open := 0
		for _, s := range h.Streams {
			if !s.Sealed {
				open++
			}
		}
		if open != clients || len(h.Damage) > 0 {
			t.Errorf("%s: %d streams without an end, want %d; damage %v", name, open, clients, h.Damage)
		}
	}
}

// Faults at named steps hit a client at that step; a step that no client reaches
// is a miss.
func TestStepFaults(t *testing.T) {
	t.Parallel()
	ttl := scenario.Duration(4 * time.Second)
	at := scenario.Duration(200 * time.Millisecond)
	effective := func(t *testing.T, r scenario.Result) {
		if len(r.Faults) != 1 || r.Faults[0].Status != "effective" {
			t.Error("the fault was not effective")
		}
		if r.Safety.Verdict != scenario.Safe || r.Safety.Liveness != scenario.Live {
			t.Error("a waiter that stands still, or dies, is no harm to the right lock")
		}
	}
	spec := func(kind, step string) []scenario.FaultSpec {
		return faults(scenario.Fault{Kind: kind, At: at, Step: step})
	}
	short := spec("step-pause", "waiting")
	short[0].For = scenario.Duration(500 * time.Millisecond)
	out := try(t, []trial{
		{"pause", "reference/mutex", scenario.Settings{Clients: []int{4}, Faults: short, Scenario: scenario.Scenario{Workload: load(scenario.HotKey), TTL: ttl, Duration: long}}, effective},
		{"kill", "reference/mutex", scenario.Settings{Clients: []int{4}, Faults: spec("step-kill", "waiting"), Scenario: scenario.Scenario{Workload: load(scenario.HotKey), TTL: ttl, Duration: long}}, effective},
		// The recipe has the step of those that are woken, and polls. The fault waits
		// for it until the end.
		{"no client", "reference/mutex", scenario.Settings{Clients: []int{4}, Faults: spec("step-kill", "woken"), Scenario: scenario.Scenario{Workload: load(scenario.HotKey), TTL: scenario.Duration(300 * time.Millisecond), Duration: scenario.Duration(2500 * time.Millisecond)}}, func(t *testing.T, r scenario.Result) {
			if r.Faults[0].Status != "missed" || !strings.Contains(r.Faults[0].Reason, `no client came to the step "woken"`) || r.AsExpected != nil && *r.AsExpected {
				t.Errorf("as expected is %v", r.AsExpected)
			}
		}},
	})
	for name, want := range map[string]string{"pause": "armed injected heal_started healed first_grant", "kill": "armed injected effective first_grant"} {
		var got []string
		for _, e := range faultEvents(t, filepath.Join(out.Dir, scenario.DirScenarios, name)) {
			got = append(got, e.Event)
			if e.Step != "waiting" || e.Event != "armed" && (e.Client == nil || e.Key == nil || e.Attempt == "" || e.PID == 0 && e.Event != "first_grant") {
				t.Errorf("%s: %+v", name, e)
			}
		}
		if words := strings.Join(got, " "); words != want {
			t.Errorf("%s: events %q, want %q", name, words, want)
		}
	}
}

// A load that the recipe cannot serve is refused in so many words, also where
// no validation stood in the way.
func TestUnsupportedLoad(t *testing.T) {
	list := plan(t, []string{"reference/mutex"}, scenario.Settings{Clients: []int{2}, Scenario: scenario.Scenario{Workload: load(scenario.HotKey)}})
	list[0].Workload.Kind, list[0].Workload.Depth = scenario.Reentrant, 2
	out, err := Run(t.Context(), options(t, list))
	if err != nil {
		t.Fatal(err)
	}
	if r := out.Document.Scenarios[0]; r.Status != scenario.StatusFailed || !strings.Contains(r.Reason, "reference/mutex cannot let its holder lock again: "+errors.ErrUnsupported.Error()) {
		t.Errorf("%s: %s", r.Status, r.Reason)
	}
}

// Properties are measured, as promised, and written; there is no load.
func TestProperties(t *testing.T) {
	out := try(t, []trial{
		{"properties", "reference/mutex", scenario.Settings{Scenario: scenario.Scenario{Workload: scenario.Load{Kind: scenario.Properties}, TTL: scenario.Duration(time.Second)}}, func(t *testing.T, r scenario.Result) {
			if r.AsExpected == nil || !*r.AsExpected || len(r.Properties) != len(impls.Properties()) {
				t.Errorf("as expected: %v; %d properties", r.AsExpected, len(r.Properties))
			}
			for _, p := range r.Properties {
				t.Logf("%s: promised %s, measured %s: %s", p.Property, p.Promised, p.Measured, p.Evidence)
			}
		}},
	})
	var list []scenario.Property
	readJSON(t, filepath.Join(out.Dir, scenario.DirScenarios, "properties", scenario.FileProperties), &list)
	for i, known := range impls.Properties() {
		if p := list[i]; p.Property != string(known.Property) || p.Claim != known.Claim || p.Evidence == "" {
			t.Errorf("%+v, want %s", p, known.Property)
		}
	}
}

// Ctrl-C while a client is stopped at a step: the client goes on, and all
// processes end.
func TestInterruptedAtAStep(t *testing.T) {
	list := plan(t, []string{"reference/mutex"}, scenario.Settings{
		Clients: []int{4},
		Faults:  faults(scenario.Fault{Kind: "step-pause", Step: "waiting", For: scenario.Duration(time.Hour)}), Scenario: scenario.Scenario{Workload: load(scenario.HotKey), Duration: scenario.Duration(3 * time.Hour)},
	})
	o := options(t, list)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o.Progress = &onTick{do: func(uint64) {
		logs, err := filepath.Glob(filepath.Join(o.Out, "*", scenario.DirScenarios, "*", scenario.FileFaults))
		if err == nil && len(logs) == 1 && len(faultEvents(t, filepath.Dir(logs[0]))) > 1 {
			cancel()
		}
	}}
	out, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(out.Dir, scenario.DirScenarios, list[0].Name)
	var got []string
	for _, e := range faultEvents(t, dir) {
		got = append(got, e.Event)
	}
	if words := strings.Join(got, " "); words != "armed injected heal_started healed" {
		t.Errorf("events %q", words)
	}
	var samples scenario.Samples
	readJSON(t, filepath.Join(dir, scenario.FileSamples), &samples)
	for _, w := range samples.Workers {
		if w.Error != "" || w.Killed != "" {
			t.Errorf("%+v", w)
		}
	}
	nothingIn(t, o.Temp)
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// faultEvents reads the fault log of a scenario's folder.
func faultEvents(t testing.TB, dir string) []scenario.FaultEvent {
	t.Helper()
	list, err := readFaultEvents(dir)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func readFaultEvents(dir string) (list []scenario.FaultEvent, err error) {
	f, err := os.Open(filepath.Join(dir, scenario.FileFaults))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for in := json.NewDecoder(f); in.More(); {
		var e scenario.FaultEvent
		if err := in.Decode(&e); err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}
