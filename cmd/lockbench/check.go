package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/run"
	"github.com/lockbench/lockbench/internal/scenario"
)

// checking has the flags of check.
type checking struct {
	format  string
	model   measure.Model
	explain int // number of the violation to draw; 0: none
	export  string
	merge   bool
}

func (a *app) checkCommand() *cobra.Command {
	var o checking
	var trust string
	cmd := &cobra.Command{
		Use:   "check DIR|FILE...",
		Short: "Check a run or any history again",
		Long: `Read recorded histories and judge them again.

For the folder of a run or a scenario, compare the result with the expectations of the scenario.

For a history, exit with the raw verdict: 0 safe, 3 unsafe, stuck or guarantee broken, 5 unknown or
damaged, 2 without a readable record. A history is a file of lockbench, JSON lines, or Jepsen's EDN;
"-" is standard input. The logs of your own lock can be checked too: see docs/history-format.md for the
format of a line. --model states the guarantee of the lock. Without it the lock is assumed to be a
lease that can end whenever it is not renewed, which accuses least.

--format json prints one document per history.

--explain N draws violation N as a timeline. --export writes the history in another format instead of
judging it; trace is for a viewer such as Perfetto or speedscope, with the faults of the scenario.

Several files are checked one by one. If they are logs of one history, such as one from each host, add
--merge: each is then read as if it continued the one before.`,
		Example: `  lockbench check results/2026-01-31T120000-quick
  lockbench check --model lease --ttl 30s production-lock.jsonl
  lockbench check --model mutex jepsen/store/latest/history.edn --explain 1`,
		Args: argCount(cobra.MinimumNArgs(1), "a run's folder, a scenario's folder, or history files"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.model.Kind != "" && !slices.Contains(measure.Models(), o.model.Kind) {
				return usage(fmt.Errorf("--model %s: want one of %s", o.model.Kind, strings.Join(measure.Models(), ", ")))
			}
			if o.model.TTL != 0 && o.model.Kind != "" && o.model.Kind != measure.ModelLease {
				return usage(fmt.Errorf("--ttl %v is for --model lease; a %s has none", o.model.TTL, o.model.Kind))
			}
			if o.model.TTL < 0 || o.model.Takeover < 0 || o.explain < 0 {
				return usage(errors.New("--ttl, --takeover and --explain must not be negative"))
			}
			if _, ok := exporters()[o.export]; !ok && o.export != "" {
				return usage(fmt.Errorf("--export %s: want jsonl, edn or trace", o.export))
			}
			if o.model.TTL > 0 && o.model.TTL < measure.MinTTL {
				return usage(fmt.Errorf("--ttl %v proves nothing: clocks of servers are not exact, so the check takes 200ms off; want at least %v, or leave it out", o.model.TTL, measure.MinTTL))
			}
			switch trust {
			case "", "hold":
			case "lease-end":
				o.model.TrustLeaseEnd = true
			default:
				return usage(fmt.Errorf("--trust %s: want hold or lease-end", trust))
			}
			if o.export != "" && (o.explain != 0 || o.format == "json") {
				return usage(errors.New("--export does not judge the history; leave --explain and --format out"))
			}
			if o.merge {
				return a.checkMerged(cmd.Context(), args, o)
			}
			return a.check(cmd.Context(), args, o)
		},
	}
	f := cmd.Flags()
	addFormat(cmd, &o.format, "text", "json")
	f.StringVar(&o.model.Kind, "model", "", "guarantee of the lock: "+strings.Join(measure.Models(), ", "))
	f.DurationVar(&o.model.TTL, "ttl", 0, "for a lease: how long the server keeps it (0: it can end at any time)")
	f.DurationVar(&o.model.Takeover, "takeover", 0, "longest time that a key may stay free while clients wait (0: do not judge liveness)")
	f.StringVar(&trust, "trust", "hold", "until when a client acts as the holder: hold (its release or loss) or lease-end (its recorded lease_end)")
	f.IntVar(&o.explain, "explain", 0, "draw violation N, as numbered by check")
	f.BoolVar(&o.merge, "merge", false, "the files are logs of one history: check them together")
	f.StringVar(&o.export, "export", "", "write the history as jsonl, edn or trace instead of judging it")
	return cmd
}

