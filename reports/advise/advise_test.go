package advise_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports/advise"
)

func seconds(s float64) scenario.Duration { return scenario.Duration(s * float64(time.Second)) }

// made is a result of redis/token in which all is good.
func made(name string, hold float64, faults ...string) scenario.Result {
	requests := 2.5
	r := scenario.Result{
		Name: name, Recipe: "redis/token", Backend: "redis", Topology: "single", Status: scenario.StatusDone, Clients: 4, TTL: seconds(2), Acquired: 500,
		Workload: scenario.Load{Kind: scenario.GuardedCounter, Hold: scenario.Constant(seconds(hold).D())}, RequestsPerAcquire: &requests,
		Acquire: &scenario.Latency{Count: 500, P99: 123_456_789},
		Safety:  scenario.Safety{Verdict: scenario.Safe, Promise: scenario.Kept, Liveness: scenario.Live, ContendedGrants: 99, Why: map[string]string{}},
	}
	for _, kind := range faults {
		r.Faults = append(r.Faults, scenario.FaultResult{Kind: kind, Status: "effective", RecoveryNS: 2_345_678_901})
	}
	return r
}

func with(r scenario.Result, change func(*scenario.Result)) scenario.Result {
	change(&r)
	return r
}

func unsafe(r *scenario.Result) { r.Safety.Verdict = scenario.Unsafe }
func stuck(r *scenario.Result)  { r.Safety.Liveness = scenario.Stuck }
func broken(r *scenario.Result) { r.Safety.Promise = scenario.Broken }
func missed(r *scenario.Result) { r.Faults[0].Status = "missed" }
func unknown(r *scenario.Result) {
	r.Safety.Verdict, r.Safety.Why["verdict"] = scenario.Undecided, "no evidence"
}

// fenced: a fenced counter lost nothing.
func fenced(r *scenario.Result) {
	none := int64(0)
	r.Safety.TokenRegressions = &none
	r.Safety.Registers = []scenario.Register{{Name: "plain", LostUpdates: 3, StaleWrites: &none}, {Name: "fenced", StaleWrites: &none}}
}

func quorum(r *scenario.Result) { r.Topology = "quorum" }

