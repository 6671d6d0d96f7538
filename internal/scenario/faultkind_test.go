package scenario_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/scenario"
)

// What is listed can be written, and what can be written is listed.
func TestEveryFaultIsListed(t *testing.T) {
	listed := map[string]bool{}
	for _, f := range chaos.Actions().Faults() {
		if listed[f.Name] || f.Summary == "" {
			t.Errorf("%s is listed twice, or has no summary", f.Name)
		}
		listed[f.Name] = true
		k, ok := chaos.ParseKind(f.Name)
		if !ok || k.String() != f.Name {
			t.Errorf("%s is listed and no fault: %+v", f.Name, k)
		}
	}
	var targets []string
	for _, e := range scenario.FaultTargets() {
		targets = append(targets, strings.ReplaceAll(e.Name, ":N", ":3"))
	}
	for _, target := range targets {
		for _, action := range chaos.Actions() {
			a := action.About()
			name := target + "-" + a.Name
			if _, ok := chaos.ParseKind(name); ok != listed[name] && target != "node:3" {
				t.Errorf("%s: listed %v, known %v", name, listed[name], ok)
			}
		}
	}
	for _, old := range []string{"holder-pause", "holder-kill", "step-pause", "step-kill"} {
		if !listed[old] {
			t.Errorf("%s is listed no more", old)
		}
	}
	if k, ok := chaos.ParseKind("node:2-slow-disk"); !ok || k.Target != "node:2" {
		t.Errorf("node:2-slow-disk: %+v %v", k, ok)
	}
	for _, wrong := range []string{"", "holder", "pause", "node:0-kill", "node:02-kill", "node:-kill", "each-kill", "follower-move", "node:1-move", "holder-flush", "leader-starve"} {
		if k, ok := chaos.ParseKind(wrong); ok {
			t.Errorf("%q is a fault: %+v", wrong, k)
		}
	}
}

func TestDefaultsOfEachAction(t *testing.T) {
	const ttl = 4 * time.Second
	for text, want := range map[string]scenario.Fault{
		"holder-cut":                    {For: scenario.Duration(2*ttl + 2*time.Second)},
		"next-waiter-pause":             {For: scenario.Duration(2*ttl + 2*time.Second)},
		"holder-cut-kill":               {For: scenario.Duration(2*ttl + 2*time.Second)},
		"leader-pause":                  {For: scenario.Duration(2*ttl + 2*time.Second)},
		"holder-clock":                  {For: scenario.Duration(2*ttl + 2*time.Second), By: scenario.Duration(ttl + time.Second)},
		"{kind: holder-clock, by: -3s}": {For: scenario.Duration(2*ttl + 2*time.Second), By: scenario.Duration(-3 * time.Second)},
		"leader-kill":                   {For: scenario.Duration(3 * time.Second)},
		"leader-restart":                {},
		"each-restart":                  {},
		"holder-reply-lost":             {},
		"leader-move":                   {},
		"holder-delay":                  {For: scenario.Duration(2*ttl + 2*time.Second), By: scenario.Duration(50 * time.Millisecond)},
		"{kind: holder-delay, by: 5ms, jitter: 1ms, for: 1s}": {For: scenario.Duration(time.Second), By: scenario.Duration(5 * time.Millisecond), Jitter: scenario.Duration(time.Millisecond)},
		"leader-slow-disk":                        {For: scenario.Duration(2*ttl + 2*time.Second), By: scenario.Duration(500 * time.Millisecond)},
		"holder-throttle":                         {For: scenario.Duration(2*ttl + 2*time.Second), Rate: 10_000},
		"{kind: leader-throttle, rate: 99}":       {For: scenario.Duration(2*ttl + 2*time.Second), Rate: 99},
		"{kind: leader-kill, step: held, nth: 3}": {For: scenario.Duration(3 * time.Second), Step: "held", Nth: 3},
		"{kind: holder-cut, after: 0.5}":          {For: scenario.Duration(2*ttl + 2*time.Second), After: 0.5},
		"{kind: cut, target: holder}":             {Kind: "holder-cut", For: scenario.Duration(2*ttl + 2*time.Second)},
		"{kind: slow-disk, target: 'node:2'}":     {Kind: "node:2-slow-disk", For: scenario.Duration(2*ttl + 2*time.Second), By: scenario.Duration(500 * time.Millisecond)},
	} {
		want.At = scenario.Duration(time.Second)
		if want.Kind == "" {
			want.Kind, _, _ = strings.Cut(strings.TrimPrefix(text, "{kind: "), ",")
		}
		sc := expand(t, parse(t, "name: t\nscenarios:\n  - {name: b, recipes: etcd/mutex, topology: quorum, clients: 6, workload: {kind: hot-key, hold: 3s}, faults: ["+text+"]}\n"))[0]
		if sc.Faults[0] != want {
			t.Errorf("%s: %+v, want %+v", text, sc.Faults[0], want)
		}
		if sc.Duration < sc.Faults[0].At+sc.Faults[0].For {
			t.Errorf("%s: lasts %s, without room for the fault", text, sc.Duration)
		}
		k, _ := chaos.ParseKind(want.Kind)
		workers := 2
		if k.OnClient() || k.About().Wire {
			workers = 6
		}
		if sc.Workers != workers {
			t.Errorf("%s: %d workers, want %d", text, sc.Workers, workers)
		}
	}
}

