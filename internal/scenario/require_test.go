package scenario_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

func TestParseExpect(t *testing.T) {
	for _, c := range []struct {
		words []string
		want  scenario.Expect
	}{
		{[]string{"safe"}, scenario.Expect{Verdict: "safe"}},
		{[]string{"safe", "kept", "live"}, scenario.Expect{Verdict: "safe", Promise: "kept", Liveness: "live"}},
		{[]string{"verdict=unsafe", "guarantee=broken", "liveness=stuck"}, scenario.Expect{Verdict: "unsafe", Promise: "broken", Liveness: "stuck"}},
		{[]string{"promise=any"}, scenario.Expect{Promise: "any"}},
		{[]string{"acquire.p99<=20ms", "throughput > 1000/s"}, scenario.Expect{Thresholds: []string{"acquire.p99<=20ms", "throughput > 1000/s"}}},
	} {
		got, err := scenario.ParseExpect(c.words)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %+v, %v, want %+v", c.words, got, err, c.want)
		}
	}
	for _, word := range []string{"", "any", "sound", "verdict", "verdict=kept", "guarantee=safe", "x=safe", "acquire.p99<fast", "nothing<1ms"} {
		if got, err := scenario.ParseExpect([]string{word}); err == nil {
			t.Errorf("%q was read as %+v", word, got)
		}
	}
}

func TestRequire(t *testing.T) {
	competing := scenario.Scenario{Workload: scenario.Load{Kind: scenario.HotKey}, Clients: 2}
	with := func(sc scenario.Scenario, e scenario.Expect) scenario.Scenario { sc.Expect = e; return sc }
	alone := scenario.Scenario{Workload: scenario.Load{Kind: scenario.Uncontended}, Clients: 2}
	safe := scenario.Expect{Verdict: "safe"}
	for name, c := range map[string]struct {
		sc          scenario.Scenario
		given, want scenario.Expect
	}{
		"over an open answer":              {competing, safe, safe},
		"what is not given stays":          {with(competing, scenario.Expect{Promise: "kept"}), safe, scenario.Expect{Verdict: "safe", Promise: "kept"}},
		"an expected failure is dropped":   {with(competing, scenario.Expect{Verdict: "unsafe", Promise: "broken", Liveness: "stuck"}), safe, safe},
		"any expects nothing":              {with(competing, safe), scenario.Expect{Verdict: "any"}, scenario.Expect{}},
		"no evidence without competition":  {alone, scenario.Expect{Verdict: "safe", Promise: "kept", Liveness: "live"}, scenario.Expect{Promise: "kept"}},
		"nor with one client":              {scenario.Scenario{Workload: scenario.Load{Kind: scenario.HotKey}, Clients: 1}, safe, scenario.Expect{}},
		"properties have their own":        {scenario.Scenario{Workload: scenario.Load{Kind: scenario.Properties}, Clients: 2}, safe, scenario.Expect{}},
		"thresholds are added, also alone": {with(alone, scenario.Expect{Thresholds: []string{"a"}}), scenario.Expect{Thresholds: []string{"b"}}, scenario.Expect{Thresholds: []string{"a", "b"}}},
	} {
		if got := c.sc.Require(c.given).Expect; !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestOutlivesLease(t *testing.T) {
	sc := func(hold scenario.Dist) scenario.Scenario {
		return scenario.Scenario{Recipe: "redis/token", TTL: scenario.Duration(10 * time.Second), Workload: scenario.Load{Kind: scenario.HotKey, Hold: hold}}
	}
	constant := scenario.Constant(30 * time.Second)
	watching := sc(constant)
	watching.Workload.WatchLease = true
	for name, c := range map[string]struct {
		sc    scenario.Scenario
		bound string
		want  string
	}{
		"longer":             {sc(constant), "ttl", "hold up to 30s exceeds TTL 10s; redis/token does not renew"},
		"as long":            {sc(scenario.Constant(10 * time.Second)), "ttl", "hold up to 10s is as long as TTL 10s; redis/token does not renew"},
		"shorter":            {sc(scenario.Constant(9 * time.Second)), "ttl", ""},
		"uniform":            {sc(scenario.Dist{Kind: scenario.DistUniform, A: time.Second, B: 30 * time.Second}), "ttl", "hold up to 30s exceeds TTL 10s; redis/token does not renew"},
		"exponential":        {sc(scenario.Dist{Kind: scenario.DistExponential, A: 3 * time.Second}), "ttl", "hold of exponential(3s) exceeds TTL 10s; redis/token does not renew"},
		"renewed":            {sc(constant), "session", ""},
		"no lease":           {sc(constant), "connection", ""},
		"the client watches": {watching, "ttl", ""},
	} {
		if got := c.sc.OutlivesLease(c.bound); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestKnownFailures(t *testing.T) {
	yes, no := true, false
	k, err := scenario.ParseKnownFailures("known.txt", []byte("# ours\n\npause-redis-token-*   a pause outlasts the lease # see the wiki\nb\ngone\nelsewhere\n"))
	if err != nil {
		t.Fatal(err)
	}
	result := func(name string, asExpected *bool, status scenario.Status) scenario.Result {
		r := scenario.Result{Name: name, AsExpected: asExpected, Status: status}
		k.Mark(&r)
		return r
	}
	var all []scenario.Result
	for _, c := range []struct {
		r    scenario.Result
		want string
	}{
		{result("pause-redis-token-8c-r1", &no, scenario.StatusDone), "a pause outlasts the lease"},
		{result("pause-redis-token-8c-r2", &yes, scenario.StatusDone), ""},
		{result("b", &no, scenario.StatusDone), "line 4 of known.txt"},
		{result("b", nil, scenario.StatusDone), ""}, // unknown is not a known failure
		{result("b-and-more", &no, scenario.StatusDone), ""},
		{result("b", nil, scenario.StatusFailed), ""},
		{result("b", nil, scenario.StatusMissing), ""},
		{result("gone", &yes, scenario.StatusDone), ""},
	} {
		if all = append(all, c.r); c.r.KnownFailure != c.want {
			t.Errorf("%s, %s: known as %q, want %q", c.r.Name, c.r.Status, c.r.KnownFailure, c.want)
		}
	}
	if gone := k.Gone(all); len(gone) != 1 || !strings.Contains(gone[0], "known failure gone did not fail") {
		t.Errorf("gone: %q", gone)
	}
	if un := k.Unmatched([]scenario.Scenario{{Name: "pause-redis-token-8c-r1"}, {Name: "b"}, {Name: "gone"}}); len(un) != 1 || !strings.Contains(un[0], "elsewhere") {
		t.Errorf("unmatched: %q", un)
	}
	if _, err := scenario.ParseKnownFailures("known.txt", []byte("ok\n[a\n")); err == nil || !strings.Contains(err.Error(), "known.txt:2") {
		t.Errorf("an invalid name: %v", err)
	}
}
