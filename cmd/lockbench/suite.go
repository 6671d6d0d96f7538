package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/suites"
)

// plan makes the scenarios to run from the arguments and the flags.
func (f runFlags) plan(cmd *cobra.Command, args []string) (plan, error) {
	if len(args) == 1 && isPath(args[0]) {
		path := args[0]
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			path = filepath.Join(path, scenario.FileSuite)
			if !exists(path) {
				return plan{}, usage(fmt.Errorf("%s: no %s in it: not the folder of a run; give a suite's file, or the folder of a run to repeat it", args[0], scenario.FileSuite))
			}
		}
		data, err := readSuite(path)
		if err != nil {
			return plan{}, err
		}
		if scenario.IsResolved(data) {
			r, err := f.again(cmd, path, data)
			return plan{Resolved: r, parallel: max(1, f.parallel), maxDisk: f.maxDisk}, err
		}
	}
	file, err := f.file(cmd, args)
	if err != nil {
		return plan{}, err
	}
	scenarios, err := file.Expand(catalogue())
	return plan{
		Resolved: scenario.Resolved{Suite: file.Name, Seed: file.Seed, Scenarios: scenarios},
		file:     file, parallel: max(1, file.Parallel), maxDisk: file.MaxDisk,
	}, err
}

// again repeats a run. Its scenarios stay as they were: flags that change them
// would make it another run, under the same name and seed.
func (f runFlags) again(cmd *cobra.Command, path string, data []byte) (scenario.Resolved, error) {
	changing := ""
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		if !slices.Contains([]string{"out", "format", "quiet", "dry-run", "server", "config", "password", "recipe", "parallel", "max-disk", "expect", "known"}, fl.Name) {
			changing = fl.Name
		}
	})
	if changing != "" {
		return scenario.Resolved{}, usage(fmt.Errorf("--%s: %s is the record of a run and is repeated as it is; leave the flag out, or give the suite that it came from", changing, path))
	}
	plan, err := scenario.ParseResolved(path, data, catalogue())
	if err != nil || len(f.recipes) == 0 {
		return plan, err
	}
	all := plan.Scenarios
	plan.Scenarios = nil
	used := map[string]bool{}
	for _, sc := range all {
		if slices.Contains(f.recipes, sc.Recipe) {
			plan.Scenarios = append(plan.Scenarios, sc)
			used[sc.Recipe] = true
		}
	}
	return plan, checkUsed(plan.Suite, f.recipes, used)
}

// isPath reports whether a name is a file or a folder, not a built-in suite.
func isPath(name string) bool {
	ext := filepath.Ext(name)
	if ext == ".yaml" || ext == ".yml" || strings.ContainsRune(name, filepath.Separator) || exists(filepath.Join(name, scenario.FileSuite)) {
		return true
	}
	return !slices.Contains(suites.Names(), name) && exists(name)
}

func readSuite(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, usage(fmt.Errorf("read the suite: %w; give a file, the folder of a run, or one of the built-in suites: %s", err, strings.Join(suites.Names(), ", ")))
	}
	return data, nil
}

// file makes the suite to run from the arguments and the flags.
func (f runFlags) file(cmd *cobra.Command, args []string) (scenario.File, error) {
	over := f.settings
	var err error
	if over.Faults, err = f.fault.schedule(cmd.Flags().Changed); err != nil {
		return scenario.File{}, usage(err)
	}
	var file scenario.File
	switch {
	case len(args) == 0 && cmd.Flags().Changed("workload"):
		if len(f.recipes) == 0 {
			return file, usage(errors.New("--workload needs --recipe too (see lockbench list recipes)"))
		}
		over.Recipes = f.recipes
		kind := over.Workload.Kind
		file = scenario.File{Name: kind, Scenarios: []scenario.Block{{Name: kind, Settings: over}}}
		for _, s := range f.sweeps {
			file.Scenarios = s.over(file.Scenarios)
		}
	case cmd.Flags().Changed("workload"):
		return file, usage(fmt.Errorf("--workload makes an experiment of its own; leave it out to run %[1]s, or leave %[1]s out", args[0]))
	default:
		for _, s := range f.sweeps {
			if len(s.values) > 1 {
				return file, usage(fmt.Errorf("--%s has several values, which make an experiment of its own: give --workload and --recipe", s.Name))
			}
		}
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
	if f.maxDisk > 0 {
		file.MaxDisk = f.maxDisk
	}
	if cmd.Flags().Changed("parallel") {
		if file.Parallel = f.parallel; f.parallel < 1 {
			return file, usage(fmt.Errorf("--parallel %d: write 1 or more", f.parallel))
		}
	}
	return file, nil
}

// faultAlone sets the workload for a fault without a workload or a suite: the one
// that shows the damage to the data, with holds so long that the fault hits one.
func faultAlone(flags *pflag.FlagSet, args []string) error {
	switch {
	case len(args) > 0 || !flags.Changed("fault") || flags.Changed("workload"):
		return nil
	case !flags.Changed("recipe"):
		return usage(errors.New("--fault needs --recipe too (see lockbench list recipes), or the name of a suite"))
	}
	err := flags.Set("workload", scenario.GuardedCounter)
	if !flags.Changed("hold") {
		err = errors.Join(err, flags.Set("hold", longHold))
	}
	return err
}

// loadSuite loads a built-in suite, or a file if the argument looks like one.
func loadSuite(args []string) (scenario.File, error) {
	name := suites.Names()[0]
	if len(args) == 1 {
		name = args[0]
	}
	if !isPath(name) {
		return suites.Load(name)
	}
	data, err := readSuite(name)
	if err != nil {
		return scenario.File{}, err
	}
	return scenario.ParseFile(name, data, chaos.Actions())
}

// onlyRecipes keeps the requested recipes of each block.
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
	file.Scenarios = blocks
	return file, checkUsed(file.Name, recipes, used)
}

// checkUsed rejects requested recipes that the suite does not run.
func checkUsed(suite string, recipes []string, used map[string]bool) error {
	for _, r := range recipes {
		if _, ok := find(r); !ok {
			return usage(unknownRecipe(r))
		}
		if !used[r] {
			return usage(fmt.Errorf("suite %s does not run %s; use --workload for an experiment of your own", suite, r))
		}
	}
	return nil
}
