package scenario_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/scenario"
)

// The whole text of errors: place, field, what is wrong, what to do.
// The first line of each file is its line 1.
func TestErrorsHavePlaceFieldAndHint(t *testing.T) {
	for _, c := range []struct{ name, file, want string }{
		{"several at once", `name: my suite
seed: -1
defaults:
  tll: 4s
scenarios:
  - name: a
    recipes: [redis/token]
    workload:
      kind: hot-key
      hold: 5
    clients: [1, two]
    duration: 1h 2m
`, `
t.yaml:2:7: seed: "-1" is not a whole number, 0 or more
t.yaml:4:3: defaults.tll: no such field; did you mean ttl?
t.yaml:10:13: scenarios[0].workload.hold: "5" has no unit; write 5ms or 5s, for example
t.yaml:11:18: scenarios[0].clients[1]: "two" is not a whole number
t.yaml:12:15: scenarios[0].duration: "1h 2m" is not a time; write it like "1.5s", "20ms" or "250us"`},

		{"values that contradict each other", `name: my suite
defaults:
  workload: {kind: hot-key, zipf_s: 2}
scenarios:
  - name: a
    recipes: [redis/token]
    clients: [8, 1]
    faults: holder-pause
  - name: a
    recipes: []
`, `
t.yaml:1:7: name: invalid suite name "my suite"; use lower-case letters, digits and hyphens, 50 at most
t.yaml:3:37: defaults.workload.zipf_s: an exponent without zipf; add distribution: zipf, or leave zipf_s out
t.yaml:7:18: scenarios[0].clients[1]: holder-pause needs a second client, who wants the lock meanwhile; write 2 or more
t.yaml:9:11: scenarios[1].name: a second scenario named "a"; give each its own name`},

		{"what is missing", `name: t
scenarios:
  - name: a
    clients: 3
`, `
t.yaml:3:5: scenarios[0].recipes: missing recipes; write "recipes: [redis/token]", for example; lockbench list recipes shows all`},

		{"a tab", "name: t\nscenarios:\n\t- name: a\n", `
t.yaml:3:1: not YAML: the line has a tab; use spaces, not tabs`},
		{"not YAML", "name: t\nscenarios: [\n", `
t.yaml:2:12: not YAML: sequence end token ']' not found`},

		{"unknown names", `name: t
scenarios:
  - name: a
    recipes: [redis/tokn, mutex, redis/token]
    workload: hotkey
    environment: cloud
    topology: quorum
    faults: [{kind: holder-puase}]
`, `
t.yaml:5:15: scenarios[0].workload.kind: no workload "hotkey"; did you mean hot-key?
t.yaml:6:18: scenarios[0].environment: invalid environment "cloud"; choose process, docker or external
t.yaml:8:21: scenarios[0].faults[0].kind: no fault "holder-puase"; did you mean holder-pause?`},

		{"unknown recipes", `name: t
scenarios:
  - name: a
    recipes: [redis/tokn, mutex, redis/token]
    workload: hot-key
    topology: [quorum, single]
    expect_for:
      redis/token: {verdict: unsafe}
`, `
t.yaml:4:15: scenarios[0].recipes[0]: no recipe "redis/tokn"; did you mean redis/token?
t.yaml:4:27: scenarios[0].recipes[1]: no recipe "mutex"; did you mean etcd/mutex?
t.yaml:6:15: scenarios[0].topology: redis/token does not run on "quorum"; it runs on single`},

		{"a lease from the defaults that a backend cannot serve", `name: t
defaults:
  ttl: 1500ms
scenarios:
  - {name: a, workload: hot-key, recipes: [redis/token, memcached/cas, zookeeper/sequence]}
`, `
t.yaml:3:8: defaults.ttl: memcached/cas cannot serve a lease of 1.5s: it keeps whole seconds only
t.yaml:3:8: defaults.ttl: zookeeper/sequence: sessions last 4s at least`},
	} {
		f, err := scenario.ParseFile("t.yaml", []byte(c.file), chaos.Actions())
		if err == nil {
			_, err = f.Expand(catalogue())
		}
		var invalid *scenario.Invalid
		if !errors.Is(err, scenario.ErrInvalid) || !errors.As(err, &invalid) {
			t.Errorf("%s: %v is no Invalid", c.name, err)
			continue
		}
		if got, want := err.Error(), strings.TrimPrefix(c.want, "\n"); got != want {
			t.Errorf("%s:\n got\n%s\nwant\n%s", c.name, got, want)
		}
	}
}