func TestRules(t *testing.T) {
	good := []scenario.Result{made("short", 0.05), made("hold", 2), made("pause", 0.05, "holder-pause"), made("kill", 0.05, "holder-kill"), made("off", 2, "holder-cut")}
	// over replaces the scenarios of the same name.
	over := func(list ...scenario.Result) []scenario.Result {
		out := list
		for _, r := range good {
			if !strings.Contains(" "+names(list)+" ", " "+r.Name+" ") {
				out = append(out, r)
			}
		}
		return out
	}
	onQuorum := func(list ...scenario.Result) (out []scenario.Result) {
		for _, r := range append(list, good...) {
			out = append(out, with(r, quorum))
		}
		return out
	}
	for name, c := range map[string]struct {
		results []scenario.Result
		needs   []string
		verdict string
		want    string // in the page
	}{
		"all good":                                {good, nil, advise.Yes, "Scenarios are in x/scenarios"},
		"nothing measured":                        {[]scenario.Result{with(made("short", 0.05), unknown)}, nil, advise.NotMeasured, "no scenario with a paused holder"},
		"only shorter holds measured":             {[]scenario.Result{good[0], good[2], good[3], good[4]}, nil, advise.NotMeasured, "no safe scenario without faults and with holds of 1 TTLs"},
		"unsafe without a fault":                  {over(with(made("hold", 2), unsafe)), nil, advise.No, "keep every hold below the TTL: with hold 50ms and TTL 2s it was safe (short)"},
		"unsafe with longer holds than asked for": {over(with(made("longer", 5), unsafe)), nil, advise.Yes, ""},
		"two holders when paused":                 {over(with(made("pause", 0.05, "holder-pause"), unsafe)), nil, advise.YesIf, "no holder ever stops for longer than its lease"},
		"the same with fencing tokens":            {over(with(with(made("pause", 0.05, "holder-pause"), unsafe), fenced)), nil, advise.YesIf, "the fenced counter lost nothing"},
		"broken when paused":                      {over(with(made("pause", 0.05, "holder-pause"), broken)), nil, advise.No, "broke its own guarantee"},
		"stuck after a death":                     {over(with(made("kill", 0.05, "holder-kill"), stuck)), nil, advise.No, "stayed taken while clients waited"},
		"stuck while cut off":                     {over(with(made("off", 2, "holder-cut"), stuck)), nil, advise.YesIf, "the network never cuts a holder off for long"},
		"two holders when cut off":                {over(with(made("off", 2, "holder-cut"), unsafe)), nil, advise.YesIf, "stops working when its lease ends"},
		"the same with tokens, cut off":           {over(with(with(made("off", 2, "holder-cut"), unsafe), fenced)), nil, advise.YesIf, "held it while the holder was cut off, and the fenced counter lost nothing"},
		"broken when cut off":                     {over(with(made("off", 2, "holder-cut"), broken)), nil, advise.No, "while the holder was cut off"},
		"cut off with shorter holds":              {over(made("off", 0.05, "holder-cut")), nil, advise.NotMeasured, "no scenario with a holder cut off and holds of 1 TTLs"},
		"unsafe with longer holds, cut off":       {over(with(made("longer", 5, "holder-cut"), unsafe)), nil, advise.Yes, ""},
		"broken with longer holds":                {over(with(with(made("longer", 5, "holder-cut"), unsafe), broken)), nil, advise.No, "while the holder was cut off"},
		"the fault missed":                        {over(with(made("kill", 0.05, "holder-kill"), missed)), nil, advise.NotMeasured, "no scenario with a killed holder"},
		"the scenario proved nothing":             {over(with(made("kill", 0.05, "holder-kill"), unknown)), nil, advise.NotMeasured, "proved nothing: no evidence"},
		"the scenario failed":                     {over(with(made("kill", 0.05, "holder-kill"), func(r *scenario.Result) { r.Status = scenario.StatusFailed })), nil, advise.NotMeasured, ""},
		"tokens needed":                           {over(with(made("hold", 2), fenced)), []string{"fencing"}, advise.Yes, "99 contended grants"},
		"tokens needed, none measured":            {good, []string{"fencing"}, advise.NotMeasured, "no scenario with fencing tokens"},
		"tokens needed, the recipe has none": {over(with(made("hold", 2), func(r *scenario.Result) {
			r.Unmeasured = map[string]string{"token_regressions": "the recipe has no fencing tokens"}
		})), []string{"fencing"}, advise.No, "use a recipe with tokens"},
		"tokens needed, two scenarios":      {over(with(with(made("few", 0.05), fenced), func(r *scenario.Result) { r.Safety.ContendedGrants = 3 }), with(made("hold", 2), fenced)), []string{"fencing"}, advise.Yes, "99 contended grants"},
		"tokens that go back":               {over(with(with(made("hold", 2), fenced), func(r *scenario.Result) { *r.Safety.TokenRegressions = 1 })), []string{"fencing"}, advise.No, "not greater"},
		"tokens that go back after a fault": {append(over(), with(with(made("kill-leader", 0.05, "leader-kill"), fenced), func(r *scenario.Result) { *r.Safety.TokenRegressions = 1 })), []string{"fencing"}, advise.No, "not greater, under leader-kill"},
		"failover not measured":             {good, []string{"failover"}, advise.NotMeasured, "needs scenarios with leader-kill and leader-cut-peers"},
		"a single server restarts":          {append(over(), made("leader", 0.05, "leader-kill"), made("cut", 0.05, "leader-cut-peers")), []string{"failover"}, advise.NotMeasured, ""},
		"only one kind of failover":         {onQuorum(made("leader", 0.05, "leader-kill")), []string{"failover"}, advise.NotMeasured, ""},
		"failover survived":                 {onQuorum(made("leader", 0.05, "leader-kill"), made("cut", 0.05, "leader-cut-peers")), []string{"failover"}, advise.Yes, "-> leader"},
		"failover survived by one of two":   {onQuorum(made("leader", 0.05, "leader-kill"), with(made("cut", 0.05, "leader-cut-peers"), unsafe)), []string{"failover"}, advise.No, "under leader-cut-peers"},
		"a minority died":                   {onQuorum(made("minority", 0.05, "minority-kill")), []string{"failover"}, advise.Yes, "minority of the servers died"},
		"a property, measured":              {append(over(), property("reentrant", scenario.Yes)), []string{"reentrant"}, advise.Yes, "as measured"},
		"a property that it does not have":  {append(over(), property("reentrant", scenario.No)), []string{"reentrant"}, advise.No, "use a recipe with the property reentrant"},
		"a property that is unknown":        {append(over(), property("reentrant", scenario.Undecided)), []string{"reentrant"}, advise.NotMeasured, ""},
		"a property of another name":        {append(over(), property("ordered", scenario.Yes)), []string{"reentrant"}, advise.NotMeasured, ""},
	} {
		q := advise.Question{Shortest: seconds(0.05), Longest: seconds(10), TTL: seconds(10), Needs: c.needs}
		answers := advise.Ask(q, []advise.Run{{Dir: "x", Document: scenario.Document{Scenarios: c.results}}})
		if len(answers) != 1 {
			t.Fatalf("%s: %d answers", name, len(answers))
		}
		var page bytes.Buffer
		if err := advise.Text(&page, q, answers); err != nil {
			t.Fatal(err)
		}
		if answers[0].Verdict != c.verdict || !strings.Contains(page.String(), c.want) {
			t.Errorf("%s: want %s and %q in\n%s", name, c.verdict, c.want, page.String())
		}
		for _, p := range answers[0].Points {
			if p.Verdict != advise.NotMeasured && p.Scenario == "" {
				t.Errorf("%s: %s is %s without a scenario", name, p.Rule, p.Verdict)
			}
		}
	}
}

