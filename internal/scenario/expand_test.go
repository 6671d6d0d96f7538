package scenario_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/scenario"
)

// catalogue has a recipe of each sort.
func catalogue() scenario.Catalogue {
	whole := func(ttl time.Duration, _ map[string]string) error {
		if ttl%time.Second != 0 {
			return errors.New("it keeps whole seconds only")
		}
		if ttl > time.Hour {
			return fmt.Errorf("cannot serve a TTL of %s: choose up to 1h", ttl)
		}
		return nil
	}
	ticks := func(ttl time.Duration, settings map[string]string) error {
		if ttl < 4*time.Second && settings["tickTime"] == "" {
			return errors.New("zookeeper/sequence: sessions last 4s at least")
		}
		return nil
	}
	single := []string{"single"}
	return scenario.NewCatalogue(chaos.Actions(),
		scenario.RecipeFacts{ID: "redis/token", Backend: "redis", Bound: "ttl", Topologies: single},
		scenario.RecipeFacts{
			ID: "etcd/mutex", Backend: "etcd", Bound: "session", Fencing: true, Reenters: true, Topologies: []string{"single", "quorum"},
			Properties: []string{"exclusive", "symmetric", "reports-lost", "nonblocking", "ordered"}, Steps: []string{"waiting", "woken", "queued"},
			Takeover: func(ttl time.Duration) time.Duration { return ttl + 2*time.Second },
		},
		scenario.RecipeFacts{ID: "zookeeper/sequence", Backend: "zookeeper", Bound: "session", Fencing: true, Topologies: []string{"single", "quorum"}, CheckTTL: ticks},
		scenario.RecipeFacts{ID: "memcached/cas", Backend: "memcached", Bound: "ttl", Topologies: single, CheckTTL: whole},
		scenario.RecipeFacts{ID: "mysql/get-lock", Backend: "mysql", Bound: "connection", Topologies: single},
		scenario.RecipeFacts{ID: "mysql/insert", Backend: "mysql", Bound: "none", Topologies: single, Properties: []string{"exclusive", "symmetric"}},
		scenario.RecipeFacts{ID: "memcached/timestamp", Backend: "memcached", Bound: "ttl", Topologies: single, Properties: []string{"blocking"}},
		scenario.RecipeFacts{ID: "reference/broken", Backend: "reference", Bound: "ttl", Fencing: true, Broken: true, Topologies: single},
	)
}

