package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/measure"
	"github.com/lockbench/lockbench/run"
	"github.com/lockbench/lockbench/scenario"
)

func (a *app) checkCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "check DIR|FILE",
		Short: "Check a run, or a history, again",
		Long: `Check reads recorded histories and judges them again.

Given a run's folder, or a scenario's, it judges by what the scenarios expect. Given a history file it
judges by the raw verdict: 0 safe, 3 unsafe or promise broken, 5 unknown or damaged, 2 if it holds not
one readable record.`,
		Args: argCount(cobra.ExactArgs(1), "one run's folder, scenario's folder or history file"),
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "text" && format != "json" {
				return usage(fmt.Errorf("--format %s: want text or json", format))
			}
			return a.check(args[0], format)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
}

func (a *app) check(path, format string) error {
	st, err := os.Stat(path)
	if err != nil {
		return usage(fmt.Errorf("%w; give a run's folder, a scenario's folder or a history file", err))
	}
	switch {
	case !st.IsDir():
		return a.checkFile(path, format)
	case exists(filepath.Join(path, scenario.FileScenario)):
		return a.checkScenarios(scenario.Document{}, []string{path}, format)
	case exists(filepath.Join(path, scenario.FileSuite)), exists(filepath.Join(path, scenario.FileResult)):
		return a.checkRun(path, format)
	}
	return a.checkFile(path, format) // perhaps a folder of clients' files
}

// checkRun judges every scenario of a run's folder, finished or not.
func (a *app) checkRun(dir, format string) error {
	if run.Live(dir) {
		fmt.Fprintln(a.stderr, "lockbench: this run is still going on; what it has written so far is checked")
	}
	doc, err := run.LoadDocument(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fmt.Fprintln(a.stderr, "lockbench: this run did not finish: no "+scenario.FileResult+"; what its scenarios left is checked")
		doc.Interrupted = true
	case err != nil:
		return usage(fmt.Errorf("%s: %w", filepath.Join(dir, scenario.FileResult), err))
	}
	scenarios, err := filepath.Glob(filepath.Join(dir, scenario.DirScenarios, "*"))
	if err != nil {
		return err
	}
	if len(scenarios) == 0 {
		return fmt.Errorf("%s: %w: no scenario has begun", dir, history.ErrNoRecords)
	}
	return a.checkScenarios(doc, scenarios, format)
}

