package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/suites"
)

// kinds are what can be listed, with their names.
func kinds() map[string]func() []string {
	return map[string]func() []string{
		"recipes": recipeNames, "claims": claimIDs,
		"properties": func() []string { return entryNames(properties()) },
		"workloads":  func() []string { return entryNames(scenario.Workloads()) },
		"faults":     func() []string { return entryNames(chaos.Actions().Faults()) },
		"suites":     suites.Names,
	}
}

func (a *app) listCommand() *cobra.Command {
	var format string
	what := []string{"recipes", "properties", "workloads", "faults", "suites", "claims"}
	cmd := &cobra.Command{
		Use: "list KIND [NAME...]", Short: "List " + strings.Join(what, ", "),
		Long: "List " + strings.Join(what, ", ") + ": all of a kind, or those with the given names.",
		Example: `  lockbench list recipes
  lockbench list recipes redis/pubsub mysql
  lockbench list faults leader-cut`,
		Args: argCount(cobra.MinimumNArgs(1), "one of "+strings.Join(what, ", ")),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return what, cobra.ShellCompDirectiveNoFileComp
			}
			if of := kinds()[args[0]]; of != nil {
				return of(), cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			kind, ids := args[0], args[1:]
			switch kind {
			case "recipes":
				return a.listRecipes(format, ids)
			case "faults":
				if len(ids) > 0 {
					return a.explainFaults(format, ids)
				}
				return a.listFaults(format)
			}
			of, ok := kinds()[kind]
			if !ok {
				return usage(fmt.Errorf("no list %q; want one of %s", kind, strings.Join(what, ", ")))
			}
			known := of()
			for _, id := range ids {
				if !slices.Contains(known, id) {
					return usage(fmt.Errorf("no %q among the %s; %s", id, kind, scenario.Suggest(id, known)))
				}
			}
			switch kind {
			case "properties":
				return a.listEntries(format, named(properties(), ids))
			case "workloads":
				return a.listEntries(format, named(scenario.Workloads(), ids))
			case "claims":
				return a.listClaims(format, ids)
			}
			list, err := suites.List()
			if err != nil {
				return err
			}
			return a.listEntries(format, named(list, ids))
		},
	}
	addFormat(cmd, &format, "text", "json")
	return cmd
}

// named keeps the entries with the given names; without any, all.
func named(list []scenario.Entry, ids []string) []scenario.Entry {
	return slices.DeleteFunc(list, func(e scenario.Entry) bool { return len(ids) > 0 && !slices.Contains(ids, e.Name) })
}

func properties() []scenario.Entry {
	var out []scenario.Entry
	for _, p := range impls.Properties() {
		out = append(out, scenario.Entry{Name: string(p.Property), Summary: p.Meaning})
	}
	return out
}

func (a *app) listEntries(format string, list []scenario.Entry) error {
	if format == "json" {
		return a.printJSON(list)
	}
	name := 0
	for _, e := range list {
		name = max(name, len(e.Name))
	}
	room := max(columns(a.stdout, 120)-name-2, 40)
	var b strings.Builder
	for _, e := range list {
		hang(&b, e.Name, name+2, e.Summary, room)
	}
	_, err := io.WriteString(a.stdout, b.String())
	return err
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