// check judges each path; the gravest exit code counts.
func (a *app) check(ctx context.Context, paths []string, o checking) error {
	worst := exitOK
	var errs, unexplained []error
	for i, path := range paths {
		if len(paths) > 1 && o.format == "text" && o.export == "" && o.explain == 0 {
			if i > 0 {
				fmt.Fprintln(a.stdout)
			}
			fmt.Fprintf(a.stdout, "%s:\n", path)
		}
		switch err := a.checkPath(ctx, path, o); {
		case errors.Is(err, errNoViolation):
			unexplained = append(unexplained, fmt.Errorf("%s: %w", path, err))
		case err != nil:
			errs = append(errs, err)
			continue
		}
		worst = graver(worst, a.code)
	}
	// It is enough if one of several histories has that violation.
	if len(unexplained) == len(paths) {
		errs = append(errs, unexplained...)
	}
	a.code = worst
	return errors.Join(errs...)
}

func (a *app) checkPath(ctx context.Context, path string, o checking) error {
	if path == stdinPath {
		return a.checkStdin(ctx, o)
	}
	st, err := os.Stat(path)
	if err != nil {
		return usage(fmt.Errorf("%w; want a run's folder, a scenario's folder or a history file", err))
	}
	switch {
	case st.Mode()&(fs.ModeNamedPipe|fs.ModeCharDevice|fs.ModeSocket) != 0:
		return a.checkPipe(ctx, path, o)
	case !st.IsDir():
		return a.checkFile(path, o)
	case exists(filepath.Join(path, scenario.FileScenario)):
		if o.export != "" {
			return a.checkFile(filepath.Join(path, scenario.FileHistory), o)
		}
		return a.checkScenarios(scenario.Document{}, []string{path}, o)
	case exists(filepath.Join(path, scenario.FileSuite)), exists(filepath.Join(path, scenario.FileResult)):
		if o.export != "" {
			return usage(fmt.Errorf("--export takes one history: name one of the folders in %s", filepath.Join(path, scenario.DirScenarios)))
		}
		return a.checkRun(path, o)
	}
	return a.checkFile(path, o) // can be a folder with a file per client
}

// checkRun judges every scenario of a run's folder, finished or not.
func (a *app) checkRun(dir string, o checking) error {
	if run.Live(dir) {
		fmt.Fprintln(a.stderr, "lockbench: the run is still running; checking what it has written so far")
	}
	doc, err := scenario.ReadDocument(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fmt.Fprintln(a.stderr, "lockbench: the run did not finish (no "+scenario.FileResult+"); checking the histories of its scenarios")
		doc.Interrupted = true
	case err != nil:
		return usage(fmt.Errorf("%s: %w", filepath.Join(dir, scenario.FileResult), err))
	}
	scenarios, err := filepath.Glob(filepath.Join(dir, scenario.DirScenarios, "*"))
	if err != nil {
		return err
	}
	if len(scenarios) == 0 {
		return fmt.Errorf("%s: %w: no scenario began", dir, history.ErrNoRecords)
	}
	return a.checkScenarios(doc, scenarios, o)
}