// checkScenarios judges scenarios by their folders. What doc says of ones that
// did not run (missing backends) stands as it is; what it says of any other is
// taken only from the scenario's files.
func (a *app) checkScenarios(doc scenario.Document, dirs []string, format string) error {
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
	out := scenario.Document{Schema: scenario.SchemaVersion, Lockbench: fullVersion(), Suite: doc.Suite, Seed: doc.Seed, Interrupted: doc.Interrupted}
	for _, name := range order {
		dir, ok := folders[name]
		if !ok {
			r := known[name]
			if r.Status == scenario.StatusDone {
				r = unproved(r, name, "its folder is gone: nothing proves what result.json says of it")
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
		out.Scenarios = append(out.Scenarios, r)
	}
	// Nobody interrupted the check: what is certain of a run that was cut short
	// is judged as ever, and the rest is inconclusive.
	whole := out
	whole.Interrupted = false
	a.code = judge(whole)
	if doc.Interrupted && (a.code == exitOK || a.code == exitThreshold) {
		a.code = exitInconclusive
	}
	if len(unreadable) == len(order) {
		return errors.Join(unreadable...)
	}
	if format == "json" {
		return a.printJSON(out)
	}
	for _, r := range out.Scenarios {
		a.printSafety(r)
	}
	return nil
}

// unproved is the result of a scenario whose files do not show it any more:
// its name and plan stand, its answers do not.
func unproved(r scenario.Result, name, why string) scenario.Result {
	r.Name, r.Status, r.Reason, r.AsExpected = name, scenario.StatusInterrupted, why, nil
	r.Safety = scenario.Safety{
		Verdict: scenario.Undecided, Promise: scenario.Undecided, Liveness: scenario.Undecided, Causes: []scenario.Cause{},
		Why: map[string]string{"verdict": why, "promise": why, "liveness": why},
	}
	return r
}

func (a *app) remeasure(dir string) (scenario.Result, error) {
	data, err := os.ReadFile(filepath.Join(dir, scenario.FileScenario))
	if err != nil {
		return scenario.Result{}, fmt.Errorf("read the scenario: %w", err)
	}
	var sc scenario.Scenario
	if err := json.Unmarshal(data, &sc); err != nil {
		return scenario.Result{}, fmt.Errorf("read %s: %w", filepath.Join(dir, scenario.FileScenario), err)
	}
	recipe, ok := find(sc.Recipe)
	if !ok {
		return scenario.Result{}, unknownRecipe(sc.Recipe)
	}
	r, _, err := measure.Scenario(dir, recipe.Info(), measure.Options{SkipLatencyFile: true})
	return r, err
}

func (a *app) printSafety(r scenario.Result) {
	s := r.Safety
	mark := "as expected"
	switch {
	case r.Status != scenario.StatusDone:
		mark = string(r.Status) + ": " + r.Reason
	case r.AsExpected == nil:
		mark = "inconclusive"
	case !*r.AsExpected:
		mark = "NOT AS EXPECTED"
	}
	fmt.Fprintf(a.stdout, "%-50s %-7s promise %-7s %-7s %s\n", r.Name, s.Verdict, s.Promise, s.Liveness, mark)
	for _, line := range r.Surprises {
		fmt.Fprintf(a.stdout, "    %s\n", line)
	}
	for _, line := range s.Damage {
		fmt.Fprintf(a.stdout, "    damage: %s\n", line)
	}
	for _, w := range s.Witnesses {
		fmt.Fprintf(a.stdout, "    %s: %s\n", w.Class, w.Sentence)
	}
}

// checkFile judges one history by its raw verdict. Beside its scenario's file
// the recipe is known; alone it is judged as a lease that may end at any time,
// which accuses nobody wrongly.
func (a *app) checkFile(path, format string) error {
	dir := filepath.Dir(path)
	var r scenario.Result
	if exists(filepath.Join(dir, scenario.FileScenario)) && filepath.Base(path) == scenario.FileHistory {
		var err error
		if r, err = a.remeasure(dir); err != nil {
			return err
		}
	} else {
		h, err := history.Read(path)
		if err != nil {
			if errors.Is(err, history.ErrNoRecords) {
				return err
			}
			return usage(err)
		}
		r = scenario.Result{Name: filepath.Base(path), Status: scenario.StatusDone, Safety: measure.Bare(h)}
	}
	a.code = rawVerdict(r.Safety)
	if format == "json" {
		return a.printJSON(r.Safety)
	}
	s := r.Safety
	fmt.Fprintf(a.stdout, "verdict %s: %s\npromise %s: %s\nliveness %s: %s\n", s.Verdict, s.Why["verdict"], s.Promise, s.Why["promise"], s.Liveness, s.Why["liveness"])
	for _, d := range s.Damage {
		fmt.Fprintf(a.stdout, "damage: %s\n", d)
	}
	for _, w := range s.Witnesses {
		fmt.Fprintf(a.stdout, "%s: %s\n", w.Class, w.Sentence)
	}
	return nil
}

func rawVerdict(s scenario.Safety) exitCode {
	switch {
	case s.Verdict == scenario.Unsafe, s.Promise == scenario.Broken, s.Liveness == scenario.Stuck:
		return exitUnsafe
	case s.Verdict == scenario.Safe && s.Promise == scenario.Kept && len(s.Damage) == 0:
		return exitOK
	}
	return exitInconclusive
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