// What hits the servers one after another needs room for all of them.
func TestEachServerNeedsItsTime(t *testing.T) {
	last := map[string]time.Duration{}
	for _, kind := range []string{"leader-restart", "each-restart", "each-pause"} {
		sc := expand(t, parse(t, "name: t\nscenarios:\n  - {name: b, recipes: etcd/mutex, topology: quorum, workload: hot-key, faults: "+kind+"}\n"))[0]
		last[kind] = sc.Duration.D()
	}
	if last["each-restart"] < last["leader-restart"]+9*time.Second || last["each-pause"] < last["each-restart"]+3*10*time.Second {
		t.Errorf("durations %v", last)
	}
}

// A fault that repeats has its times written out, and what the seed decides is
// decided.
func TestRepeatedFaults(t *testing.T) {
	schedule := func(rest string) (at []string) {
		for _, f := range expand(t, parse(t, "name: t\nscenarios:\n  - {name: b, recipes: etcd/mutex, clients: 6, workload: hot-key, "+rest+"}\n"))[0].Faults {
			at = append(at, f.Kind+" "+f.At.String())
		}
		return at
	}
	for rest, want := range map[string]string{
		"faults: {kind: holder-reset, every: 2s, count: 3}":                                   "holder-reset 1s, holder-reset 3s, holder-reset 5s",
		"duration: 20s, faults: {kind: holder-reset, every: 5s}":                              "holder-reset 1s, holder-reset 6s, holder-reset 11s",
		"faults: {kind: holder-reset, every: 1h}":                                             "holder-reset 1s",
		"faults: [{kind: holder-reset, every: 2s, count: 2}, {kind: leader-restart, at: 2s}]": "holder-reset 1s, leader-restart 2s, holder-reset 3s",
	} {
		if got := strings.Join(schedule(rest), ", "); got != want {
			t.Errorf("%s: %s, want %s", rest, got, want)
		}
	}

	const within = "repeat: 12, faults: {kind: holder-reset, every: 3s, count: 2, within: 2s}"
	file := parse(t, "name: t\nscenarios:\n  - {name: b, recipes: etcd/mutex, clients: 6, workload: hot-key, "+within+"}\n")
	times := map[scenario.Duration]bool{}
	again := expand(t, file)
	for i, sc := range expand(t, file) {
		if !slices.Equal(sc.Faults, again[i].Faults) {
			t.Errorf("%s: %+v the first time, %+v the second", sc.Name, sc.Faults, again[i].Faults)
		}
		for n, f := range sc.Faults {
			if least := scenario.Duration(time.Second + time.Duration(n)*3*time.Second); f.At < least || f.At > least+scenario.Duration(2*time.Second) {
				t.Errorf("%s: number %d at %s", sc.Name, n, f.At)
			}
			times[f.At-scenario.Duration(time.Duration(n)*3*time.Second)] = true
		}
	}
	if len(times) < 20 {
		t.Errorf("24 draws gave %d different times", len(times))
	}
}

