package main

import (
	"fmt"
	"maps"
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
	recipes  []string
	workload string
	faults   []string
	pauseFor scenario.Duration
	faultAt  scenario.Duration
	faultFor scenario.Duration
	by       string
	step     string
	wire     string
	budget   scenario.Duration
	parallel int

	clients   []int
	workers   int
	keys      int
	dist      string
	zipf      float64
	hold      string
	think     string
	arrival   string
	rate      float64
	inFlight  int
	acquire   scenario.Duration
	watch     bool
	guard     string
	readers   float64
	depth     int
	batch     int
	pool      int
	ttl       scenario.Duration
	poll      string
	duration  scenario.Duration
	warmup    scenario.Duration
	timeout   scenario.Duration
	repeat    int
	topology  []string
	env       string
	seed      uint64
	out       string
	format    string
	quiet     bool
	dryRun    bool
	servers   []string
	threshold []string
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run [SUITE|FILE|DIR]",
		Short: "Run a suite, a suite file, or one experiment from flags",
		Long: `Run starts real servers, lets clients compete for locks, injects the faults, checks every history,
and writes a folder with the report. Without arguments it runs the built-in suite "quick".

With --workload it runs one experiment made from the flags. With a suite or a file, flags that
describe the load replace what the suite says. The rate of an open loop is that of all clients
together. A --fault without a --workload is one experiment too: guarded-counter, with holds of 50ms,
long enough that the fault meets a holder.

Given the folder of an earlier run, or the suite.yaml in it, it repeats that run: the same scenarios
with the same seeds, in a new folder.`,
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
			return a.run(cmd, args, f)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.recipes, "recipe", nil, "recipes, by comma (see lockbench list recipes); of a suite: only these of its recipes")
	fl.StringVar(&f.workload, "workload", "", "what the clients do (see lockbench list workloads)")
	fl.StringSliceVar(&f.faults, "fault", nil, "faults, by comma, each TARGET-ACTION: holder-pause, leader-kill (see lockbench list faults)")
	fl.Var(&f.faultAt, "fault-at", "when they come, after the measured window began (default 1s)")
	fl.Var(&f.faultFor, "fault-for", "how long they last (default two leases and 2s; of a server that is killed 3s)")
	fl.Var(&f.pauseFor, "pause", "how long those that pause last, and no others (default two leases and 2s, the shortest that proves anything)")
	fl.StringVar(&f.by, "by", "", "how far a clock jumps (-5s: backwards), how late a delay makes, how long a slow disk's fsync takes (default TTL+1s, 50ms, 500ms)")
	fl.StringVar(&f.step, "step", "", "faults come while a client stands at this step: one of its recipe (see lockbench list recipes ID), acquiring, held or releasing; step-pause hits that client")
	fl.StringVar(&f.wire, "wire", "", "what carries the faults between clients and servers: dialer or kernel (default kernel, where the machine and the fault allow it)")
	fl.Var(&f.budget, "budget", "of a suite: run what tells most and fits so much time, and say what was left out")
	fl.IntVar(&f.parallel, "parallel", 0, "scenarios side by side, those on different servers only (default the suite's, else 1); figures of speed then mean little")
	fl.IntSliceVar(&f.clients, "clients", nil, "numbers of clients, by comma (default 16)")
	fl.IntVar(&f.workers, "workers", 0, "processes that host the clients (default 2; one per client where a fault aims at one)")
	fl.IntVar(&f.keys, "keys", 0, "number of keys (workload keys; default 100)")
	fl.StringVar(&f.dist, "distribution", "", "uniform or zipf (workload keys)")
	fl.Float64Var(&f.zipf, "zipf", 0, "exponent of zipf, more than 1")
	fl.StringVar(&f.hold, "hold", "", `time between grant and release: "1ms", "uniform(1ms,3ms)" or "exponential(2ms)" (default 1ms)`)
	fl.StringVar(&f.think, "think", "", "closed loop: time between release and the next acquire (default: the hold)")
	fl.StringVar(&f.arrival, "arrival", "", "closed, constant or poisson (default closed)")
	fl.Float64Var(&f.rate, "rate", 0, "open loop: arrivals a second, all clients together")
	fl.IntVar(&f.inFlight, "max-in-flight", 0, "open loop: arrivals beyond it are dropped and counted")
	fl.Var(&f.acquire, "acquire-limit", "how long one acquire may wait (default: until the end)")
	fl.BoolVar(&f.watch, "watch-lease", false, "clients stop working at their lease's end, by their own timer")
	fl.StringVar(&f.guard, "guard", "", "guarded-counter: plain, fenced or both registers (default both, where there are fencing tokens)")
	fl.Float64Var(&f.readers, "readers", 0, "read-write: share of the acquires that are for reading (default 0.8)")
	fl.IntVar(&f.depth, "depth", 0, "reentrant: how often a client locks before it works (default 2)")
	fl.IntVar(&f.batch, "batch", 0, "batch: keys that an acquire takes at once (default 3)")
	fl.IntVar(&f.pool, "connections", 0, "of a worker's connection pool, which its clients share (default: each client has its own)")
	fl.Var(&f.ttl, "ttl", "the lease (default 4s)")
	fl.StringVar(&f.poll, "poll", "", "wait policy of polling recipes (default 5ms..15ms)")
	fl.Var(&f.duration, "duration", "measured time (default 10s)")
	fl.Var(&f.warmup, "warmup", "time before it (default 1s)")
	fl.Var(&f.timeout, "timeout", "limit of one request on the wire (default 2s)")
	fl.IntVar(&f.repeat, "repeat", 0, "how often everything is run (default 1; 6 or more to compare)")
	fl.StringSliceVar(&f.topology, "topology", nil, "which servers in which roles, as the recipe allows (see lockbench list recipes ID; default single)")
	fl.StringVar(&f.env, "env", "", "where servers run: process")
	fl.StringSliceVar(&f.threshold, "threshold", nil, `expect more than safety: "acquire.p99 < 20ms", "throughput > 1000/s"`)
	fl.Uint64Var(&f.seed, "seed", 0, "decides all random choices (default: the suite's, else 1)")
	fl.StringVar(&f.out, "out", "results", "folder for the run's own folder")
	fl.StringVar(&f.format, "format", "text", "of stdout: text, or json (the result document and nothing else)")
	fl.BoolVar(&f.quiet, "quiet", false, "no progress on stderr")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the resolved scenarios and stop")
	fl.StringArrayVar(&f.servers, "server", nil, "a server binary to use, as BACKEND=PATH (also LOCKBENCH_SERVER_<BACKEND>)")
	// pflag takes a duration of 0s for a default worth telling.
	fl.VisitAll(func(f *pflag.Flag) {
		if f.Value.Type() == "duration" {
			f.DefValue = ""
		}
	})
	return cmd
}

