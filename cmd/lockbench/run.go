package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/run"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports"
)

// runFlags are the flags of "run" as they were given.
type runFlags struct {
	settings scenario.Settings // every parameter of an experiment
	recipes  []string
	budget   scenario.Duration
	parallel int
	maxDisk  scenario.Size
	seed     uint64
	out      string
	format   string
	quiet    bool
	dryRun   bool
	servers  []string
	images   []string
	fault    faultFlags
	expect   expectFlags
	external externalFlags
	only     []string // claims
	sweeps   []*sweep
	metrics  string       // the address
	listener net.Listener // on it; nil: none
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [SUITE|FILE|DIR]",
		Short: "Run a suite, a suite file, or one experiment from flags",
		Long: `Run starts real servers, lets clients compete for locks, injects the faults,
checks every history, and writes a folder with the report. Without arguments it
runs the built-in suite "quick".

With --workload it runs one experiment made from the flags. With a suite or a
file, flags replace the suite's parameters, and --recipe selects among its
recipes. --fault without --workload is one experiment too: guarded-counter with
holds of 50ms, long enough for the fault to hit a holder.

Given the folder of an earlier run, or the suite.yaml in it, it repeats that
run: the same scenarios with the same seeds, in a new folder.`,
		Example: `  lockbench run
  lockbench run self-test
  lockbench run --recipe redis/token,etcd/mutex --workload hot-key --clients 8,32 --hold 1ms --repeat 6
  lockbench run --recipe mysql/lease-row --fault holder-pause
  lockbench run --recipe etcd/mutex --topology quorum --workload hot-key --fault leader-kill,holder-cut
  lockbench run safety --budget 10m
  lockbench run results/2026-01-31T120000-quick`,
		Args: argCount(cobra.MaximumNArgs(1), "one suite at most"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := faultAlone(cmd.Flags(), args); err != nil {
				return err
			}
			if err := f.external.load(cmd, args, f.recipes); err != nil {
				return err
			}
			return a.run(cmd, args, f)
		},
	}
	fl := cmd.Flags()
	groups := &flagGroups{set: fl}
	groups.begin("What runs")
	fl.StringSliceVar(&f.recipes, "recipe", nil, "run these comma-separated recipes (see lockbench list recipes)")
	addOnly(fl, &f.only)
	fl.Var(&f.budget, "budget", "run the highest-priority scenarios that fit the time budget")
	fl.Uint64Var(&f.seed, "seed", 0, "derive all random choices from this seed (default: the suite's)")
	groups.begin("The experiment")
	for _, p := range scenario.Flags(&f.settings) {
		if p.Name == "ttl" || p.Name == "hold" {
			s := &sweep{Flag: p}
			f.sweeps = append(f.sweeps, s)
			fl.Var(s, p.Name, p.Help+"; or several")
			continue
		}
		fl.Var(p, p.Name, p.Help)
		if p.Type() == "bool" {
			fl.Lookup(p.Name).NoOptDefVal = "true"
		}
	}
	groups.begin("Faults")
	f.fault.add(fl)
	groups.begin("What passes")
	f.expect.add(fl)
	groups.begin("External servers")
	f.external.add(fl)
	groups.begin("How it runs")
	fl.IntVar(&f.parallel, "parallel", 0, "run N scenarios at once; distorts performance (default: the suite's)")
	fl.Var(&f.maxDisk, "max-disk", "stop before the run's folder has this size, such as 20GB")
	fl.StringVar(&f.out, "out", "results", "create the run's folder in this folder")
	addFormat(cmd, &f.format, "text", "json")
	fl.StringVar(&f.metrics, "metrics", "", "serve metrics for Prometheus during the run on :PORT or HOST:PORT")
	fl.BoolVar(&f.quiet, "quiet", false, "print no progress on stderr")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the resolved scenarios and stop")
	fl.StringArrayVar(&f.servers, "server", nil, "use this server binary: BACKEND=PATH (or LOCKBENCH_SERVER_BACKEND)")
	fl.StringArrayVar(&f.images, "image", nil, "run servers in this image with --env docker: BACKEND=IMAGE")
	completeRun(cmd)
	// A default of 0s stands for "not given" and is not worth printing.
	fl.VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "duration" {
			f.DefValue = ""
		}
	})
	cmd.SetUsageFunc(groups.usage)
	return cmd
}

