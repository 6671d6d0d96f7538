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
	Takeover   string   `json:"takeover,omitempty"` // takeover bound for a TTL of 4s
	Has        []string `json:"has"`
	Steps      []string `json:"steps"`
	Fencing    bool     `json:"fencing"`
	LockDelay  bool     `json:"lock_delay,omitempty"`
	Polls      bool     `json:"polls"`
	Broken     bool     `json:"broken,omitempty"`
	RoundTrips int      `json:"round_trips"`
	Requests   []string `json:"requests"`
	Topologies []string `json:"topologies"`
	// Apart lists topologies on which each server grants the lock on its own.
	GrantsPerServer []string `json:"apart,omitempty"`
}

// exampleTTL is the TTL of the listed takeover bounds; every backend serves it.
const exampleTTL = 4 * time.Second

func describeRecipe(i impls.Info) listedRecipe {
	l := listedRecipe{
		ID: i.ID, Backend: i.Backend, Summary: i.Summary, Promise: i.Promise, Document: i.Document, Fails: i.Fails, Bound: string(i.Bound),
		Has: texts(inOrder(i.Properties)), Steps: texts(i.Steps), Fencing: i.Fencing, LockDelay: i.LockDelay, Polls: i.Polls, Broken: i.Broken,
		RoundTrips: i.RoundTrips, Requests: texts(i.Requests), Topologies: texts(i.Topologies), GrantsPerServer: i.GrantsPerServer,
	}
	if i.Takeover != nil {
		l.Takeover = i.Takeover(exampleTTL).String()
	}
	return l
}

// inOrder sorts properties in the order of the properties suite.
func inOrder(has []impls.Property) []impls.Property {
	var out []impls.Property
	for _, p := range impls.Properties() {
		if slices.Contains(has, p.Property) {
			out = append(out, p.Property)
		}
	}
	return out
}

// texts is never nil, so that JSON has an empty list instead of null.
func texts[T ~string](list []T) []string {
	out := make([]string, 0, len(list))
	for _, x := range list {
		out = append(out, string(x))
	}
	return out
}

// listRecipes prints all recipes, or those with the given ids or backends.
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

// printRecipes writes a block per recipe: short facts in columns, and sentences
// beside them. With full it also has the facts for tests and suites.
func printRecipes(w io.Writer, list []listedRecipe, width int, full bool) error {
	head := len("RECIPE")
	for _, r := range list {
		head = max(head, len(r.ID))
	}
	const short = "%-*s  %-10s  %-5s  %-5s  %5s  "
	indent := head + len("  connection  woken  token  trips  ")
	// In a narrow terminal the sentences go below the columns.
	first, below := "DESCRIPTION", indent+40 > width
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
			{"", r.Summary}, {"guarantee: ", r.Promise}, {"properties: ", strings.Join(r.Has, ", ")}, {"fails: ", r.Fails}, {"source: ", r.Document},
		}
		if full {
			takeover := "none: the lock of a dead holder stays taken"
			if r.Takeover != "" {
				takeover = fmt.Sprintf("%s, for a TTL of %s", r.Takeover, exampleTTL)
			}
			steps := append(slices.Clone(r.Steps), string(impls.StepWaiting))
			if !r.Polls {
				steps = append(steps, string(impls.StepWoken))
			}
			facts = append(facts, []struct{ name, text string }{
				{"takeover bound: ", takeover}, {"steps: ", strings.Join(steps, ", ") + "; for every recipe: " + strings.Join(scenario.Places(), ", ")},
				{"topologies: ", strings.Join(r.Topologies, ", ")}, {"each server grants the lock on its own on: ", strings.Join(r.GrantsPerServer, ", ")}, {"counted requests: ", strings.Join(r.Requests, ", ")},
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
	for _, line := range foldWords("BOUND: what ends the lock of a dead holder. TRIPS: round trips of an uncontended acquire and release together; parallel requests to several servers count one each. See `lockbench list recipes ID` for more about one recipe, and `lockbench list properties` for the properties.", width) {
		b.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// hang writes a text beside a subject, which gets a column of its own.
func hang(w io.Writer, subject string, column int, text string, room int) {
	for i, line := range foldWords(text, room) {
		if i > 0 {
			subject, line = "", "  "+line
		}
		fmt.Fprintf(w, "%-*s%s\n", column, subject, line)
	}
}

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
