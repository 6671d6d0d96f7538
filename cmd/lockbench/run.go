package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/cluster"
	"github.com/lockbench/lockbench/reports"
	"github.com/lockbench/lockbench/run"
	"github.com/lockbench/lockbench/scenario"
	"github.com/lockbench/lockbench/suites"
)

// runFlags are the flags of "run" as they were given.
type runFlags struct {
	recipes  []string
	workload string
	faults   []string
	pauseFor scenario.Duration

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
		Use:   "run [SUITE|FILE]",
		Short: "Run a suite, a suite file, or one experiment from flags",
		Long: `Run starts real servers, lets clients compete for locks, injects the faults, checks every history,
and writes a folder with the report. Without arguments it runs the built-in suite "quick".

With --workload it runs one experiment made from the flags. With a suite or a file, flags that
describe the load replace what the suite says. The rate of an open loop is that of all clients
together.`,
		Example: `  lockbench run
  lockbench run self-test
  lockbench run --recipe redis/token,etcd/mutex --workload hot-key --clients 8,32 --hold 1ms --repeat 6
  lockbench run --recipe mysql/lease-row --workload guarded-counter --fault holder-pause`,
		Args: argCount(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd, args, f) },
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.recipes, "recipe", nil, "recipes, by comma (see lockbench list recipes); of a suite: only these of its recipes")
	fl.StringVar(&f.workload, "workload", "", "uncontended, hot-key, keys or guarded-counter")
	fl.StringSliceVar(&f.faults, "fault", nil, "faults, by comma (see lockbench list faults)")
	fl.Var(&f.pauseFor, "pause", "how long holder-pause stops the holder (default two leases and 2s, the shortest that proves anything)")
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
	fl.Var(&f.ttl, "ttl", "the lease (default 4s)")
	fl.StringVar(&f.poll, "poll", "", "wait policy of polling recipes (default 5ms..15ms)")
	fl.Var(&f.duration, "duration", "measured time (default 10s)")
	fl.Var(&f.warmup, "warmup", "time before it (default 1s)")
	fl.Var(&f.timeout, "timeout", "limit of one request on the wire (default 2s)")
	fl.IntVar(&f.repeat, "repeat", 0, "how often everything is run (default 1; 6 or more to compare)")
	fl.StringSliceVar(&f.topology, "topology", nil, "single or quorum (default single)")
	fl.StringVar(&f.env, "env", "", "where servers run: process")
	fl.StringSliceVar(&f.threshold, "threshold", nil, `expect more than safety: "acquire.p99 < 20ms", "throughput > 1000/s"`)
	fl.Uint64Var(&f.seed, "seed", 0, "decides all random choices (default: the suite's, else 1)")
	fl.StringVar(&f.out, "out", "results", "folder for the run's own folder")
	fl.StringVar(&f.format, "format", "text", "of stdout: text, or json (the result document and nothing else)")
	fl.BoolVar(&f.quiet, "quiet", false, "no progress on stderr")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the resolved scenarios and stop")
	fl.StringArrayVar(&f.servers, "server", nil, "a server binary to use, as BACKEND=PATH (also LOCKBENCH_SERVER_<BACKEND>)")
	cmd.MarkFlagsMutuallyExclusive("quiet", "dry-run")
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
	suite, err := f.file(cmd, args)
	if err != nil {
		return err
	}
	scenarios, err := suite.Expand(catalogue())
	if err != nil {
		return err
	}
	for _, sc := range scenarios {
		for _, ft := range sc.Faults {
			if err := chaos.Available(ft.Kind); err != nil {
				return usage(fmt.Errorf("scenario %s: fault %s cannot be injected here: %w", sc.Name, ft.Kind, err))
			}
		}
	}
	if f.dryRun {
		return a.plan(suite, scenarios, f.format)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the lockbench program, to start workers with: %w", err)
	}
	opt := run.Options{
		Suite: suite.Name, Seed: suite.Seed, Scenarios: scenarios, Out: f.out, Version: fullVersion(),
		Binaries: binaries, Find: find, Worker: []string{self, "worker"},
	}
	if !f.quiet {
		opt.Progress = &progress{w: a.stderr, terminal: isTerminal(a.stderr), color: isTerminal(a.stderr) && os.Getenv("NO_COLOR") == ""}
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

// plan prints what would run.
func (a *app) plan(suite scenario.File, scenarios []scenario.Scenario, format string) error {
	if format == "json" {
		enc := json.NewEncoder(a.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(scenarios)
	}
	text, err := scenario.MarshalSuite(suite.Name, suite.Seed, scenarios)
	if err != nil {
		return err
	}
	if _, err := a.stdout.Write(text); err != nil {
		return err
	}
	var total time.Duration
	for _, sc := range scenarios {
		total += sc.Warmup.D() + sc.Duration.D()
	}
	fmt.Fprintf(a.stderr, "%d scenarios, %v of load\n", len(scenarios), total.Round(time.Second))
	return nil
}

// file makes the suite to run from the arguments and the flags.
func (f runFlags) file(cmd *cobra.Command, args []string) (scenario.File, error) {
	over, err := f.settings(cmd)
	if err != nil {
		return scenario.File{}, err
	}
	var file scenario.File
	switch {
	case len(args) == 0 && cmd.Flags().Changed("workload"):
		if len(f.recipes) == 0 {
			return file, usage(errors.New("--workload needs --recipe too (see lockbench list recipes)"))
		}
		over.Recipes = f.recipes
		file = scenario.File{Name: f.workload, Scenarios: []scenario.Block{{Name: f.workload, Settings: over}}}
	case len(args) == 0 && cmd.Flags().Changed("fault"):
		return file, usage(errors.New("--fault needs --workload too, or the name of a suite"))
	default:
		if file, err = loadSuite(args); err != nil {
			return file, err
		}
		if file, err = onlyRecipes(file, f.recipes); err != nil {
			return file, err
		}
		file = file.With(over)
	}
	if cmd.Flags().Changed("seed") {
		file.Seed = f.seed
	}
	if file.Seed == 0 {
		file.Seed = 1
	}
	return file, nil
}

// loadSuite loads a built-in suite, or a file if the argument looks like one.
func loadSuite(args []string) (scenario.File, error) {
	name := suites.Names()[0]
	if len(args) == 1 {
		name = args[0]
	}
	ext := filepath.Ext(name)
	if ext != ".yaml" && ext != ".yml" && !strings.ContainsRune(name, filepath.Separator) {
		return suites.Load(name)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return scenario.File{}, usage(fmt.Errorf("read the suite: %w", err))
	}
	return scenario.ParseFile(name, data)
}

// onlyRecipes keeps of each block the recipes that were asked for.
func onlyRecipes(file scenario.File, recipes []string) (scenario.File, error) {
	if len(recipes) == 0 {
		return file, nil
	}
	used := map[string]bool{}
	blocks := make([]scenario.Block, 0, len(file.Scenarios))
	for _, b := range file.Scenarios {
		all := b.Recipes
		if len(all) == 0 {
			all = file.Defaults.Recipes
		}
		b.Recipes = nil
		for _, r := range all {
			if slices.Contains(recipes, r) {
				b.Recipes = append(b.Recipes, r)
				used[r] = true
			}
		}
		if len(b.Recipes) > 0 {
			blocks = append(blocks, b)
		}
	}
	for _, r := range recipes {
		if _, ok := find(r); !ok {
			return file, usage(unknownRecipe(r))
		}
		if !used[r] {
			return file, usage(fmt.Errorf("suite %s does not run %s; give a --workload for an experiment of your own", file.Name, r))
		}
	}
	file.Scenarios = blocks
	return file, nil
}

// settings are the flags that describe the load, if they were given.
func (f runFlags) settings(cmd *cobra.Command) (scenario.Settings, error) {
	var s scenario.Settings
	given := cmd.Flags().Changed
	var errs []error
	if given("clients") {
		s.Clients = f.clients
	}
	set(&s.Workers, f.workers, given("workers"))
	set(&s.Repeat, f.repeat, given("repeat"))
	set(&s.TTL, f.ttl, given("ttl"))
	set(&s.Duration, f.duration, given("duration"))
	set(&s.Warmup, f.warmup, given("warmup"))
	set(&s.Timeout, f.timeout, given("timeout"))
	if given("topology") {
		s.Topology = f.topology
	}
	s.Environment = f.env
	if given("poll") {
		p, err := scenario.ParsePoll(f.poll)
		errs = append(errs, inFlag("poll", err))
		s.Poll = &p
	}
	if given("threshold") {
		s.Expect = &scenario.Expect{Thresholds: f.threshold}
	}
	for _, kind := range f.faults {
		spec := scenario.FaultSpec{Kind: kind}
		set(&spec.For, f.pauseFor, given("pause"))
		s.Faults = append(s.Faults, spec)
	}
	if given("pause") && len(f.faults) == 0 {
		errs = append(errs, errors.New("--pause needs --fault holder-pause"))
	}
	w := scenario.Workload{Kind: f.workload, Distribution: f.dist, Arrival: f.arrival, Guard: f.guard}
	load := slices.ContainsFunc([]string{"workload", "distribution", "arrival", "guard", "keys", "zipf", "rate", "max-in-flight", "acquire-limit", "watch-lease", "hold", "think"}, given)
	set(&w.Keys, f.keys, given("keys"))
	set(&w.ZipfS, f.zipf, given("zipf"))
	set(&w.Rate, f.rate, given("rate"))
	set(&w.MaxInFlight, f.inFlight, given("max-in-flight"))
	set(&w.AcquireLimit, f.acquire, given("acquire-limit"))
	set(&w.WatchLease, f.watch, given("watch-lease"))
	for name, d := range map[string]struct {
		text string
		to   **scenario.Dist
	}{"hold": {f.hold, &w.Hold}, "think": {f.think, &w.Think}} {
		if given(name) {
			v, err := scenario.ParseDist(d.text)
			errs = append(errs, inFlag(name, err))
			*d.to = &v
		}
	}
	if load {
		s.Workload = &w
	}
	return s, usage(errors.Join(errs...))
}

func set[T any](to **T, v T, given bool) {
	if given {
		*to = &v
	}
}

func inFlag(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("--%s: %w", name, err)
}

// serverFlags reads BACKEND=PATH pairs.
func serverFlags(pairs []string) (map[string]string, error) {
	binaries := map[string]string{}
	for _, p := range pairs {
		backend, path, ok := strings.Cut(p, "=")
		switch {
		case !ok || path == "":
			return nil, usage(fmt.Errorf("--server %s: want BACKEND=PATH", p))
		case !slices.Contains(cluster.Backends(), backend):
			return nil, usage(fmt.Errorf("--server %s: no backend %q; there are %s", p, backend, strings.Join(cluster.Backends(), ", ")))
		}
		if _, err := os.Stat(path); err != nil {
			return nil, usage(fmt.Errorf("--server %s: %w", p, err))
		}
		binaries[backend] = path
	}
	return binaries, nil
}

func (a *app) printFile(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = a.stdout.Write(data)
	return err
}

func (a *app) tableOptions() reports.TableOptions {
	o := reports.TableOptions{Width: 110}
	if f, ok := a.stdout.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		o.Color = os.Getenv("NO_COLOR") == ""
		if w, _, err := term.GetSize(int(f.Fd())); err == nil {
			o.Width = w
		}
	}
	return o
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// shorten makes a path relative to the working folder where that is shorter.
func shorten(path string) string {
	wd, err := os.Getwd()
	if err != nil {
		return path
	}
	if rel, err := filepath.Rel(wd, path); err == nil && len(rel) < len(path) {
		return rel
	}
	return path
}