// Every check with something that it must reject, and most with something similar
// that it must accept.
func TestEveryCheck(t *testing.T) {
	everyCheck(t, []checked{
		{"workload: hot-key", good, ""},
		{"clients: 5", bad, "workload.kind: missing workload; choose uncontended, hot-key,"},
		{"workload: {hold: 1ms}", bad, "missing workload"},
		{"workload: hot-key, clients: 0", bad, "clients[0]: 0 is out of range; write 1 to 10000"},
		{"workload: hot-key, clients: 10001", bad, "write 1 to 10000"},
		{"workload: hot-key, clients: []", bad, "clients: an empty list"},
		{"workload: hot-key, clients: [2, 3, 2]", bad, "clients[2]: 2 is listed twice"},
		{"workload: hot-key, topology: [single, single]", bad, "topology[1]: \"single\" is listed twice"},
		{"workload: hot-key, topology: []", bad, "topology: an empty list"},
		{"workload: hot-key, repeat: 0", bad, "repeat: 0 repeats"},
		{"workload: hot-key, repeat: -3", bad, "repeat: -3 repeats"},
		{"workload: hot-key, repeat: 1000000000", bad, "at most 4000 can be run"},
		{"workload: hot-key, duration: 0s", bad, "duration: 0s is out of range; write more than 0s, such as 10s"},
		{"workload: hot-key, warmup: 0s", good, ""},
		{"workload: hot-key, warmup: -1s", bad, `warmup: "-1s" is negative`},
		{"workload: hot-key, ttl: 0s", bad, "ttl: 0s is out of range; write more than 0s, such as 4s"},
		{"workload: hot-key, timeout: 0s", bad, "timeout: 0s is out of range; write more than 0s, such as 2s"},
		{"workload: hot-key, poll: 15ms..5ms", bad, "poll: "},
		{"workload: hot-key, poll: 1ms", good, ""},
		{"workload: hot-key, environment: process", good, ""},
		{"workload: hot-key, environment: docker", good, ""},
		{"workload: hot-key, environment: docker", good, ""},
		{"workload: hot-key, environment: docker, wire: kernel", bad, `wire: the kernel can drop packets only between clients and servers that are processes`},
		{"workload: hot-key, environment: external", good, ""},
		{"workload: properties, environment: external", bad, `workload.kind: the workload properties stops servers`},
		{"workload: hot-key, environment: external, wire: kernel", bad, `wire: the kernel can drop packets only to servers that lockbench started`},
		{"workload: hot-key, environment: external, servers: {etcd: {snapshot-count: '9'}}", bad, `servers: lockbench changes no settings of external servers`},
		{"workload: hot-key, environment: cloud", bad, `environment: invalid environment "cloud"; choose process, docker or external`},
		{"workload: hot-key, topology: quorum", good, ""},
		{"workload: hot-key, topology: " + strings.Repeat("x", 61), bad, "is too long for a topology"},
		{"workload: hot-key, recipes: " + strings.Repeat("a/b ", 20), bad, "is too long for a recipe's id"},
		{"workload: hot-key, topology: sharded", bad, `etcd/mutex does not run on "sharded"; it runs on single, quorum`},

		{"workload: {kind: hot-key, keys: 1}", good, ""},
		{"workload: {kind: hot-key, keys: 2}", bad, "workload.keys: hot-key has one key, not 2"},
		{"workload: {kind: uncontended, keys: 16}", good, ""},
		{"workload: {kind: uncontended, keys: 3}", bad, "workload.keys: uncontended gives each of the 16 clients its own key"},
		{"workload: {kind: keys, keys: 0}", bad, "workload.keys: 0 is out of range; write 1 to 1000000"},
		{"workload: {kind: guarded-counter, keys: 4}", good, ""},
		{"workload: {kind: keys, keys: 1000001}", bad, "write 1 to 1000000"},
		{"workload: {kind: keys, distribution: zipf, zipf_s: 1.01}", good, ""},
		{"workload: {kind: keys, distribution: zipf, zipf_s: 1}", bad, "workload.zipf_s: the exponent of zipf must be more than 1"},
		{"workload: {kind: keys, distribution: zipf, zipf_s: .nan}", bad, "workload.zipf_s"},
		{"workload: {kind: keys, zipf_s: 2}", bad, "workload.zipf_s: an exponent without zipf"},
		{"workload: {kind: keys, distribution: pareto}", bad, `workload.distribution: invalid distribution "pareto"; choose uniform or zipf`},
		{"workload: {kind: hot-key, distribution: uniform}", bad, "workload.distribution: the workload hot-key has no distribution; use the workload keys, or leave distribution out"},
		{"workload: {kind: hot-key, rate: 5}", bad, "workload.rate: a closed loop has no rate"},
		{"workload: {kind: hot-key, max_in_flight: 5}", bad, "workload.max_in_flight: a closed loop has one acquire in flight"},
		{"workload: {kind: hot-key, arrival: poisson}", bad, "workload.rate: poisson arrivals need a rate"},
		{"workload: {kind: hot-key, arrival: constant, rate: -1}", bad, "workload.rate: constant arrivals need a rate"},
		{"workload: {kind: hot-key, arrival: constant, rate: .inf}", bad, "workload.rate"},
		{"workload: {kind: hot-key, arrival: constant, rate: 5, max_in_flight: 0}", bad, "workload.max_in_flight: 0 in flight"},
		{"workload: {kind: hot-key, arrival: constant, rate: 5, think: 1ms}", bad, "workload.think: an open loop does not wait"},
		{"workload: {kind: hot-key, arrival: constant, rate: 5, think: 0s}", good, ""},
		{"workload: {kind: hot-key, arrival: bursts}", bad, `workload.arrival: invalid arrival "bursts"; choose closed, constant or poisson`},
		{"workload: {kind: hot-key, guard: both}", bad, "workload.guard: the workload hot-key has no guard; use the workload guarded-counter, or leave guard out"},
		{"workload: {kind: guarded-counter, guard: fenced}", good, ""},
		{"workload: {kind: guarded-counter, guard: some}", bad, `workload.guard: invalid guard "some"; choose plain, fenced or both`},
		{"workload: {kind: guarded-counter, guard: fenced}, recipes: redis/token", bad, "workload.guard: redis/token has no fencing tokens"},
		{"workload: {kind: guarded-counter, guard: both}, recipes: redis/token", bad, "workload.guard: redis/token has no fencing tokens"},
		{"workload: {kind: guarded-counter, guard: plain}, recipes: redis/token", good, ""},
		{"workload: {kind: hot-key, hold: -1ms}", bad, "workload.hold"},

		{"workload: hot-key, faults: holder-pause", good, ""},
		{"workload: keys, faults: holder-pause", good, ""},
		{"workload: uncontended, faults: holder-pause", bad, "workload.kind: holder-pause needs clients who want the same key"},
		{"workload: hot-key, faults: holder-pause, clients: 1", bad, "clients[0]: holder-pause needs a second client"},
		{"workload: hot-key, faults: {kind: holder-pause, for: 9999ms}", bad, "faults[0].for: a pause of 9.999s is too short to outlive a lease of 4s for certain; write 10s or more"},
		{"workload: hot-key, faults: {kind: holder-pause, for: 10s}", good, ""},
		{"workload: hot-key, faults: holder-pause, duration: 12999ms", bad, "for holder-pause, which ends at 11s, and the recovery after it; write 13s or more"},
		{"workload: hot-key, faults: holder-pause, duration: 13s", good, ""},
		{"workload: hot-key, faults: [holder-pause, holder-pause]", bad, "faults[1].at: begins at 1s, before holder-pause at 1s has ended, and both stop clients' processes; write 11s or later"},
		{"workload: hot-key, faults: [holder-pause, {kind: holder-pause, at: 11s}]", good, ""},
		{"workload: hot-key, faults: [clock-skew]", bad, `faults[0].kind: no fault "clock-skew"; lockbench list faults shows them all`},
		{"workload: hot-key, workers: 0", bad, "workers: 0 worker processes"},
		{"workload: hot-key, workers: 17", bad, "workers: 17 worker processes for 16 clients"},
		{"workload: hot-key, workers: 16", good, ""},
		{"workload: hot-key, workers: 2, faults: holder-pause", bad, "workers: holder-pause hits a whole process"},
		{"workload: hot-key, workers: 16, faults: holder-pause", good, ""},

		{"workload: hot-key, faults: holder-kill", good, ""},
		{"workload: hot-key, faults: {kind: holder-kill, for: 1s}", bad, "faults[0].for: holder-kill has no end: what is killed stays dead; leave it out"},
		{"workload: {kind: hot-key, arrival: constant, rate: 5}, faults: holder-kill", bad, "workload.arrival: a process that is killed takes its record of arrivals with it; leave it out"},
		{"workload: {kind: hot-key, arrival: constant, rate: 5}, faults: holder-pause", good, ""},
		{"workload: hot-key, faults: holder-kill, workers: 2", bad, "workers: holder-kill hits a whole process"},
		{"workload: hot-key, faults: holder-kill, clients: 1", bad, "holder-kill needs a second client"},
		{"workload: hot-key, faults: [holder-kill, holder-kill], clients: 2", bad, "clients[0]: the kill faults leave no client alive: 2 of 2 are killed; write 3 or more"},
		{"workload: hot-key, faults: [holder-kill, holder-kill], clients: 3", good, ""},
		// etcd/mutex frees a dead client's lock within 6 s.
		{"workload: hot-key, faults: holder-kill, duration: 8999ms", bad, "for holder-kill, which ends at 1s, and the recovery after it; write 9s or more"},
		{"workload: hot-key, faults: holder-kill, duration: 9s", good, ""},
		{"workload: hot-key, faults: {kind: step-pause, step: queued}", good, ""},
		{"workload: hot-key, faults: {kind: step-pause, step: queued, for: 1ms}", good, ""},
		{"workload: hot-key, faults: step-pause", bad, "faults[0].step: step-pause needs the name of a step; lockbench list recipes etcd/mutex shows them; there are acquiring, held, releasing besides"},
		{"workload: hot-key, faults: {kind: step-kill, step: queud}", bad, `faults[0].step: etcd/mutex has no step "queud"; did you mean queued?`},
		{"workload: hot-key, faults: {kind: step-kill, step: queued}", good, ""},
		{"workload: hot-key, faults: {kind: step-kill, step: queued, for: 1s}", bad, "faults[0].for: step-kill has no end"},
		{"workload: hot-key, faults: {kind: step-kill, step: anything}, recipes: redis/token", good, ""}, // its steps are not known
		{"workload: hot-key, faults: {kind: holder-pause, step: queued}", good, ""},                      // a holder, while another stands there

		{"workload: try-storm", good, ""},
		{"workload: try-storm, recipes: mysql/insert", bad, "workload.kind: mysql/insert cannot serve the workload try-storm: unsupported operation; lockbench list recipes shows which have the property nonblocking"},
		{"workload: {kind: try-storm, keys: 2}", bad, "workload.keys: try-storm has one key, not 2"},
		{"workload: {kind: try-storm, acquire_limit: 1s}", bad, "workload.acquire_limit: a try does not wait"},
		{"workload: hot-key, recipes: redis/token, lock_delay: 5s", bad, "lock_delay: redis/token has no lock delay; leave it out"},
		{"workload: read-write", bad, "workload.kind: etcd/mutex cannot serve the workload read-write: unsupported operation; lockbench list recipes shows which have the property read-write"},
		{"workload: batch", bad, "workload.kind: etcd/mutex cannot serve the workload batch: unsupported operation"},
		{"workload: {kind: read-write, readers: 0.5}, recipes: redis/token", good, ""}, // its properties are not known
		{"workload: {kind: read-write, readers: 0}, recipes: redis/token", good, ""},
		{"workload: {kind: read-write, readers: 1.1}", bad, "workload.readers: 1.1 is out of range; write 0 to 1"},
		{"workload: {kind: read-write, readers: .nan}", bad, "workload.readers"},
		{"workload: {kind: hot-key, readers: 0.5}", bad, "workload.readers: the workload hot-key has no readers; use the workload read-write, or leave readers out"},
		{"workload: {kind: reentrant, depth: 3}", good, ""},
		{"workload: {kind: reentrant, depth: 1}", bad, "workload.depth: 1 is out of range; write 2 to 100"},
		{"workload: {kind: reentrant, depth: 101}", bad, "workload.depth"},
		{"workload: {kind: hot-key, depth: 2}", bad, "workload.depth: the workload hot-key has no depth; use the workload reentrant, or leave depth out"},
		{"workload: {kind: batch, keys: 3, batch: 3}, recipes: redis/token", good, ""},
		{"workload: {kind: batch, keys: 3, batch: 4}", bad, "workload.batch: a batch of 4 of 3 keys"},
		{"workload: {kind: batch, batch: 0}", bad, "workload.batch: 0 is out of range; write 1 to 100"},
		{"workload: {kind: hot-key, batch: 2}", bad, "workload.batch: the workload hot-key has no batch; use the workload batch, or leave batch out"},
		{"workload: {kind: hot-key, connections: 4}", good, ""},
		{"workload: {kind: hot-key, connections: -1}", bad, "workload.connections: -1 is out of range; write 0 to 10000"},
		{"workload: {kind: churn, acquire_limit: 5ms}", good, ""},
		{"workload: {kind: churn, acquire_limit: 0s}", bad, "workload.acquire_limit: churn needs a limit for its waits"},
		{"workload: takeover", good, ""},
		{"workload: takeover, clients: 5", bad, "clients[0]: takeover has pairs of a holder and a waiter, not 5 clients"},
		{"workload: takeover, warmup: 0s", bad, "warmup: takeover needs a warm-up"},
		{"workload: takeover, workers: 4", bad, "workers: one of 4 worker processes would host holders and waiters"},
		{"workload: takeover, workers: 16", good, ""},
		{"workload: takeover, workers: 2, faults: holder-pause", bad, "workers: holder-pause hits a whole process"},
		{"workload: {kind: takeover, keys: 16}", bad, "workload.keys: takeover has a key for each pair of its 16 clients, not 16 keys"},
		{"workload: {kind: takeover, arrival: constant, rate: 5}", bad, "workload.arrival: takeover has no arrivals"},
		{"workload: properties", good, ""},
		{"workload: properties, faults: holder-kill", bad, "faults[0].kind: the conformance suite brings faults of its own"},
		{"workload: {kind: properties, arrival: poisson, rate: 5}", bad, "workload.arrival: properties has no arrivals"},

		{"workload: hot-key, recipes: []", bad, "recipes: missing recipes"},
		{"workload: hot-key, recipes: [etcd/mutex, etcd/mutex]", bad, `recipes[1]: "etcd/mutex" is listed twice`},
		{"workload: hot-key, recipes: nothing/at-all-like-it", bad, `no recipe "nothing/at-all-like-it"; see lockbench list recipes`},
		{"workload: hot-key, recipes: zookeeper/sequence, ttl: 3s", bad, "ttl: zookeeper/sequence: sessions last 4s at least"},
		{"workload: hot-key, recipes: zookeeper/sequence, ttl: 3s, servers: {zookeeper: {tickTime: 500}}", good, ""},
		{"workload: hot-key, recipes: memcached/cas, ttl: 1500ms", bad, "ttl: memcached/cas cannot serve a lease of 1.5s"},
		// Twice "cannot serve" is once too often.
		{"workload: hot-key, recipes: memcached/cas, ttl: 2h", bad, "ttl: memcached/cas cannot serve a TTL of 2h0m0s: choose up to 1h"},
		{"workload: hot-key, servers: {redis: {appendonly: yes}}", bad, `servers.redis: no recipe of this block runs on "redis"`},

		{"workload: hot-key, expect: {verdict: any}", good, ""},
		{"workload: hot-key, expect: {verdict: unknown}", bad, `expect.verdict: invalid verdict "unknown"; choose safe, unsafe or any`},
		{"workload: hot-key, expect: {promise: safe}", bad, `expect.promise: invalid promise "safe"; choose kept, broken or any`},
		{"workload: hot-key, expect: {liveness: fast}", bad, `expect.liveness: invalid liveness "fast"; choose live, stuck or any`},
		{"workload: hot-key, expect: {thresholds: [acquire.p99 < 20ms, throughput > 5/s]}", good, ""},
		{"workload: hot-key, expect: {thresholds: [throughput > 5/s, acquire.p98 < 20ms]}", bad, `expect.thresholds[1]: no metric "acquire.p98"; did you mean acquire.p9`},
		{"workload: hot-key, expect_for: {etcd/mutx: {verdict: safe}}", bad, "expect_for.etcd/mutx"},
		{"workload: hot-key, expect_for: {redis/token: {verdict: safe}}", bad, `expect_for.redis/token: "redis/token" is not among the recipes of this block`},
		{"workload: hot-key, expect_for: {etcd/mutex: {verdict: good}}", bad, `expect_for.etcd/mutex.verdict: invalid verdict "good"`},
	})
}