// checkScenarios judges scenarios by their folders. From doc it takes only the
// scenarios that did not run, for example because of a missing backend.
func (a *app) checkScenarios(doc scenario.Document, dirs []string, o checking) error {
	folders := map[string]string{}
	var order []string
	for _, dir := range dirs {
		folders[filepath.Base(dir)] = dir
		order = append(order, filepath.Base(dir))
	}
	known := map[string]scenario.Result{}
	if len(doc.Scenarios) > 0 {
		order = order[:0]
		for _, r := range doc.Scenarios {
			known[r.Name] = r
			order = append(order, r.Name)
		}
	}
	var unreadable []error
	out := scenario.Document{Schema: scenario.SchemaVersion, Lockbench: version().Short(), Suite: doc.Suite, Seed: doc.Seed, Interrupted: doc.Interrupted}
	for _, name := range order {
		dir, ok := folders[name]
		if !ok {
			r := known[name]
			if r.Status == scenario.StatusDone {
				r = unproved(r, name, "its folder is missing, so nothing proves its result in result.json")
			}
			out.Scenarios = append(out.Scenarios, r)
			continue
		}
		r, err := a.remeasure(dir)
		if errors.Is(err, history.ErrNoRecords) {
			unreadable = append(unreadable, err)
		}
		if err != nil {
			r = unproved(known[name], name, err.Error())
		} else if was := known[name]; was.Status == scenario.StatusInterrupted || was.Status == scenario.StatusFailed {
			r.Status, r.Reason = was.Status, was.Reason
		}
		if r.Fails() {
			r.KnownFailure = known[name].KnownFailure
		}
		out.Scenarios = append(out.Scenarios, r)
	}
	// Known answers of an interrupted run count as usual; otherwise it is
	// inconclusive.
	whole := out
	whole.Interrupted = false
	a.code = judge(whole)
	if doc.Interrupted && (a.code == exitOK || a.code == exitThreshold) {
		a.code = exitInconclusive
	}
	if len(unreadable) == len(order) {
		return errors.Join(unreadable...)
	}
	if o.explain > 0 {
		return a.explainOne(out.Scenarios, o.explain)
	}
	if o.format == "json" {
		return a.printJSON(out)
	}
	n, width := 0, 0
	for _, r := range out.Scenarios {
		width = max(width, len(r.Name))
	}
	for _, r := range out.Scenarios {
		a.printSafety(r, width, &n)
	}
	return nil
}

// explainOne draws the n-th violation of all scenarios.
func (a *app) explainOne(scenarios []scenario.Result, n int) error {
	total := 0
	for _, r := range scenarios {
		total += len(r.Safety.Witnesses)
	}
	before := 0
	for _, r := range scenarios {
		if i := n - 1 - before; i < len(r.Safety.Witnesses) {
			explain(a.stdout, r.Name, n, total, r.Safety.Witnesses[i], r.Faults)
			return nil
		}
		before += len(r.Safety.Witnesses)
	}
	if total == 0 {
		return usage(fmt.Errorf("--explain %d: %w", n, errNoViolation))
	}
	return usage(fmt.Errorf("--explain %d: %w: the check shows %d violations; only the first few of each class are kept", n, errNoViolation, total))
}

// errNoViolation is returned if --explain names a violation that the check does not
// show.
var errNoViolation = errors.New("no violation to explain")

// unproved is the result of a scenario whose files no longer prove its answers: they
// become unknown.
func unproved(r scenario.Result, name, why string) scenario.Result {
	r.Name, r.Status, r.Reason, r.AsExpected = name, scenario.StatusInterrupted, why, nil
	r.Safety = scenario.Unjudged(why)
	return r
}

func (a *app) remeasure(dir string) (scenario.Result, error) {
	var sc scenario.Scenario
	if err := scenario.ReadJSON(filepath.Join(dir, scenario.FileScenario), &sc); err != nil {
		return scenario.Result{}, fmt.Errorf("read the scenario: %w", err)
	}
	recipe, ok := find(sc.Recipe)
	if !ok {
		return scenario.Result{}, unknownRecipe(sc.Recipe)
	}
	r, err := measure.Scenario(dir, recipe.Info(), measure.Options{SkipLatencyFile: true})
	return r, err
}

// printSafety prints one scenario, with its name in a column of the given width; n
// counts the printed violations.
func (a *app) printSafety(r scenario.Result, width int, n *int) {
	s := r.Safety
	mark := "passed"
	switch {
	case r.Status != scenario.StatusDone:
		mark = string(r.Status) + ": " + r.Reason
	case r.KnownFailure != "":
		mark = "known to fail: " + r.KnownFailure
	case r.AsExpected == nil:
		mark = "inconclusive"
	case !*r.AsExpected:
		mark = "NOT AS EXPECTED"
	}
	fmt.Fprintf(a.stdout, "%-*s  %-7s  guarantee %-7s  %-7s  %s\n", width, r.Name, s.Verdict, s.Promise, s.Liveness, mark)
	for _, line := range r.Surprises {
		fmt.Fprintf(a.stdout, "    %s\n", line)
	}
	for _, line := range s.Damage {
		fmt.Fprintf(a.stdout, "    damage: %s\n", line)
	}
	for _, w := range s.Witnesses {
		*n++
		fmt.Fprintf(a.stdout, "    [%d] %s: %s\n", *n, w.Class, w.Sentence)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
