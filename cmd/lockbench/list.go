package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/suites"
)

// listed is one line of a list.
type listed struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
}

func (a *app) listCommand() *cobra.Command {
	var format string
	what := []string{"recipes", "properties", "workloads", "faults", "suites", "claims"}
	cmd := &cobra.Command{
		Use: "list recipes [ID...]|properties|workloads|faults [NAME...]|suites|claims", Short: "List recipes, properties, workloads, faults, suites or claims", ValidArgs: what,
		Args: argCount(cobra.MinimumNArgs(1), "one of recipes, properties, workloads, faults, suites, claims"),
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "text" && format != "json" {
				return usage(fmt.Errorf("--format %s: want text or json", format))
			}
			if args[0] == "recipes" {
				return a.listRecipes(format, args[1:])
			}
			if args[0] == "faults" && len(args) > 1 {
				return a.explainFaults(format, args[1:])
			}
			if len(args) > 1 {
				return usage(fmt.Errorf("list %s takes no arguments, got %s", args[0], strings.Join(args[1:], " ")))
			}
			switch args[0] {
			case "properties":
				return a.listEntries(format, properties())
			case "workloads":
				return a.listEntries(format, entries(scenario.Workloads()))
			case "faults":
				return a.listFaults(format)
			case "suites":
				list, err := suites.List()
				if err != nil {
					return err
				}
				return a.listEntries(format, entries(list))
			case "claims":
				return a.listClaims(format)
			}
			return usage(fmt.Errorf("no list %q; want one of %s", args[0], strings.Join(what, ", ")))
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
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