func (a *app) run(cmd *cobra.Command, args []string, f runFlags) error {
	if f.format != "text" && f.format != "json" {
		return usage(fmt.Errorf("--format %s: want text or json", f.format))
	}
	binaries, err := serverFlags(f.servers)
	if err != nil {
		return err
	}
	plan, err := f.plan(cmd, args)
	if err != nil {
		return err
	}
	if !f.dryRun {
		// Before anything is printed: the program may be executed anew.
		if err := run.EnterKernel(plan.Scenarios); err != nil {
			return err
		}
	}
	if cmd.Flags().Changed("budget") {
		if err := a.fit(&plan, f.budget.D()); err != nil {
			return err
		}
	}
	if given := cmd.Flags().Changed; given("fault") && !given("hold") && !f.quiet && f.workload != "" {
		if text := holdHint(plan.Scenarios); text != "" {
			fmt.Fprintf(a.stderr, "lockbench: %s\n", text)
		}
	}
	if f.dryRun {
		return a.print(plan, f.format)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the lockbench program, to start workers with: %w", err)
	}
	opt := run.Options{
		Suite: plan.Suite, Seed: plan.Seed, Scenarios: plan.Scenarios, Out: f.out, Version: version().Short(),
		Binaries: binaries, Find: find, Worker: []string{self, "worker"}, Watchdog: []string{self, "watchdog"}, Parallel: plan.parallel,
	}
	if !f.quiet {
		opt.Progress = newProgress(a.stderr, plan.Resolved)
	}
	outcome, err := run.Run(cmd.Context(), opt)
	if err != nil {
		return err
	}
	if err := reports.Write(outcome.Dir); err != nil {
		return fmt.Errorf("write the report of %s: %w", outcome.Dir, err)
	}
	a.code = judge(outcome.Document)
	if f.format == "json" {
		return a.printFile(filepath.Join(outcome.Dir, scenario.FileResult))
	}
	if err := reports.Table(a.stdout, outcome.Document, a.tableOptions()); err != nil {
		return fmt.Errorf("print the table: %w", err)
	}
	fmt.Fprintf(a.stdout, "\nreport: %s\n", shorten(filepath.Join(outcome.Dir, "report.html")))
	return nil
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
