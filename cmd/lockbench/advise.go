package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/run"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports/advise"
)

func (a *app) adviseCommand() *cobra.Command {
	var backends, from []string
	var hold, format string
	var f runFlags
	q := advise.Question{TTL: scenario.Duration(10e9)}
	cmd := &cobra.Command{
		Use:   "advise",
		Short: "Find the lock for a need, from measured scenarios",
		Long: `Answer for each recipe whether it fits: yes, no, or yes if a condition holds. Each answer names the
scenario that proves it; what was not measured is never a yes. Advise runs what it needs, with all
times scaled to a short TTL, or reads the runs of --from.`,
		Example: `  lockbench advise --backends redis,mysql --hold 50ms..30s --ttl 10s
  lockbench advise --backends etcd,zookeeper --hold 1s --need fencing,failover
  lockbench advise --hold 50ms --ttl 2s --from results/latest`,
		Args: argCount(cobra.NoArgs, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := parseQuestion(&q, hold); err != nil {
				return usage(err)
			}
			runs, err := a.evidence(cmd, q, backends, from, f)
			if err != nil || f.dryRun {
				return err
			}
			answers := slices.DeleteFunc(advise.Ask(q, runs), func(x advise.Answer) bool { return !chosen(strings.Fields(x.Recipe)[0], backends) })
			if format == "json" {
				return a.printJSON(map[string]any{"question": q, "answers": answers})
			}
			return advise.Text(a.stdout, q, answers)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&backends, "backends", nil, "consider these comma-separated backends or recipes (default: all of --from)")
	fl.StringVar(&hold, "hold", "", "how long a client holds the lock: 50ms, or 50ms..30s")
	fl.Var(&q.TTL, "ttl", "the lease")
	fl.StringSliceVar(&q.Needs, "need", nil, "fencing, failover, or a property (see lockbench list properties)")
	fl.StringArrayVar(&from, "from", nil, "read this run's folder instead of running anything")
	fl.StringVar(&f.out, "out", "results", "create the run's folder in this folder")
	fl.IntVar(&f.parallel, "parallel", 2, "run N scenarios at once, on different servers; distorts the waits")
	fl.BoolVar(&f.quiet, "quiet", false, "print no progress on stderr")
	fl.BoolVar(&f.dryRun, "dry-run", false, "print the resolved scenarios and stop")
	addFormat(cmd, &format, "text", "json")
	complete(cmd, map[string]func() []string{
		"backends": func() []string { return append(backendNames(), recipeNames()...) },
		"need": func() []string {
			return append([]string{advise.NeedFencing, advise.NeedFailover}, entryNames(properties())...)
		},
	})
	return cmd
}

// backendNames are the backends that have recipes.
func backendNames() []string {
	var list []string
	for _, r := range catalogue() {
		if r.Backend != run.BackendReference && !slices.Contains(list, r.Backend) {
			list = append(list, r.Backend)
		}
	}
	return list
}

// parseQuestion reads --hold and checks the rest.
func parseQuestion(q *advise.Question, hold string) (err error) {
	low, high, ranged := strings.Cut(hold, "..")
	if !ranged {
		high = low
	}
	if q.Shortest, err = scenario.ParseDuration(low); err == nil {
		q.Longest, err = scenario.ParseDuration(high)
	}
	switch {
	case err != nil:
		return fmt.Errorf("--hold: %w; write 50ms or 50ms..30s", err)
	case q.Longest < q.Shortest:
		return fmt.Errorf("--hold %s ends before it begins; write the shorter time first", hold)
	case q.TTL <= 0:
		return errors.New("--ttl must be more than 0s")
	}
	known := append([]string{advise.NeedFencing, advise.NeedFailover}, entryNames(properties())...)
	for _, need := range q.Needs {
		if !slices.Contains(known, need) {
			return fmt.Errorf("--need %s: choose %s", need, strings.Join(known, ", "))
		}
	}
	return nil
}

// chosen reports whether a recipe is among the backends and recipes; none stand
// for all.
func chosen(id string, backends []string) bool {
	backend, _, _ := strings.Cut(id, "/")
	return len(backends) == 0 || slices.Contains(backends, backend) || slices.Contains(backends, id)
}

// evidence reads the runs, or makes one.
func (a *app) evidence(cmd *cobra.Command, q advise.Question, backends, from []string, f runFlags) ([]advise.Run, error) {
	var runs []advise.Run
	for _, dir := range from {
		doc, err := loadRun(dir)
		if err != nil {
			return nil, err
		}
		runs = append(runs, advise.Run{Dir: dir, Document: doc})
	}
	if len(from) > 0 {
		return runs, nil
	}
	var recipes []scenario.RecipeFacts
	for _, name := range backends {
		n := len(recipes)
		for _, r := range catalogue() {
			if chosen(r.ID, []string{name}) && r.Backend != run.BackendReference {
				recipes = append(recipes, r)
			}
		}
		if len(recipes) == n {
			return nil, usage(unknownRecipe(name))
		}
	}
	if len(recipes) == 0 {
		return nil, usage(errors.New("give --backends, or --from with the folder of a run"))
	}
	file := advise.Suite(q, recipes, func(r scenario.RecipeFacts, topology, fault string) bool {
		kind, _ := chaos.ParseKind(fault)
		why, _ := r.Lacks(topology, kind)
		return why == "" && r.CanFault(topology, kind, nil) == nil
	})
	scenarios, err := file.Expand(catalogue())
	if err != nil {
		return nil, err
	}
	p := plan{Resolved: scenario.Resolved{Suite: file.Name, Seed: 1, Scenarios: scenarios}, file: file, parallel: f.parallel}
	if f.dryRun {
		return nil, a.print(p, "text")
	}
	// Before anything is printed: the program may be executed anew.
	if err := run.EnterKernel(scenarios); err != nil {
		return nil, err
	}
	outcome, err := a.execute(cmd.Context(), p, f)
	return []advise.Run{{Dir: shorten(outcome.Dir), Document: outcome.Document}}, err
}
