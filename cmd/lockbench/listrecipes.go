package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/scenario"
)

// listedRecipe is one recipe of the list.
type listedRecipe struct {
	ID         string   `json:"id"`
	Backend    string   `json:"backend"`
	Summary    string   `json:"summary"`
	Promise    string   `json:"promise"`
	Document   string   `json:"document"`
	Fails      string   `json:"fails,omitempty"`
	Bound      string   `json:"bound"`
	Takeover   string   `json:"takeover,omitempty"` // the bound of it, for a TTL of 4s
	Has        []string `json:"has"`
	Steps      []string `json:"steps"`
	Fencing    bool     `json:"fencing"`
	Polls      bool     `json:"polls"`
	Broken     bool     `json:"broken,omitempty"`
	RoundTrips int      `json:"round_trips"`
	Requests   []string `json:"requests"`
	Topologies []string `json:"topologies"`
	// Apart lists those on which it is known to have a holder at each server.
	Apart []string `json:"apart,omitempty"`
}

// exampleTTL is the lease for which the list tells a takeover bound: one that
// every backend serves.
const exampleTTL = 4 * time.Second

func describeRecipe(i impls.Info) listedRecipe {
	l := listedRecipe{
		ID: i.ID, Backend: i.Backend, Summary: i.Summary, Promise: i.Promise, Document: i.Document, Fails: i.Fails, Bound: string(i.Bound),
		Has: texts(inOrder(i.Properties)), Steps: texts(i.Steps), Fencing: i.Fencing, Polls: i.Polls, Broken: i.Broken,
		RoundTrips: i.RoundTrips, Requests: texts(i.Requests), Topologies: texts(i.Topologies), Apart: i.GrantsPerServer,
	}
	if i.Takeover != nil {
		l.Takeover = i.Takeover(exampleTTL).String()
	}
	return l
}

// inOrder sorts properties as the suite measures them.
func inOrder(has []impls.Property) []impls.Property {
	var out []impls.Property
	for _, p := range impls.Properties() {
		if slices.Contains(has, p.Property) {
			out = append(out, p.Property)
		}
	}
	return out
}

// texts is never nil, so that JSON has an empty list.
func texts[T ~string](list []T) []string {
	out := make([]string, 0, len(list))
	for _, x := range list {
		out = append(out, string(x))
	}
	return out
}

// listRecipes prints the recipes, all or those named, one named by its backend
// alone standing for all of it.
func (a *app) listRecipes(format string, ids []string) error {
	var list []listedRecipe
	found := map[string]bool{}
	for _, r := range all.Recipes() {
		l := describeRecipe(r.Info())
		named := len(ids) == 0
		for _, id := range ids {
			if id == l.ID || id == l.Backend {
				named, found[id] = true, true
			}
		}
		if named {
			list = append(list, l)
		}
	}
	for _, id := range ids {
		if !found[id] {
			return usage(unknownRecipe(id))
		}
	}
	if format == "json" {
		return a.printJSON(list)
	}
	return printRecipes(a.stdout, list, columns(a.stdout, 120), len(ids) > 0)
}

// printRecipes writes a recipe per block: what is short in columns, and beside
// it what is told in words. In full it also tells what tests and suites need.
func printRecipes(w io.Writer, list []listedRecipe, width int, full bool) error {
	head := len("RECIPE")
	for _, r := range list {
		head = max(head, len(r.ID))
	}
	const short = "%-*s  %-10s  %-5s  %-5s  %5s  "
	indent := head + len("  connection  woken  token  trips  ")
	// Without room beside the columns the words go below them.
	first, below := "WHAT IT IS", indent+40 > width
	if below {
		first, indent, width = "", 4, max(width, 44)
	}
	var b strings.Builder
	b.WriteString(strings.TrimRight(fmt.Sprintf(short, head, "RECIPE", "BOUND", "WAITS", "FENCE", "TRIPS")+first, " ") + "\n")
	for _, r := range list {
		waits, fence := "woken", "no"
		if r.Polls {
			waits = "polls"
		}
		if r.Fencing {
			fence = "token"
		}
		columns := fmt.Sprintf(short, head, r.ID, r.Bound, waits, fence, fmt.Sprint(r.RoundTrips))
		if below {
			columns = strings.TrimRight(columns, " ") + "\n"
		}
		b.WriteString(columns)
		facts := []struct{ name, text string }{
			{"", r.Summary}, {"promises: ", r.Promise}, {"has: ", strings.Join(r.Has, ", ")}, {"fails: ", r.Fails}, {"from: ", r.Document},
		}
		if full {
			takeover := "none: a dead holder's lock stays taken"
			if r.Takeover != "" {
				takeover = fmt.Sprintf("%s, for a TTL of %s", r.Takeover, exampleTTL)
			}
			steps := append(slices.Clone(r.Steps), string(impls.StepWaiting))
			if !r.Polls {
				steps = append(steps, string(impls.StepWoken))
			}
			facts = append(facts, []struct{ name, text string }{
				{"takeover bound: ", takeover}, {"steps: ", strings.Join(steps, ", ") + "; and of every recipe " + strings.Join(scenario.Places(), ", ")},
				{"topologies: ", strings.Join(r.Topologies, ", ")}, {"each server grants it by itself on: ", strings.Join(r.Apart, ", ")}, {"counted requests: ", strings.Join(r.Requests, ", ")},
			}...)
		}
		beside := !below
		for _, f := range facts {
			if f.text == "" {
				continue
			}
			for i, line := range foldWords(f.name+oneLine(f.text), width-indent) {
				if !beside {
					b.WriteString(strings.Repeat(" ", indent))
				}
				if i > 0 {
					b.WriteString("  ")
				}
				b.WriteString(line + "\n")
				beside = false
			}
		}
	}
	b.WriteString("\n")
	for _, line := range foldWords("BOUND: what ends the lock of a holder that died. TRIPS: round trips of an uncontended acquire and release together, those to several servers at once counted each. `lockbench list recipes ID` tells more of one, `lockbench list properties` what the words after \"has\" mean.", width) {
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// foldWords breaks a text at spaces into lines of at most width, two less from
// the second on, which are indented.
func foldWords(s string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		room := width
		if len(lines) > 0 {
			room -= 2
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > room:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