// A negative time is a clock's alone, and survives the way into a file and back.
func TestClocksJumpBackwards(t *testing.T) {
	list := expand(t, parse(t, "name: t\nscenarios:\n  - {name: b, recipes: etcd/mutex, workload: hot-key, faults: {kind: holder-clock, by: -1500ms}}\n"))
	text, err := scenario.MarshalSuite("t", 1, list)
	if err != nil {
		t.Fatal(err)
	}
	read, err := scenario.ParseResolved("suite.yaml", text, catalogue())
	if err != nil {
		t.Fatal(err)
	}
	if by := read.Scenarios[0].Faults[0].By; by.D() != -1500*time.Millisecond {
		t.Errorf("written as -1.5s, read as %s", by)
	}
	if d, err := scenario.ParseSigned("-1.5s"); err != nil || d.D() != -1500*time.Millisecond {
		t.Errorf("ParseSigned: %s, %v", d, err)
	}
	for _, s := range []string{"-", "--1s", "-5", "5"} {
		if d, err := scenario.ParseSigned(s); err == nil {
			t.Errorf("ParseSigned(%q) = %s", s, d)
		}
	}
}

// A server is named that there is not: refused with the number of those that
// there are, and where that is not known accepted.
func TestNoServerBeyondTheTopologys(t *testing.T) {
	facts := scenario.RecipeFacts{ID: "a/b", Backend: "a", Bound: "ttl", Topologies: []string{"single", "quorum"}}
	counted := facts
	counted.Nodes = func(string) int { return 3 }
	pair := facts
	pair.Nodes = func(string) int { return 2 }
	for _, c := range []struct {
		facts      scenario.RecipeFacts
		kind, want string
	}{
		{counted, "node:3-kill", ""},
		{counted, "node:4-kill", "there are 3 servers, and no node:4; write node:1 to node:3"},
		{counted, "minority-kill", ""},
		{counted, "leader-cut-peers", ""},
		{pair, "minority-kill", "there is no minority; aim at the leader or the follower"},
		{pair, "majority-kill", ""},
		{pair, "follower-kill", ""},
		{facts, "node:9-kill", ""},
	} {
		f := parse(t, "name: t\nscenarios:\n  - {name: b, recipes: a/b, topology: quorum, workload: hot-key, faults: "+c.kind+"}\n")
		_, err := f.Expand(scenario.NewCatalogue(chaos.Actions(), c.facts))
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.kind, err, c.want)
		}
	}
}

// A fault that servers do not support is rejected with the backend's reason.
func TestUnsupportedFaultsOfServers(t *testing.T) {
	facts := scenario.RecipeFacts{
		ID: "a/b", Backend: "a", Bound: "ttl", Topologies: []string{"single"},
		CanFault: func(topology string, k scenario.FaultKind, settings map[string]string) error {
			if k.About().Name == "evict" && settings["policy"] == "" {
				return errors.New("it never evicts")
			}
			return nil
		},
	}
	for rest, want := range map[string]string{
		"faults: leader-evict":                              "leader-evict on a single a: it never evicts",
		"faults: leader-evict, servers: {a: {policy: lru}}": "",
		"faults: leader-flush":                              "",
	} {
		f := parse(t, "name: t\nscenarios:\n  - {name: b, recipes: a/b, workload: hot-key, "+rest+"}\n")
		_, err := f.Expand(scenario.NewCatalogue(chaos.Actions(), facts))
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rest, err, want)
		}
	}
}
