package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/suites"
)

// completeRun adds the names that a shell can complete for the run command.
func completeRun(cmd *cobra.Command) {
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list, err := suites.List()
		if err != nil {
			return nil, cobra.ShellCompDirectiveError
		}
		return entryNames(list), cobra.ShellCompDirectiveDefault // a suite can also be a file
	}
	for flag, names := range map[string]func() []string{
		"recipe":   recipeNames,
		"fault":    func() []string { return entryNames(chaos.Actions().Faults()) },
		"workload": func() []string { return entryNames(scenario.Workloads()) },
		"only":     claimIDs,
		"format":   func() []string { return []string{"text", "json"} },
	} {
		_ = cmd.RegisterFlagCompletionFunc(flag, completeList(names)) // an error means an unknown flag; the test has all
	}
}

// completeList completes the last of several comma-separated names.
func completeList(names func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before := typed[:strings.LastIndex(typed, ",")+1]
		var out []string
		for _, name := range names() {
			if strings.HasPrefix(before+name, typed) {
				out = append(out, before+name)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

func entryNames(list []scenario.Entry) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.Name)
	}
	return out
}

func recipeNames() []string {
	var out []string
	for _, r := range all.Recipes() {
		out = append(out, r.Info().ID)
	}
	return out
}