func (a *app) run(cmd *cobra.Command, args []string, f runFlags) error {
	if _, err := serverFlags(f.servers); err != nil {
		return err
	}
	if _, err := backendFlags("image", "IMAGE", f.images); err != nil {
		return err
	}
	if err := claimsAsTheyAre(cmd.Flags(), args); err != nil {
		return err
	}
	plan, err := f.plan(cmd, args)
	if err != nil {
		return err
	}
	if err := plan.forClaims(args, f.only); err != nil {
		return err
	}
	if err := f.expect.apply(&plan); err != nil {
		return err
	}
	servers := f.external.loaded
	if err := checkExternal(servers, f.external.config, plan.Scenarios); err != nil {
		return err
	}
	if !f.dryRun {
		// Before anything is printed: the program may be executed anew.
		if f.listener, err = enterKernel(plan.Scenarios, f.metrics); err != nil {
			return err
		}
		if f.listener != nil {
			defer f.listener.Close()
		}
	}
	if !f.quiet {
		for _, line := range plan.known.Unmatched(plan.Scenarios) {
			fmt.Fprintf(a.stderr, "lockbench: warning: %s\n", line)
		}
		// The built-in suites do it on purpose.
		if given := cmd.Flags().Changed; given("workload") || given("hold") || given("ttl") || len(args) == 1 && isPath(args[0]) {
			a.warnOfLeases(plan.Scenarios)
		}
	}
	if cmd.Flags().Changed("budget") {
		if err := a.fit(&plan, f.budget.D()); err != nil {
			return err
		}
	}
	if given := cmd.Flags().Changed; given("fault") && !given("hold") && !f.quiet && f.settings.Workload.Kind != "" {
		if text := holdHint(plan.Scenarios); text != "" {
			fmt.Fprintf(a.stderr, "lockbench: %s\n", text)
		}
	}
	if servers != nil && !f.quiet {
		fmt.Fprintf(a.stderr, "lockbench: %s\n", loadLimits(servers, plan.Scenarios))
	}
	if f.dryRun {
		return a.print(plan, f.format)
	}
	outcome, err := a.execute(cmd.Context(), plan, f)
	if err != nil {
		return err
	}
	a.code = judge(outcome.Document)
	if own := len(args) == 0 && cmd.Flags().Changed("workload"); own && len(f.recipes) == 1 && len(f.expect.words) == 0 && !f.quiet {
		defer a.wouldExit(outcome.Document)
	}
	if f.format == "json" {
		return a.printFile(filepath.Join(outcome.Dir, scenario.FileResult))
	}
	if err := reports.Text(a.stdout, outcome.Dir, a.textOptions()); err != nil {
		return fmt.Errorf("print the report: %w", err)
	}
	fmt.Fprintf(a.stdout, "\nreport: %s\n", shorten(filepath.Join(outcome.Dir, "report.html")))
	return nil
}