func expand(t *testing.T, f scenario.File) []scenario.Scenario {
	t.Helper()
	all, err := f.Expand(catalogue())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func parse(t *testing.T, text string) scenario.File {
	t.Helper()
	f, err := scenario.ParseFile("t.yaml", []byte(text), chaos.Actions())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func one(s scenario.Settings) scenario.File {
	return scenario.File{Name: "t", Scenarios: []scenario.Block{{Name: "b", Settings: s}}}
}

func scenarioNames(all []scenario.Scenario) []string {
	var list []string
	for _, sc := range all {
		list = append(list, sc.Name)
	}
	return list
}

func TestRepeatsAreInterleaved(t *testing.T) {
	all := expand(t, parse(t, `
name: t
scenarios:
  - {name: contended, workload: hot-key, recipes: [redis/token, etcd/mutex], clients: [8, 32], repeat: 2}
  - {name: more, workload: hot-key, recipes: etcd/mutex, topology: [single, quorum]}
`))
	want := []string{
		"contended-redis-token-8c-r1", "contended-etcd-mutex-8c-r1", "contended-redis-token-32c-r1", "contended-etcd-mutex-32c-r1",
		"contended-redis-token-8c-r2", "contended-etcd-mutex-8c-r2", "contended-redis-token-32c-r2", "contended-etcd-mutex-32c-r2",
		"more-etcd-mutex-16c-r1", "more-etcd-mutex-quorum-16c-r1",
	}
	if got := scenarioNames(all); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSeedsDependOnSuiteSeedAndNameOnly(t *testing.T) {
	f := parse(t, "name: t\nscenarios:\n  - {name: a, workload: hot-key, recipes: [redis/token, etcd/mutex], repeat: 3}\n")
	more := parse(t, "name: t\nscenarios:\n  - {name: z, workload: hot-key, recipes: redis/token}\n  - {name: a, workload: hot-key, recipes: etcd/mutex, repeat: 9}\n")
	seeds := map[string]uint64{}
	distinct := map[uint64]bool{}
	for _, sc := range expand(t, f) {
		seeds[sc.Name], distinct[sc.Seed] = sc.Seed, true
		if sc.Seed == 0 || sc.Seed >= 1<<53 {
			t.Errorf("%s: seed %d", sc.Name, sc.Seed)
		}
	}
	if len(distinct) != 6 {
		t.Errorf("%d different seeds among 6 scenarios", len(distinct))
	}
	for _, sc := range expand(t, more) {
		if was, ok := seeds[sc.Name]; ok && was != sc.Seed {
			t.Errorf("%s: another seed in another suite", sc.Name)
		}
	}
	f.Seed = 2
	for _, sc := range expand(t, f) {
		if seeds[sc.Name] == sc.Seed {
			t.Errorf("%s: the suite's seed changes nothing", sc.Name)
		}
	}
	// What a seed stands for must not change from one version to the next.
	if got := seeds["a-redis-token-16c-r1"]; got != 239886864313509 {
		t.Errorf("the seed of a-redis-token-16c-r1 is %d now: recorded runs can no longer be repeated", got)
	}
}

func TestEveryDefaultIsFilledIn(t *testing.T) {
	constant := scenario.Constant
	s := func(text string) scenario.Scenario {
		t.Helper()
		if !strings.Contains(text, "recipes") {
			text += ", recipes: etcd/mutex"
		}
		return expand(t, parse(t, "name: t\nscenarios:\n  - {name: b, "+text+"}\n"))[0]
	}
	hot := s("workload: hot-key")
	if !reflect.DeepEqual(hot, scenario.Scenario{
		Name: "b-etcd-mutex-16c-r1", Group: "b", Recipe: "etcd/mutex", Topology: "single", Environment: "process",
		Workload: scenario.Load{Kind: "hot-key", Keys: 1, Hold: constant(ms), Think: constant(ms), Arrival: "closed"},
		Clients:  16, Workers: 2, Repeat: 1, Seed: hot.Seed,
		TTL: scenario.Duration(4 * time.Second), Poll: scenario.Poll{Min: 5 * ms, Max: 15 * ms},
		Warmup: scenario.Duration(time.Second), Duration: scenario.Duration(10 * time.Second), Timeout: scenario.Duration(2 * time.Second),
		Expect: scenario.Expect{Verdict: "safe", Promise: "kept", Liveness: "live"},
	}) {
		t.Errorf("hot-key: %+v", hot)
	}
	for text, want := range map[string]scenario.Load{
		"workload: uncontended, clients: 3":                                                   {Kind: "uncontended", Keys: 3, Hold: constant(0), Think: constant(0), Arrival: "closed"},
		"workload: keys":                                                                      {Kind: "keys", Keys: 100, Distribution: "uniform", Hold: constant(ms), Think: constant(ms), Arrival: "closed"},
		"workload: {kind: keys, distribution: zipf}":                                          {Kind: "keys", Keys: 100, Distribution: "zipf", ZipfS: 1.1, Hold: constant(ms), Think: constant(ms), Arrival: "closed"},
		"workload: guarded-counter":                                                           {Kind: "guarded-counter", Keys: 1, Hold: constant(ms), Think: constant(ms), Arrival: "closed", Guard: "both"},
		"workload: {kind: hot-key, hold: 7ms}":                                                {Kind: "hot-key", Keys: 1, Hold: constant(7 * ms), Think: constant(7 * ms), Arrival: "closed"},
		"workload: {kind: hot-key, arrival: poisson, rate: 5}":                                {Kind: "hot-key", Keys: 1, Hold: constant(ms), Think: constant(0), Arrival: "poisson", Rate: 5, MaxInFlight: 64},
		"workload: {kind: hot-key, arrival: constant, rate: 2.5, max_in_flight: 1}":           {Kind: "hot-key", Keys: 1, Hold: constant(ms), Think: constant(0), Arrival: "constant", Rate: 2.5, MaxInFlight: 1},
		"workload: {kind: hot-key, acquire_limit: 1s, watch_lease: true, think: 0s, keys: 1}": {Kind: "hot-key", Keys: 1, Hold: constant(ms), Think: constant(0), Arrival: "closed", AcquireLimit: scenario.Duration(time.Second), WatchLease: true},
		"workload: try-storm":                                                                 {Kind: "try-storm", Keys: 1, Hold: constant(ms), Think: constant(ms), Arrival: "closed"},
		"workload: read-write, recipes: redis/token":                                          {Kind: "read-write", Keys: 1, Hold: constant(ms), Think: constant(ms), Arrival: "closed", Readers: 0.8},
		"workload: {kind: read-write, readers: 0}, recipes: redis/token":                      {Kind: "read-write", Keys: 1, Hold: constant(ms), Think: constant(ms), Arrival: "closed"},
		"workload: reentrant":                                                                 {Kind: "reentrant", Keys: 1, Hold: constant(ms), Think: constant(ms), Arrival: "closed", Depth: 2},
		"workload: {kind: batch, connections: 4}, recipes: redis/token":                       {Kind: "batch", Keys: 10, Hold: constant(ms), Think: constant(ms), Arrival: "closed", Batch: 3, Connections: 4},
		"workload: churn":                                                                     {Kind: "churn", Keys: 1, Hold: constant(ms), Think: constant(ms), Arrival: "closed", AcquireLimit: scenario.Duration(20 * ms)},
		"workload: takeover, clients: 6":                                                      {Kind: "takeover", Keys: 3, Hold: constant(ms), Think: constant(ms), Arrival: "closed"},
		"workload: properties":                                                                {Kind: "properties", Keys: 1, Hold: constant(ms), Think: constant(ms), Arrival: "closed"},
	} {
		if got := s(text).Workload; got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", text, got, want)
		}
	}
	if got := s("workload: hot-key, clients: 1").Workers; got != 1 {
		t.Errorf("one client has %d workers", got)
	}
	tokens := expand(t, parse(t, "name: t\nscenarios:\n  - {name: b, recipes: [redis/token], workload: guarded-counter}\n"))[0]
	if tokens.Workload.Guard != "plain" {
		t.Errorf("guard %s without fencing tokens", tokens.Workload.Guard)
	}
}

func TestDefaultExpectations(t *testing.T) {
	for _, c := range []struct {
		recipe, rest string
		want         scenario.Expect
	}{
		{"redis/token", "workload: hot-key", e("safe", "kept", "live")},
		{"redis/token", "workload: keys", e("safe", "kept", "live")},
		{"redis/token", "workload: uncontended", e("", "kept", "")},
		{"redis/token", "workload: hot-key, clients: 1", e("", "kept", "")},
		{"redis/token", "workload: hot-key, faults: holder-pause", e("unsafe", "kept", "live")},
		{"etcd/mutex", "workload: hot-key, faults: holder-pause", e("unsafe", "kept", "live")},
		{"mysql/get-lock", "workload: hot-key, faults: holder-pause", e("safe", "kept", "live")},
		{"reference/broken", "workload: hot-key", e("unsafe", "broken", "")},
		{"reference/broken", "workload: uncontended", e("", "kept", "")},
		// What is killed is succeeded, where something bounds it.
		{"etcd/mutex", "workload: hot-key, faults: holder-kill", e("safe", "kept", "live")},
		{"mysql/insert", "workload: hot-key, faults: holder-kill", e("safe", "kept", "")},
		{"mysql/insert", "workload: hot-key", e("safe", "kept", "live")},
		{"memcached/timestamp", "workload: hot-key", e("", "", "live")},
		{"redis/token", "workload: takeover", e("safe", "kept", "live")},
		{"redis/token", "workload: takeover, faults: {kind: holder-kill, at: 3s}", e("", "kept", "live")},
		{"etcd/mutex", "workload: takeover, faults: {kind: holder-kill, at: 3s}", e("safe", "kept", "live")},
		{"redis/token", "workload: takeover, faults: []", e("", "kept", "live")},
		{"mysql/insert", "workload: takeover", e("", "kept", "")},
		{"etcd/mutex", "workload: reentrant", e("safe", "kept", "live")},
		{"redis/token", "workload: read-write", e("safe", "kept", "live")},
		{"redis/token", "workload: batch", e("safe", "kept", "live")},
		{"etcd/mutex", "workload: hot-key, faults: {kind: step-pause, step: queued}", e("", "", "")},
		{"etcd/mutex", "workload: hot-key, faults: {kind: step-kill, step: queued}, expect: {liveness: stuck}", e("", "", "stuck")},
		{"etcd/mutex", "workload: properties", e("", "", "")},
		// A hold longer than a lease that is not renewed.
		{"redis/token", "workload: {kind: hot-key, hold: 5s}", e("", "kept", "live")},
		{"redis/token", "workload: {kind: hot-key, hold: 5s, watch_lease: true}", e("safe", "kept", "live")},
		{"etcd/mutex", "workload: {kind: hot-key, hold: 5s}", e("safe", "kept", "live")},
		// What the user says goes field by field, the recipe's own last.
		{"redis/token", "workload: hot-key, expect: {verdict: unsafe}", e("unsafe", "kept", "live")},
		{"redis/token", "workload: hot-key, expect: {verdict: any, liveness: any}", e("", "kept", "")},
		{"redis/token", "workload: hot-key, expect: {verdict: unsafe}, expect_for: {redis/token: {verdict: safe, promise: broken}}", e("safe", "broken", "live")},
		{"etcd/mutex, redis/token", "workload: hot-key, expect_for: {redis/token: {verdict: unsafe}}", e("safe", "kept", "live")},
	} {
		all := expand(t, parse(t, fmt.Sprintf("name: t\nscenarios:\n  - {name: b, recipes: [%s], %s}\n", c.recipe, c.rest)))
		if got := all[0].Expect; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s, %s: %+v, want %+v", c.recipe, c.rest, got, c.want)
		}
	}
}

func TestDefaultsOfAFile(t *testing.T) {
	all := expand(t, parse(t, `
name: t
defaults:
  recipes: [etcd/mutex, zookeeper/sequence]
  ttl: 2s
  workload: {kind: guarded-counter, hold: 9ms, guard: plain}
  faults: holder-pause
  servers: {zookeeper: {tickTime: 500}}
  expect: {thresholds: acquire.p99 < 20ms}
scenarios:
  - {name: same}
  - {name: fields, workload: {think: 1ms}, ttl: 5s, servers: {zookeeper: {syncLimit: 4}}}
  - {name: other, workload: hot-key, faults: [], recipes: etcd/mutex}
`))
	want := []string{
		"same-etcd-mutex-16c-r1 guarded-counter hold 9ms think 9ms plain ttl 2s faults 1 map[]",
		"same-zookeeper-sequence-16c-r1 guarded-counter hold 9ms think 9ms plain ttl 2s faults 1 map[zookeeper:map[tickTime:500]]",
		"fields-etcd-mutex-16c-r1 guarded-counter hold 9ms think 1ms plain ttl 5s faults 1 map[]",
		"fields-zookeeper-sequence-16c-r1 guarded-counter hold 9ms think 1ms plain ttl 5s faults 1 map[zookeeper:map[syncLimit:4 tickTime:500]]",
		"other-etcd-mutex-16c-r1 hot-key hold 1ms think 1ms  ttl 2s faults 0 map[]",
	}
	if got := lines(all); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, sc := range all {
		if !slices.Equal(sc.Expect.Thresholds, []string{"acquire.p99 < 20ms"}) || sc.Expect.Promise != "kept" {
			t.Errorf("%s: expects %+v", sc.Name, sc.Expect)
		}
	}
}

func lines(all []scenario.Scenario) []string {
	var list []string
	for _, sc := range all {
		w := sc.Workload
		list = append(list, fmt.Sprintf("%s %s hold %s think %s %s ttl %s faults %d %v", sc.Name, w.Kind, w.Hold, w.Think, w.Guard, sc.TTL, len(sc.Faults), sc.Servers))
	}
	return list
}

func TestFlagsGoOverAFile(t *testing.T) {
	f := parse(t, `
name: t
defaults: {ttl: 2s, workload: {kind: guarded-counter, hold: 9ms, guard: plain}}
scenarios:
  - name: a
    recipes: [redis/token, mysql/get-lock]
    expect_for: {mysql/get-lock: {verdict: any}}
  - {name: b, recipes: etcd/mutex, workload: uncontended, faults: []}
`)
	before := lines(expand(t, f))
	hold := scenario.Constant(3 * ms)
	ttl := scenario.Duration(6 * time.Second)
	for name, c := range map[string]struct {
		over scenario.Settings
		want []string
	}{
		"nothing": {scenario.Settings{}, before},
		"fields": {scenario.Settings{Recipes: []string{"redis/token"}, Clients: []int{2}, Scenario: scenario.Scenario{TTL: ttl, Workload: scenario.Load{Hold: hold}}}, []string{
			"a-redis-token-2c-r1 guarded-counter hold 3ms think 3ms plain ttl 6s faults 0 map[]",
			"b-redis-token-2c-r1 uncontended hold 3ms think 3ms  ttl 6s faults 0 map[]",
		}},
		"another workload": {scenario.Settings{Recipes: []string{"etcd/mutex"}, Scenario: scenario.Scenario{Workload: scenario.Load{Kind: "hot-key"}}}, []string{
			"a-etcd-mutex-16c-r1 hot-key hold 1ms think 1ms  ttl 2s faults 0 map[]",
			"b-etcd-mutex-16c-r1 hot-key hold 1ms think 1ms  ttl 2s faults 0 map[]",
		}},
	} {
		if got := lines(expand(t, f.With(c.over))); !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
	if after := lines(expand(t, f)); !slices.Equal(before, after) {
		t.Error("With changed the file that it was called on")
	}

	// An error in a flag has no place in the file.
	short := scenario.Duration(1500 * ms)
	_, err := f.With(scenario.Settings{Recipes: []string{"memcached/cas"}, Scenario: scenario.Scenario{TTL: short}}).Expand(catalogue())
	if want := "ttl: memcached/cas cannot serve a lease of 1.5s: it keeps whole seconds only"; err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestResolvedSuiteSurvivesItsFile(t *testing.T) {
	all := expand(t, parse(t, `
name: t
seed: 18446744073709551615
scenarios:
  - {name: a, recipes: [redis/token, etcd/mutex], workload: uncontended, clients: [1, 8], expect: {thresholds: ["throughput > 1000/s", acquire.p99 < 20ms]}}
  - {name: b, recipes: [etcd/mutex], workload: guarded-counter, faults: holder-pause, servers: {etcd: {heartbeat-interval: "100", odd: "yes: no"}}}
  - {name: c, recipes: [etcd/mutex], workload: {kind: keys, distribution: zipf, arrival: poisson, rate: 1234.5, acquire_limit: 1s, hold: "uniform(1ms,3ms)"}, topology: quorum}
  - {name: e, recipes: [redis/token], workload: {kind: read-write, readers: 0.25, connections: 3}, faults: {kind: step-pause, step: queued, for: 1s}}
  - {name: f, recipes: [redis/token], workload: {kind: batch, batch: 2, keys: 5}, faults: {kind: step-kill, step: woken}}
  - {name: g, recipes: [etcd/mutex], workload: {kind: reentrant, depth: 4}}
  - {name: h, recipes: [etcd/mutex], workload: takeover, clients: 4}
  - {name: d, recipes: [etcd/mutex], workload: {kind: hot-key, hold: exponential(2ms), think: 0s}, expect: {verdict: any, promise: any, liveness: any}}
`))
	data, err := scenario.MarshalSuite("t", 1<<64-1, all)
	if err != nil {
		t.Fatal(err)
	}
	got, err := scenario.ParseResolved("suite.yaml", data, catalogue())
	if err != nil {
		t.Fatalf("%v\n%s", err, data)
	}
	if want := (scenario.Resolved{Suite: "t", Seed: 1<<64 - 1, Scenarios: all}); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v\nfile\n%s", got, want, data)
	}
}

func TestResolvedSuiteIsChecked(t *testing.T) {
	data, err := scenario.MarshalSuite("t", 1, expand(t, parse(t, "name: t\nscenarios:\n  - {name: a, recipes: redis/token, workload: hot-key, repeat: 2}\n")))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"clients: 16", "clients: 0", `suite.yaml:17:14: scenarios[0].clients: 0 is out of range`},
		{"name: a-redis-token-16c-r1", "name: ../../x", `suite.yaml:5:11: scenarios[0].name: invalid scenario name "../../x"`},
		{"name: a-redis-token-16c-r2", "name: a-redis-token-16c-r1", `a second scenario named`},
		{"duration: 10s", "duration: 10", `"10" has no unit`},
		{"hold: 1ms", "hodl: 1ms", "no such field; did you mean hold?"},
		{"recipe: redis/token", "recipe: ''", "missing recipe"},
		{"recipe: redis/token", "recipe: redis/tokn", "no recipe \"redis/tokn\"; did you mean redis/token?"},
		{"topology: single", "topology: quorum", "redis/token does not run on"},
		{"verdict: safe", "verdict: fine", `invalid verdict "fine"; choose safe, unsafe or any`},
	} {
		changed := strings.Replace(string(data), c.old, c.new, 1)
		if changed == string(data) {
			t.Fatalf("%q is not in the file:\n%s", c.old, data)
		}
		_, err := scenario.ParseResolved("suite.yaml", []byte(changed), catalogue())
		if !errors.Is(err, scenario.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q in it", c.new, err, c.want)
		}
	}
}
