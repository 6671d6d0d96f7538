package reports

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

// The headline is about safety, whatever was expected.
func TestHeadlines(t *testing.T) {
	run := func(recipe, verdict, liveness string, overlaps int64, faults ...string) result {
		r := result{Recipe: "redis/" + recipe, Backend: "redis", Group: strings.Join(faults, "+"), Status: scenario.StatusDone, AsExpected: ptr(true)}
		r.Workload.Kind = scenario.HotKey
		r.Safety = scenario.Safety{Verdict: verdict, Promise: scenario.Kept, Liveness: liveness, Overlaps: overlaps}
		for _, f := range faults {
			r.Faults = append(r.Faults, scenario.FaultResult{Kind: f, Status: "effective"})
		}
		return r
	}
	control := run("broken", scenario.Unsafe, scenario.Live, 9)
	control.Backend = reference
	missing := run("gone", "", "", 0)
	missing.Status = scenario.StatusMissing
	for _, c := range []struct {
		name string
		runs []result
		want []headline
	}{
		{"nothing ran", []result{missing}, nil},
		{"controls do not count", []result{control}, nil},
		{"all safe", []result{run("a", scenario.Safe, scenario.Live, 0), run("b", scenario.Safe, scenario.Live, 0)},
			[]headline{{"All 2 locks kept one holder at a time without faults.", good}}},
		{"the worst repeat counts", []result{run("a", scenario.Safe, scenario.Live, 0), run("a", scenario.Unsafe, scenario.Live, 2)},
			[]headline{{"Without faults: 1 of 1 lock let two clients hold the lock at once.", bad}}},
		{"damage without an overlap", []result{run("a", scenario.Unsafe, scenario.Live, 0, "holder-pause")},
			[]headline{{"Under holder-pause: 1 of 1 lock unsafe.", bad}}},
		{"unknown is not safe", []result{run("a", scenario.Undecided, scenario.Live, 0, "holder-pause"), run("b", scenario.Safe, scenario.Live, 0, "holder-pause")},
			[]headline{{"Under holder-pause: 1 of 2 locks not proven safe.", warn}}},
		{"stuck", []result{run("a", scenario.Safe, scenario.Stuck, 0, "holder-kill")},
			[]headline{{"Under holder-kill: 1 of 1 lock stuck: free but not granted to a waiting client.", bad}}},
		{"many faults", []result{run("a", scenario.Unsafe, scenario.Live, 1, "f1"), run("a", scenario.Safe, scenario.Live, 0, "f2"), run("b", scenario.Safe, scenario.Live, 0, "f3"), run("b", scenario.Safe, scenario.Live, 0, "f4")},
			[]headline{{"Under at least one fault tried on it: 1 of 2 locks let two clients hold the lock at once.", bad}}},
		{"many faults, all safe", []result{run("a", scenario.Safe, scenario.Live, 0, "f1"), run("a", scenario.Safe, scenario.Live, 0, "f2"), run("a", scenario.Safe, scenario.Live, 0, "f3"), run("a", scenario.Safe, scenario.Live, 0, "f4")},
			[]headline{{"The one lock kept one holder at a time under all 4 faults.", good}}},
	} {
		got := headlines(groupByFault(scenario.Document{Scenarios: c.runs}))
		if len(got) != len(c.want) || len(got) > 0 && got[0] != c.want[0] {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// Every format begins with the unsafe locks, in red where there are colours, before
// it says how many scenarios passed.
func TestHeadlineComesFirst(t *testing.T) {
	d := quickDoc()
	const unsafe, passed = "Under holder-pause: 3 of 5 locks let two clients hold the lock at once", "36 scenarios, "
	c := build(run{doc: d})
	page, err := renderHTML(c, run{doc: d}, false)
	if err != nil {
		t.Fatal(err)
	}
	for format, text := range map[string]string{
		`<p class="headline bad">`: string(page),
		"**":                       renderMarkdown(c),
		"\x1b[31m":                 renderText(c, TextOptions{Color: true}),
	} {
		at, then := strings.Index(text, format+unsafe), strings.Index(text, passed)
		if at < 0 || then < at {
			t.Errorf("%q is at %d and %q at %d in\n%s", format+unsafe, at, passed, then, text[:600])
		}
	}
}

// A scenario that passed shows its verdict beside that.
func TestUnsafeIsShownBesidePassed(t *testing.T) {
	d := quickDoc()
	page, err := renderHTML(build(run{doc: d}), run{doc: d}, false)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), `<span class="tag bad">unsafe</span> <span class="tag good">passed</span>`) {
		t.Error("no scenario of the page is both passed and unsafe")
	}
}
