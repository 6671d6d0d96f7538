package main

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/run"
	"github.com/lockbench/lockbench/internal/scenario"
)

// The outcomes are in one column for names of any length.
func TestProgressColumns(t *testing.T) {
	names := []string{"short", "a-name-" + strings.Repeat("x", 60), "middling"}
	var plan scenario.Resolved
	for _, name := range names {
		plan.Scenarios = append(plan.Scenarios, scenario.Scenario{Name: name})
	}
	var out bytes.Buffer
	p := newProgress(&out, plan)
	for i, sc := range plan.Scenarios {
		p.Begin(i+1, len(names), sc)
		p.Done(scenario.Result{Name: sc.Name, Status: scenario.StatusMissing})
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")[1:]
	if len(lines) != len(names) {
		t.Fatalf("%d lines for %d scenarios:\n%s", len(lines), len(names), out.String())
	}
	for _, line := range lines {
		if at, want := strings.Index(line, "missing"), len("[1/3] "+names[1]+" "); at != want {
			t.Errorf("the outcome stands in column %d, want %d: %q", at, want, line)
		}
	}
}

// A lock that is held for seconds has few grants, but not 0/s.
func TestProgressSmallNumbers(t *testing.T) {
	for perSecond, want := range map[float64]string{0: "0/s", 0.083: "0.083/s", 0.58: "0.58/s", 4: "4/s", 9.94: "9.9/s", 9.97: "10/s", 1234.4: "1234/s"} {
		if got := rateText(perSecond); got != want {
			t.Errorf("%v grants a second read %q, want %q", perSecond, got, want)
		}
	}
	asExpected := true
	for overlaps, want := range map[int64]string{0: "unsafe, guarantee kept, live", 1: "unsafe, guarantee kept, live; 1 overlap", 2: "unsafe, guarantee kept, live; 2 overlaps"} {
		r := scenario.Result{Status: scenario.StatusDone, AsExpected: &asExpected}
		r.Workload.Kind = scenario.HotKey
		r.Safety.Verdict, r.Safety.Promise, r.Safety.Liveness, r.Safety.Overlaps = scenario.Unsafe, scenario.Kept, scenario.Live, overlaps
		if got := newProgress(&bytes.Buffer{}, scenario.Resolved{}).outcome(r); got != want {
			t.Errorf("%d overlaps read %q, want %q", overlaps, got, want)
		}
	}
}

// The lines of a terminal are how far the run is, and one for each scenario that
// runs. They fit the terminal, and nothing else remains of them.
func TestProgressLines(t *testing.T) {
	t.Setenv("COLUMNS", "80")
	long := "contended-" + strings.Repeat("x", 80)
	var plan scenario.Resolved
	for _, name := range []string{"first", long, "third"} {
		plan.Scenarios = append(plan.Scenarios, scenario.Scenario{Name: name, Warmup: scenario.Duration(2 * time.Second), Duration: scenario.Duration(8 * time.Second)})
	}
	first, second, third := plan.Scenarios[0], plan.Scenarios[1], plan.Scenarios[2]
	var out bytes.Buffer
	p := newProgress(&out, plan)
	p.terminal, p.color = true, true
	out.Reset()
	check := func(want ...string) {
		t.Helper()
		got := terminalLines(out.String())
		if !slices.Equal(got, want) {
			t.Errorf("the terminal shows\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, line := range got {
			if n := utf8.RuneCountInString(line); n >= columns(&out, 0) && !strings.HasPrefix(line, "[") { // what stays may wrap
				t.Errorf("%d columns: %q", n, line)
			}
		}
	}
	at := p.started
	p.now = func() time.Time { return at }
	p.Begin(1, 3, first)
	check("0 of 3 done", "  first")
	at = at.Add(7 * time.Second)
	p.Tick(first, run.Status{Elapsed: 5 * time.Second, Total: 10 * time.Second, Acquired: 100})
	check("0 of 3 done, 35s left", "  first 5.0s of 10.0s, 20/s")
	p.Call(first, &history.Call{Kind: history.KindAcquire, Outcome: history.Held, Invoke: 1, Return: 1 + int64(time.Second), Flags: history.FlagWarmup})
	p.Call(first, &history.Call{Kind: history.KindAcquire, Outcome: history.Failed, Invoke: 1, Return: 1 + int64(time.Second)})
	p.Call(first, &history.Call{Kind: history.KindAcquire, Outcome: history.Held, Invoke: 1, Return: 1 + int64(2*time.Millisecond)})
	p.Call(first, &history.Call{Kind: history.KindWrite, Outcome: history.Accepted, Invoke: 1, Return: 2, Flags: history.FlagStale})
	p.Violation(first, "two clients hold k0")
	p.Tick(first, run.Status{Elapsed: 5 * time.Second, Total: 10 * time.Second, Acquired: 100, DoubleHolds: 2})
	lines := []string{"[1/3] first: two clients hold k0", "0 of 3 done, 35s left, 1 unsafe", "  first 5.0s of 10.0s, 20/s, p99 2.01ms, 2 double holds, 1 stale write"}
	check(lines...)
	if !strings.Contains(out.String(), "\x1b[31m2 double holds\x1b[0m") {
		t.Error("violations are not red")
	}
	at = at.Add(5 * time.Second)
	p.Done(scenario.Result{Name: "first", Status: scenario.StatusMissing})
	lines = []string{lines[0], terminalLines(out.String())[1]} // the outcome: TestProgressColumns
	check(lines...)
	p.loaded = 10 * time.Second
	p.all = 30 * time.Second
	p.Begin(2, 3, second)
	p.Begin(3, 3, third)
	p.Tick(second, run.Status{Total: 10 * time.Second})
	p.Tick(third, run.Status{Elapsed: 5 * time.Second, Total: 10 * time.Second, Acquired: 12})
	check(append(lines, "1 of 3 done, 12s left, 1 unsafe", "  contended-"+strings.Repeat("x", 52)+"… 0.0s of 10.0s", "  third 5.0s of 10.0s, 2.4/s")...)
	p.Note("stopping") // as Ctrl-C does
	lines = append(lines, "stopping")
	p.Done(scenario.Result{Name: long, Status: scenario.StatusInterrupted})
	check(append(lines, "2 of 3 done, 4s left, 1 unsafe", "  third 5.0s of 10.0s, 2.4/s")...)
	p.Done(scenario.Result{Name: "third", Status: scenario.StatusInterrupted})
	check(lines...)
	out.Reset()
	t.Setenv("COLUMNS", "20")
	p.Begin(3, 3, third)
	p.Tick(third, run.Status{Elapsed: 5 * time.Second, Total: 10 * time.Second, Acquired: 12})
	check("3 of 3 done, 1 unsa", "  … 5.0s of 10.0s, ")
}

// terminalLines is what a terminal shows after a text that moves the cursor up over
// whole lines and clears all below.
func terminalLines(text string) []string {
	shown := []string{}
	for _, line := range strings.SplitAfter(text, "\n") {
		for strings.HasPrefix(line, "\r\x1b[") {
			up, rest, _ := strings.Cut(line[len("\r\x1b["):], "A\x1b[J")
			n, err := strconv.Atoi(up)
			if err != nil || n > len(shown) {
				return append(shown, "wrong sequence: "+strconv.Quote(line))
			}
			shown, line = shown[:len(shown)-n], rest
		}
		if line != "" {
			shown = append(shown, stripColor(strings.TrimSuffix(line, "\n")))
		}
	}
	return shown
}

// Output that is no terminal has plain lines, and none for each moment.
func TestProgressPlain(t *testing.T) {
	var plan scenario.Resolved
	plan.Scenarios = []scenario.Scenario{{Name: "only"}}
	var out bytes.Buffer
	p := newProgress(&out, plan)
	p.Begin(1, 1, plan.Scenarios[0])
	p.Tick(plan.Scenarios[0], run.Status{Elapsed: time.Second, Total: time.Second, Acquired: 1})
	p.Violation(plan.Scenarios[0], "two clients hold k0")
	p.Done(scenario.Result{Name: "only", Status: scenario.StatusMissing})
	if got := out.String(); strings.ContainsAny(got, "\r\x1b") || strings.Count(got, "\n") != 3 {
		t.Errorf("%q", got)
	}
}