func property(name, measured string) scenario.Result {
	r := made("properties", 0)
	r.Workload.Kind = scenario.Properties
	r.Properties = []scenario.Property{{Property: name, Measured: measured, Evidence: "as measured"}}
	return r
}

func names(list []scenario.Result) string {
	var all []string
	for _, r := range list {
		all = append(all, r.Name)
	}
	return strings.Join(all, " ")
}

func TestPrice(t *testing.T) {
	few := with(made("few", 0.05), func(r *scenario.Result) { r.Acquired, r.Acquire = 20, &scenario.Latency{Count: 20, P99: 1} })
	for name, c := range map[string]struct {
		results                  []scenario.Result
		requests, wait, takeover string
	}{
		"all":            {[]scenario.Result{few, made("many", 0.05), made("kill", 0.05, "holder-kill")}, "2.5", "120ms (4 clients, hold 50ms)", "2.3s (TTL 2s)"},
		"few waits":      {[]scenario.Result{few}, "2.5", "", ""},
		"only unsafe":    {[]scenario.Result{with(made("many", 0.05), unsafe)}, "", "", ""},
		"under a fault":  {[]scenario.Result{made("pause", 0.05, "holder-pause")}, "", "", ""},
		"missed a death": {[]scenario.Result{with(made("kill", 0.05, "holder-kill"), missed)}, "", "", ""},
	} {
		a := advise.Ask(advise.Question{Longest: seconds(1), TTL: seconds(10)}, []advise.Run{{Document: scenario.Document{Scenarios: c.results}}})[0]
		if a.Requests != c.requests || a.Wait != c.wait || a.Takeover != c.takeover {
			t.Errorf("%s: %q, %q, %q, want %q, %q, %q", name, a.Requests, a.Wait, a.Takeover, c.requests, c.wait, c.takeover)
		}
	}
}

func TestAnswersBestFirst(t *testing.T) {
	other := func(recipe string, r scenario.Result) scenario.Result { r.Recipe = recipe; return r }
	answers := advise.Ask(advise.Question{Longest: seconds(1), TTL: seconds(10)}, []advise.Run{{Document: scenario.Document{Scenarios: []scenario.Result{
		other("a/no", with(made("1", 0.05), unsafe)), other("b/unknown", made("2", 0.05)),
		other("c/yes", made("3", 1)), other("c/yes", made("4", 1, "holder-pause")), other("c/yes", made("5", 1, "holder-kill")), other("c/yes", made("6", 1, "holder-cut")),
		{Recipe: "reference/mutex", Backend: "reference", Status: scenario.StatusDone},
	}}}})
	var got []string
	for _, a := range answers {
		got = append(got, a.Recipe+" "+a.Verdict)
	}
	if want := "c/yes yes; b/unknown not measured; a/no no"; strings.Join(got, "; ") != want {
		t.Errorf("%s, want %s", strings.Join(got, "; "), want)
	}
}