// checked is a block, and whether it may pass.
type checked struct {
	rest string
	ok   bool
	want string // in the error
}

const bad, good = false, true

// everyCheck compares the error of each block with the one expected.
func everyCheck(t *testing.T, cases []checked) {
	t.Helper()
	for _, c := range cases {
		text := "name: t\nscenarios:\n  - {name: b, " + c.rest
		if !strings.Contains(c.rest, "recipes:") {
			text += ", recipes: etcd/mutex"
		}
		f, err := scenario.ParseFile("t.yaml", []byte(text+"}\n"), chaos.Actions())
		if err == nil {
			_, err = f.Expand(catalogue())
		}
		switch {
		case c.ok && err != nil:
			t.Errorf("%s: rejected: %v", c.rest, err)
		case !c.ok && (!errors.Is(err, scenario.ErrInvalid) || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v; want %q in it", c.rest, err, c.want)
		case !c.ok && !strings.HasPrefix(err.Error(), "t.yaml:3:"):
			t.Errorf("%s: without its place: %v", c.rest, err)
		}
	}
}

func TestNoNameLeavesTheRunsFolder(t *testing.T) {
	for _, name := range []string{"", "../x", "a/b", "A", "a b", "-a", "a.b", "é", strings.Repeat("a", 51)} {
		f := scenario.File{Name: name, Scenarios: []scenario.Block{{Name: "b", Settings: scenario.Settings{
			Recipes: []string{"etcd/mutex"}, Scenario: scenario.Scenario{Workload: scenario.Load{Kind: "hot-key"}},
		}}}}
		if _, err := f.Expand(catalogue()); !errors.Is(err, scenario.ErrInvalid) {
			t.Errorf("a suite may be named %q", name)
		}
		f.Name, f.Scenarios[0].Name = "t", name
		if _, err := f.Expand(catalogue()); !errors.Is(err, scenario.ErrInvalid) {
			t.Errorf("a block may be named %q", name)
		}
	}
	if _, err := one(scenario.Settings{Recipes: []string{"etcd/mutex"}, Scenario: scenario.Scenario{Workload: scenario.Load{Kind: "hot-key"}}}).Expand(catalogue()); err != nil {
		t.Error(err)
	}
}

func TestFilesThatAreNoSuitesAreRejectedSoon(t *testing.T) {
	for name, data := range map[string]string{
		"brackets":    strings.Repeat("[", 1<<18),
		"braces":      strings.Repeat("{a: ", 1<<16),
		"lists":       strings.Repeat("- ", 1<<17),
		"indentation": "a:\n" + strings.Repeat(" ", 1<<17) + "b: 1",
		"size":        strings.Repeat("# nothing but words\n", 1<<16),
	} {
		_, err := scenario.ParseFile("t.yaml", []byte(data), chaos.Actions())
		if !errors.Is(err, scenario.ErrInvalid) || !strings.Contains(err.Error(), "is it the right file?") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"redis/token", "redis/fenced", "etcd/mutex", "reference/mutex", "hot-key"}
	for word, want := range map[string]string{
		"redis/tokn":  "redis/token",
		"redis/tkoen": "redis/token",
		"REDIS/TOKEN": "redis/token",
		"mutex":       "etcd/mutex reference/mutex",
		"redis":       "redis/fenced redis/token",
		"hotkey":      "hot-key",
		"":            "",
		"zzz":         "",
	} {
		if got := strings.Join(scenario.Nearest(word, known), " "); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
	known = []string{"redis/token", "etcd/mutex", "zookeeper/sequence", "memcached/cas", "mysql/lease-row", "mysql/get-lock", "reference/mutex", "reference/broken"}
	for word, want := range map[string]string{
		"redsi/token":            "redis/token",
		" redis/token ":          "redis/token",
		"get-lock":               "mysql/get-lock",
		"mysql/getlock":          "mysql/get-lock",
		"mysql/row":              "mysql/get-lock mysql/lease-row",
		"etcd/lock":              "etcd/mutex",
		"zookeper/sequence":      "zookeeper/sequence",
		"zookeeper/ephemera":     "zookeeper/sequence",
		"memcached/add":          "memcached/cas",
		"postgres/advisory-lock": "",
		"qqqqqqqqqqqq":           "",
	} {
		if got := strings.Join(scenario.Nearest(word, known), " "); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

// Lists may be named and put together, but never without end.
func TestAliases(t *testing.T) {
	f, err := scenario.ParseFile("t.yaml", []byte(`name: t
defaults: {workload: hot-key, recipes: [&two [redis/token, etcd/mutex], zookeeper/sequence]}
scenarios:
  - {name: a}
  - {name: b, recipes: [*two, memcached/cas]}
  - {name: c, recipes: *two}
`), chaos.Actions())
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a": "redis/token etcd/mutex zookeeper/sequence", "b": "redis/token etcd/mutex memcached/cas", "c": "redis/token etcd/mutex"}
	for group, recipes := range want {
		var got []string
		for _, sc := range expand(t, f) {
			if sc.Group == group {
				got = append(got, sc.Recipe)
			}
		}
		if strings.Join(got, " ") != recipes {
			t.Errorf("%s runs %v, want %s", group, got, recipes)
		}
	}
	for text, want := range map[string]string{
		"name: t\nscenarios: *none\n":                       `t.yaml:2:12: scenarios: no anchor "none"; define it with &none`,
		"name: t\nscenarios: &a [{name: a, recipes: *a}]\n": "t.yaml:2:35: an alias within an anchor is not supported; write out the values",
		"name: t\nx: &a [1, 2]\ny: &b [*a, *a]\n":           "t.yaml:3:8: an alias within an anchor is not supported",
		"name: t\ndefaults: {clients: [&a [1" + strings.Repeat(",1", 20_000) + "]" + strings.Repeat(",*a", 20_000) + "]}": "more than 400000 values; is it the right file?",
	} {
		_, err := scenario.ParseFile("t.yaml", []byte(text), chaos.Actions())
		if !errors.Is(err, scenario.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %.200v; want %q in it", text, err, want)
		}
	}
}
