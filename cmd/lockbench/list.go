package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/scenario"
	"github.com/lockbench/lockbench/suites"
)

// listed is one line of a list.
type listed struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	// Unavailable says why it cannot be used on this machine.
	Unavailable string `json:"unavailable,omitempty"`
}

// listedRecipe is one recipe of the list.
type listedRecipe struct {
	ID         string   `json:"id"`
	Backend    string   `json:"backend"`
	Summary    string   `json:"summary"`
	Promise    string   `json:"promise"`
	Document   string   `json:"document"`
	Bound      string   `json:"bound"`
	Fencing    bool     `json:"fencing"`
	Polls      bool     `json:"polls"`
	RoundTrips int      `json:"round_trips"`
	Topologies []string `json:"topologies"`
}

func (a *app) listCommand() *cobra.Command {
	var format string
	what := []string{"recipes", "workloads", "faults", "suites"}
	cmd := &cobra.Command{
		Use: "list recipes|workloads|faults|suites", Short: "List what there is", ValidArgs: what,
		Args: argCount(cobra.ExactArgs(1), "one of recipes, workloads, faults, suites"),
		RunE: func(_ *cobra.Command, args []string) error {
			if format != "text" && format != "json" {
				return usage(fmt.Errorf("--format %s: want text or json", format))
			}
			switch args[0] {
			case "recipes":
				return a.listRecipes(format)
			case "workloads":
				return a.listEntries(format, entries(scenario.Workloads()))
			case "faults":
				list := entries(scenario.Faults())
				for i := range list {
					if err := chaos.Available(list[i].Name); err != nil {
						list[i].Unavailable = err.Error()
					}
				}
				return a.listEntries(format, list)
			case "suites":
				list, err := suites.List()
				if err != nil {
					return err
				}
				return a.listEntries(format, entries(list))
			}
			return usage(fmt.Errorf("no list of %q; there are %s", args[0], strings.Join(what, ", ")))
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

func (a *app) listEntries(format string, list []listed) error {
	if format == "json" {
		return a.printJSON(list)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, e := range list {
		summary := strings.Join(strings.Fields(e.Summary), " ")
		if e.Unavailable != "" {
			summary += " (not here: " + e.Unavailable + ")"
		}
		fmt.Fprintf(w, "%s\t%s\n", e.Name, summary)
	}
	return w.Flush()
}

func (a *app) listRecipes(format string) error {
	var list []listedRecipe
	for _, r := range all.Recipes() {
		i := r.Info()
		list = append(list, listedRecipe{
			ID: i.ID, Backend: i.Backend, Summary: i.Summary, Promise: i.Promise, Document: i.Document, Bound: string(i.Bound),
			Fencing: i.Fencing, Polls: i.Polls, RoundTrips: i.RoundTrips, Topologies: slices.Clone(i.Topologies),
		})
	}
	if format == "json" {
		return a.printJSON(list)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RECIPE\tBOUND\tTOKENS\tWAITS\tROUND TRIPS\tTOPOLOGIES\tHOW")
	for _, r := range list {
		waits, tokens := "woken", "no"
		if r.Polls {
			waits = "polls"
		}
		if r.Fencing {
			tokens = "yes"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n", r.ID, r.Bound, tokens, waits, r.RoundTrips, strings.Join(r.Topologies, ","), r.Summary)
	}
	return w.Flush()
}

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
