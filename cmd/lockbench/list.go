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

// listed is one line of a list.
type listed struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

// kinds are what can be listed, with their names.
func kinds() map[string]func() []string {
	return map[string]func() []string{
		"recipes": recipeNames, "claims": claimIDs,
		"properties": func() []string { return names(properties()) },
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
				return a.listEntries(format, named(entries(scenario.Workloads()), ids))
			case "claims":
				return a.listClaims(format, ids)
			}
			list, err := suites.List()
			if err != nil {
				return err
			}
			return a.listEntries(format, named(entries(list), ids))
		},
	}
	addFormat(cmd, &format, "text", "json")
	return cmd
}

// named keeps the entries with the given names; without any, all.
func named(list []listed, ids []string) []listed {
	return slices.DeleteFunc(list, func(e listed) bool { return len(ids) > 0 && !slices.Contains(ids, e.Name) })
}

func names(list []listed) []string {
	var out []string
	for _, e := range list {
		out = append(out, e.Name)
	}
	return out
}

func entries(list []scenario.Entry) []listed {
	var out []listed
	for _, e := range list {
		out = append(out, listed{Name: e.Name, Summary: e.Summary})
	}
	return out
}

func properties() []listed {
	var out []listed
	for _, p := range impls.Properties() {
		out = append(out, listed{Name: string(p.Property), Summary: p.Meaning})
	}
	return out
}

func (a *app) listEntries(format string, list []listed) error {
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
		for i, line := range foldWords(e.Summary, room) {
			first := e.Name
			if i > 0 {
				first, line = "", "  "+line
			}
			fmt.Fprintf(&b, "%-*s  %s\n", name, first, line)
		}
	}
	_, err := io.WriteString(a.stdout, b.String())
	return err
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
