package claims

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

// ids are those of the documents' list, in its order.
const ids = `rank-performance rank-reliability rank-simplicity rank-effort
prop-exclusive prop-deadlock-free prop-symmetric prop-available prop-reentrant prop-blocking prop-nonblocking prop-expiry prop-ordered prop-read-write prop-batch
db-unique-row db-no-expiry db-reaper db-loop db-reentrant-column db-for-update db-for-update-no-index db-for-update-pool db-single-point db-moderate-load
cache-faster-than-db cache-raw-speed cache-no-expiry cache-ttl-dilemma mc-add-atomic mc-evict mc-restart mc-timestamp-race cache-foreign-delete cache-check-before-delete
redis-setnx-expire redis-getset redis-token-lua redis-watchdog redis-failover redis-redlock redis-best-of-both poll-interval
zk-ephemeral-frees zk-session-loss zk-retry-policy zk-majority zk-slower zk-exclusive-node zk-sequence-order zk-watch-children etcd-lease etcd-revision-queue etcd-single-key
poll-cost watch-cost poll-or-watch herd
chubby-lock-delay`

func claimsOf(t *testing.T) []Claim {
	t.Helper()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryIDOfTheDocumentsHasAnEntry(t *testing.T) {
	var got []string
	for _, c := range claimsOf(t) {
		got = append(got, c.ID)
	}
	if want := strings.Join(strings.Fields(ids), " "); strings.Join(got, " ") != want {
		t.Errorf("claims are\n%s\nwant\n%s", strings.Join(got, " "), want)
	}
}

func TestWithoutRunsEveryClaimIsInconclusive(t *testing.T) {
	for _, d := range Decide(claimsOf(t), nil) {
		if d.Verdict != Inconclusive || d.Reason == "" || len(d.Parts) == 0 {
			t.Errorf("%s: %s, reason %q, %d parts", d.ID, d.Verdict, d.Reason, len(d.Parts))
		}
	}
}

// result is one repeat of recipe in group.
func result(group, recipe string, repeat int, change ...func(*scenario.Result)) scenario.Result {
	r := scenario.Result{
		Name: fmt.Sprintf("%s-%s-r%d", group, strings.ReplaceAll(recipe, "/", "-"), repeat), Group: group, Recipe: recipe, Clients: 4, Repeat: repeat, Status: scenario.StatusDone,
		Safety: scenario.Safety{Verdict: scenario.Safe, Promise: scenario.Kept, Liveness: scenario.Live},
		Faults: []scenario.FaultResult{{Kind: "holder-pause", Status: "effective"}},
	}
	for _, f := range change {
		f(&r)
	}
	return r
}

func throughput(v float64) func(*scenario.Result) {
	return func(r *scenario.Result) { r.Throughput = &v }
}

func verdict(v string) func(*scenario.Result) {
	return func(r *scenario.Result) { r.Safety.Verdict = v }
}

func missed(r *scenario.Result) { r.Faults[0].Status = "missed" }

func failed(r *scenario.Result) { r.Status, r.Reason = scenario.StatusFailed, "no server" }

func measuredProperty(promised, got string) func(*scenario.Result) {
	return func(r *scenario.Result) {
		r.Properties = []scenario.Property{{Property: "exclusive", Promised: promised, Measured: got}}
	}
}

// series is three repeats, one for each change.
func series(group, recipe string, changes ...func(*scenario.Result)) []scenario.Result {
	var list []scenario.Result
	for i, c := range changes {
		list = append(list, result(group, recipe, i+1, c))
	}
	return list
}

func rates(group, recipe string, vs ...float64) []scenario.Result {
	var list []scenario.Result
	for i, v := range vs {
		list = append(list, result(group, recipe, i+1, throughput(v)))
	}
	return list
}

func three(group, recipe string, change func(*scenario.Result)) []scenario.Result {
	return series(group, recipe, change, change, change)
}

func join(lists ...[]scenario.Result) []scenario.Result {
	var all []scenario.Result
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func decideRule(t *testing.T, rule string, results []scenario.Result) Decision {
	t.Helper()
	list, err := parse([]byte("claims:\n- {id: x, claim: c, documents: [S1], experiment: e, rule: [" + rule + "]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	return Decide(list, []Run{{Document: scenario.Document{Scenarios: results}}})[0]
}

const (
	faster = "{compare: throughput, of: {in: [g], recipes: [a]}, to: {in: [g], recipes: [b]}, least: 1.2x}"
	slower = "{compare: throughput, of: {in: [g], recipes: [a]}, to: {in: [g], recipes: [b]}, under: 1.2x}"
	share  = "{compare: unsafe, of: {in: [g, g2, g2-quorum], recipes: [a]}, to: {in: [g, g2, g2-quorum], recipes: [b]}, least: \"+0.1\"}"
	unsafe = "{show: verdict = unsafe, of: {in: [g]}, control: {in: [c]}}"
	safe   = "{show: verdict = safe, of: {in: [g]}}"
	limit  = "{show: throughput > 50/s, of: {in: [g]}}"
	holds  = "{show: property exclusive, of: {in: [g]}, repeats: 1}"
)

func TestRules(t *testing.T) {
	bad, good := verdict(scenario.Unsafe), verdict(scenario.Safe)
	unknown := verdict(scenario.Undecided)
	for _, tt := range []struct {
		name, rule, want, reason string
		results                  []scenario.Result
	}{
		{"clearly faster", faster, Confirmed, "5.00x (4.50x to 5.56x)", join(rates("g", "a", 100, 90, 100), rates("g", "b", 20, 20, 18))},
		{"faster by too little", faster, Refuted, "1.05x", join(rates("g", "a", 105, 106, 104), rates("g", "b", 100, 99, 101))},
		{"slower", faster, Refuted, "0.10x", join(rates("g", "a", 10, 11, 10), rates("g", "b", 100, 99, 101))},
		{"the spreads overlap", faster, Inconclusive, "within the spread", join(rates("g", "a", 60, 130, 140), rates("g", "b", 100, 99, 101))},
		{"one repeat could be an effect", faster, Inconclusive, "within the spread", join(rates("g", "a", 100, 101, 125), rates("g", "b", 100, 99, 101))},
		{"two repeats", faster, Inconclusive, "2 of the 3 repeats needed", join(rates("g", "a", 100, 90), rates("g", "b", 20, 20, 18))},
		{"the other side is missing", faster, Inconclusive, "no scenario was run of b (g)", rates("g", "a", 100, 90, 95)},
		{"a number is missing", faster, Inconclusive, "has no throughput", join(rates("g", "a", 100, 90, 95), series("g", "b", throughput(10), throughput(11), good))},
		{"a fault missed", faster, Inconclusive, "was missed", join(rates("g", "a", 100, 90, 95), rates("g", "b", 10, 11), []scenario.Result{result("g", "b", 3, throughput(9), missed)})},
		{"a scenario failed", faster, Inconclusive, "no server", join(rates("g", "a", 100, 90, 95), rates("g", "b", 10, 11), []scenario.Result{result("g", "b", 3, throughput(9), failed)})},
		{"not slower", slower, Confirmed, "1.05x", join(rates("g", "a", 105, 106, 104), rates("g", "b", 100, 99, 101))},
		{"too much faster", slower, Refuted, "5.00x", join(rates("g", "a", 100, 90, 100), rates("g", "b", 20, 20, 18))},
		{"not slower, within the spread", slower, Inconclusive, "spread", join(rates("g", "a", 60, 130, 140), rates("g", "b", 100, 99, 101))},

		{"a larger share", share, Confirmed, "+0.50", join(three("g", "a", bad), three("g2-quorum", "a", good), three("g", "b", good), three("g2", "b", good))},
		{"the same share", share, Refuted, "+0.00", join(three("g", "a", bad), three("g2-quorum", "a", good), three("g", "b", bad), three("g2", "b", good))},
		{"a share without one of its groups", share, Inconclusive, "no scenario was run of a (g2)", join(three("g", "a", bad), three("g", "b", good))},

		{"unsafe in all, the control in none", unsafe, Confirmed, "3 of 3", join(three("g", "a", bad), three("c", "b", good))},
		{"unsafe in none", unsafe, Refuted, "0 of 3", join(three("g", "a", good), three("c", "b", good))},
		{"unsafe in some", unsafe, Inconclusive, "disagree", join(series("g", "a", bad, good, bad), three("c", "b", good))},
		{"the control is unsafe too", unsafe, Inconclusive, "control shows it too", join(three("g", "a", bad), series("c", "b", good, bad, good))},
		{"no control", unsafe, Inconclusive, "no scenario was run of c", three("g", "a", bad)},
		{"the control is unknown", unsafe, Inconclusive, "control", join(three("g", "a", bad), three("c", "b", unknown))},
		{"unsafe, but two repeats", unsafe, Inconclusive, "2 of the 3", join(series("g", "a", bad, bad), three("c", "b", good))},
		{"one recipe of two has too few", unsafe, Inconclusive, "1 of the 3", join(three("g", "a", bad), series("g", "b", bad), three("c", "b", good))},
		{"unsafe, but a fault missed", unsafe, Inconclusive, "missed", join(series("g", "a", bad, bad, missed), three("c", "b", good))},

		{"always safe", safe, Confirmed, "3 of 3", three("g", "a", good)},
		{"one counterexample", safe, Refuted, "not in g-a-r2", series("g", "a", good, bad, good)},
		{"one counterexample of one", safe, Refuted, "not in g-a-r1", series("g", "a", bad)},
		{"safe or unknown", safe, Inconclusive, "unknown", series("g", "a", good, unknown, good)},
		{"safe, but a fault missed", safe, Inconclusive, "missed", series("g", "a", good, missed, good)},
		{"safe twice", safe, Inconclusive, "2 of the 3", series("g", "a", good, good)},
		{"nothing ran", safe, Inconclusive, "no scenario was run of g", nil},

		{"above a limit", limit, Confirmed, "throughput 60/s", rates("g", "a", 60, 70, 55)},
		{"below a limit", limit, Refuted, "0 of 3", rates("g", "a", 40, 41, 42)},
		{"around a limit", limit, Inconclusive, "disagree", rates("g", "a", 40, 60, 70)},

		{"a property that two guarantee and have", holds, Confirmed, "2 of 2", join(series("g", "a", measuredProperty("yes", "yes")), series("g", "b", measuredProperty("yes", "yes")), series("g", "c", measuredProperty("no", "no")))},
		{"a property that one guarantees and lacks", holds, Refuted, "not in g-b-r1", join(series("g", "a", measuredProperty("yes", "yes")), series("g", "b", measuredProperty("yes", "no")))},
		{"a property left open", holds, Inconclusive, "unknown", series("g", "a", measuredProperty("yes", "unknown"))},
		{"a property that none guarantees", holds, Inconclusive, "0 of the 1", series("g", "a", measuredProperty("no", "no"))},
		{"a part that nothing measures", "{unmeasured: no server}", Inconclusive, "no server", nil},
	} {
		d := decideRule(t, tt.rule, tt.results)
		if d.Verdict != tt.want || !strings.Contains(d.Reason, tt.reason) {
			t.Errorf("%s: %s (%s), want %s (... %s ...)", tt.name, d.Verdict, d.Reason, tt.want, tt.reason)
		}
		if d.Verdict != Inconclusive && len(d.Parts[0].Scenarios) == 0 {
			t.Errorf("%s: a verdict without scenarios", tt.name)
		}
	}
}

// Two sides are compared within each run, so that a machine that is faster in one of
// them changes nothing.
func TestRunsOnAFasterMachine(t *testing.T) {
	run := func(lists ...[]scenario.Result) Run {
		return Run{Document: scenario.Document{Scenarios: join(lists...)}}
	}
	slow := run(rates("g", "a", 30, 31, 32), rates("g", "b", 20, 20, 21))
	fast := run(rates("g", "a", 90, 91, 92), rates("g", "b", 60, 61, 62))
	same := run(rates("g", "a", 90, 91, 92), rates("g", "b", 90, 91, 92))
	for _, tt := range []struct {
		name, rule, want, reason string
		runs                     []Run
	}{
		{"both decide", faster, Confirmed, "1.52x (1.43x to 1.60x) within each of 2 runs", []Run{slow, fast}},
		{"both decide against it", slower, Refuted, "1.52x", []Run{slow, fast}},
		{"they disagree", faster, Inconclusive, "within the spread", []Run{slow, same}},
		{"one side each", faster, Inconclusive, "only 0 of the 3 repeats needed are of runs that measured both sides", []Run{run(rates("g", "a", 30, 31, 32)), run(rates("g", "b", 20, 20, 21))}},
		{"a side more in one of them", faster, Confirmed, "1.49x (1.45x to 1.53x)", []Run{fast, run(rates("g", "b", 1, 1, 1))}},
	} {
		list, err := parse([]byte("claims:\n- {id: x, claim: c, documents: [S1], experiment: e, rule: [" + tt.rule + "]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		if d := Decide(list, tt.runs)[0]; d.Verdict != tt.want || !strings.Contains(d.Reason, tt.reason) {
			t.Errorf("%s: %s (%s), want %s (%s)", tt.name, d.Verdict, d.Reason, tt.want, tt.reason)
		}
	}
}

func TestAClaimHasTheVerdictOfItsWorstPart(t *testing.T) {
	bad, good := three("g", "a", verdict(scenario.Unsafe)), three("h", "a", verdict(scenario.Safe))
	is := func(group string) string {
		return "{says: s-" + group + ", show: verdict = safe, of: {in: [" + group + "]}}"
	}
	for _, tt := range []struct{ rule, want, reason string }{
		{is("h") + "," + is("h"), Confirmed, "of 2 parts 2 confirmed"},
		{is("h") + "," + is("missing"), Inconclusive, "1 confirmed, 1 inconclusive: s-missing: no scenario"},
		{is("missing") + "," + is("g") + "," + is("h"), Refuted, "1 confirmed, 1 refuted, 1 inconclusive: s-g"},
	} {
		if d := decideRule(t, tt.rule, join(bad, good)); d.Verdict != tt.want || !strings.Contains(d.Reason, tt.reason) {
			t.Errorf("%s: %s (%s), want %s (%s)", tt.rule, d.Verdict, d.Reason, tt.want, tt.reason)
		}
	}
}

func TestRepeatsOfSeveralRunsCountTogether(t *testing.T) {
	list, err := parse([]byte("claims:\n- {id: x, claim: c, documents: [S1], experiment: e, rule: [" + safe + "]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	one := scenario.Document{Scenarios: series("g", "a", verdict(scenario.Safe), verdict(scenario.Safe))}
	d := Decide(list, []Run{{Prefix: "r1", Document: one}, {Prefix: "r2", Document: one}})[0]
	if d.Verdict != Confirmed || !strings.Contains(d.Reason, "4 of 4") || d.Parts[0].Scenarios[2] != "r2/scenarios/g-a-r1" {
		t.Errorf("%s: %s, %v", d.Verdict, d.Reason, d.Parts[0].Scenarios)
	}
}

func TestRankShowsPlacesTiesAndDifferences(t *testing.T) {
	list, err := parse([]byte(`claims:
- id: rank
  claim: c
  documents: [S1]
  experiment: e
  rank: {order: a > b >= c, also: {d: left open}, absent: {z: no server}, by: [{metric: throughput, in: [g], best: most, counts: 1.2x}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	d := Decide(list, []Run{{Document: scenario.Document{Scenarios: join(
		rates("g", "a", 100, 101, 99), rates("g", "b", 200, 199, 201), rates("g", "c", 105, 104, 106), rates("g", "d", 50, 51, 49))}}})[0]
	if d.Verdict != Refuted || d.Parts[0].Verdict != Refuted || d.Parts[1].Verdict != Confirmed {
		t.Errorf("%s: %+v", d.Verdict, d.Parts)
	}
	want := map[string]string{"a": "1, 2: 100/s", "b": "2, 1: 200/s", "c": "3 or tied, 2: 105/s", "d": "–, 4: 50/s", "z": "–, –"}
	for _, row := range d.Tables[0].Rows {
		if got := row.Cells[0].Text + ", " + row.Cells[1].Text; got != want[row.Name] {
			t.Errorf("%s: documents' place and measured place %q, want %q", row.Name, got, want[row.Name])
		}
	}
	notes := strings.Join(d.Tables[0].Notes, "\n")
	for _, want := range []string{"Difference: a > b by throughput (g): refuted: 100/s", "z was not run: no server."} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note %q in\n%s", want, notes)
		}
	}
}

func TestCountedRank(t *testing.T) {
	list, err := parse([]byte(`claims:
- id: rank
  claim: c
  documents: [S1]
  experiment: e
  rank: {order: a > b > c, by: [{metric: concepts, in: [g], best: least, counts: 1.2x, counted: {a: [x], b: [x, y]}}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	d := Decide(list, []Run{{Document: scenario.Document{Scenarios: join(rates("g", "a", 1), rates("g", "b", 1), rates("g", "c", 1))}}})[0]
	if d.Parts[0].Verdict != Confirmed || d.Parts[1].Verdict != Inconclusive {
		t.Errorf("%+v", d.Parts)
	}
}

func TestCurvesFindTheirCrossing(t *testing.T) {
	at := func(clients int, recipe string, v float64) []scenario.Result {
		return three("g", recipe, func(r *scenario.Result) { r.Clients, r.Throughput = clients, &v })
	}
	e := func(lists ...[]scenario.Result) Table {
		list, err := parse([]byte("claims:\n- {id: x, claim: c, documents: [S1], experiment: e, rule: [" + safe + "], curves: [{title: t, metric: throughput, x: clients, of: {in: [g]}}]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return Decide(list, []Run{{Document: scenario.Document{Scenarios: join(lists...)}}})[0].Tables[0]
	}
	crossed := e(at(2, "a", 10), at(2, "b", 20), at(8, "a", 15), at(8, "b", 15), at(32, "a", 30), at(32, "b", 20))
	if got := crossed.Notes[0]; got != "Crossing: a is lower up to clients 2, b from 32 on." {
		t.Errorf("crossing: %q", got)
	}
	if len(crossed.Rows) != 3 || crossed.Rows[2].Name != "32" || crossed.Rows[2].Cells[0].Median != 30 {
		t.Errorf("rows: %+v", crossed.Rows)
	}
	if got := e(at(2, "a", 10), at(2, "b", 20)).Notes[0]; !strings.Contains(got, "No crossing: a is lower") {
		t.Errorf("one-sided: %q", got)
	}
	if got := e().Notes[0]; !strings.Contains(got, "not measured") {
		t.Errorf("empty: %q", got)
	}
}

func TestWrongRulesAreRejected(t *testing.T) {
	for _, rule := range []string{
		"{compare: speed, of: {in: [g]}, to: {in: [h]}, least: 1.2x}",
		"{compare: throughput, of: {in: [g]}, to: {in: [h]}}",
		"{compare: throughput, of: {in: [g]}, to: {in: [h]}, least: 1.2}",
		"{compare: throughput, of: {in: [g]}, to: {in: [h]}, least: 0.5x}",
		"{compare: throughput, of: {in: [g]}, to: {in: [h]}, least: 2x, under: 2x}",
		"{show: verdict = fine, of: {in: [g]}}",
		"{show: throughput > x, of: {in: [g]}}",
		"{show: verdict = safe}",
	} {
		if _, err := parse([]byte("claims:\n- {id: x, claim: c, documents: [S1], experiment: e, rule: [" + rule + "]}\n")); err == nil {
			t.Errorf("%s: no error", rule)
		}
	}
}