// execute runs a plan, and writes its folder with the reports.
func (a *app) execute(ctx context.Context, plan plan, f runFlags) (run.Outcome, error) {
	binaries, err := serverFlags(f.servers)
	if err != nil {
		return run.Outcome{}, err
	}
	images, err := backendFlags("image", "IMAGE", f.images)
	if err != nil {
		return run.Outcome{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return run.Outcome{}, fmt.Errorf("find the lockbench program, to start workers with: %w", err)
	}
	opt := run.Options{
		Suite: plan.Suite, Seed: plan.Seed, Scenarios: plan.Scenarios, Out: f.out, Version: version().Short(),
		Binaries: binaries, External: f.external.loaded, AllowDestructive: f.external.allowDestructive, Images: images, Helper: []string{self, "in-container"}, Find: find, Worker: []string{self, "worker"}, Watchdog: []string{self, "watchdog"}, Parallel: plan.parallel, MaxDisk: plan.maxDisk,
		Known: plan.known, NotTried: plan.notTried,
	}
	if !f.quiet {
		p := newProgress(a.stderr, plan.Resolved)
		if opt.Progress = p; p.terminal {
			opt.Calls = p.Call
		}
	}
	progress := opt.Progress
	if f.listener != nil {
		a.serveMetrics(&opt, f)
	}
	stop := context.AfterFunc(ctx, func() {
		const line = "lockbench: stopping and writing the report (press Ctrl-C again to stop at once)"
		if progress != nil {
			progress.Note(line)
		} else {
			fmt.Fprintln(a.stderr, line)
		}
	})
	defer stop()
	outcome, err := run.Run(ctx, opt)
	if err != nil {
		return outcome, err
	}
	if err := reports.Write(outcome.Dir); err != nil {
		return outcome, fmt.Errorf("write the report of %s: %w", outcome.Dir, err)
	}
	for _, err := range []error{pointTo(outcome.Dir), stepSummary(outcome.Dir)} {
		if err != nil {
			fmt.Fprintf(a.stderr, "lockbench: %v\n", err)
		}
	}
	return outcome, nil
}

// pointTo makes the link "latest", beside the folders of runs, point to dir. A file
// or folder of that name is the user's own, and stays.
func pointTo(dir string) error {
	link := filepath.Join(filepath.Dir(dir), "latest")
	if st, err := os.Lstat(link); err == nil && st.Mode()&fs.ModeSymlink == 0 {
		return nil
	}
	next := fmt.Sprintf("%s-%d", link, os.Getpid())
	if err := os.Symlink(filepath.Base(dir), next); err != nil {
		return fmt.Errorf("make the link to the newest run: %w", err)
	}
	return os.Rename(next, link) // another run may do the same
}

// print shows what would run, and when which fault would come.
func (a *app) print(plan plan, format string) error {
	if format == "json" {
		return a.printJSON(plan.Scenarios)
	}
	text, err := scenario.MarshalSuite(plan.Suite, plan.Seed, plan.Scenarios)
	if err != nil {
		return err
	}
	if _, err := a.stdout.Write(text); err != nil {
		return err
	}
	if err := a.printSchedule(plan.Scenarios); err != nil {
		return err
	}
	missing := map[string]int{}
	for _, sc := range plan.Scenarios {
		if err := run.Unavailable(sc); err != nil {
			missing[err.Error()]++
		}
	}
	for _, why := range slices.Sorted(maps.Keys(missing)) {
		fmt.Fprintf(a.stderr, "%s would be inconclusive: %s\n", scenariosText(missing[why]), why)
	}
	fmt.Fprintf(a.stderr, "%s, %v of load, about %v in all\n", scenariosText(len(plan.Scenarios)), loadTime(plan.Scenarios).Round(time.Second),
		scenario.Estimate(plan.Scenarios, plan.parallel).Round(time.Second))
	return nil
}

// loadTime is how long clients will work; servers' starts come on top.
func loadTime(scenarios []scenario.Scenario) time.Duration {
	var total time.Duration
	for _, sc := range scenarios {
		total += sc.Warmup.D() + sc.Duration.D()
	}
	return total
}

func scenariosText(n int) string {
	if n == 1 {
		return "1 scenario"
	}
	return fmt.Sprintf("%d scenarios", n)
}

// stepSummary adds the first screen of the report to the page of a job of GitHub
// Actions.
func stepSummary(dir string) (err error) {
	path := os.Getenv("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("write the summary that GITHUB_STEP_SUMMARY names: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return reports.Summary(f, dir)
}
