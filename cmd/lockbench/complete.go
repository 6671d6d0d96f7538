package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

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
	complete(cmd, map[string]func() []string{
		"recipe":   recipeNames,
		"fault":    kinds()["faults"],
		"workload": kinds()["workloads"],
		"only":     claimIDs,
		"topology": func() []string { return []string{"single", "replicated", "quorum", "sharded", "galera", "pooled"} },
		"expect":   func() []string { return []string{scenario.Safe, scenario.Kept, scenario.Live} },
	})
}

// complete adds the names that a shell can complete for flags.
func complete(cmd *cobra.Command, flags map[string]func() []string) {
	for flag, names := range flags {
		_ = cmd.RegisterFlagCompletionFunc(flag, completeList(names)) // an error means an unknown flag; the test has all
	}
}

// formatFlag is the value of --format.
type formatFlag struct {
	to      *string
	allowed []string
}

// addFormat adds --format. The first format is the default.
func addFormat(cmd *cobra.Command, to *string, allowed ...string) {
	*to = allowed[0]
	cmd.Flags().Var(formatFlag{to, allowed}, "format", "print "+formatFlag{to, allowed}.words())
	complete(cmd, map[string]func() []string{"format": func() []string { return allowed }})
}

func (f formatFlag) String() string { return *f.to }
func (f formatFlag) Type() string   { return "format" }

func (f formatFlag) words() string {
	last := len(f.allowed) - 1
	return strings.Join(f.allowed[:last], ", ") + " or " + f.allowed[last]
}

// Set accepts an allowed format.
func (f formatFlag) Set(text string) error {
	if !slices.Contains(f.allowed, text) {
		return fmt.Errorf("want %s, not %q", f.words(), text)
	}
	*f.to = text
	return nil
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
