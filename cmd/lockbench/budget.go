package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/scenario"
)

// plan is what is to be run.
type plan struct {
	scenario.Resolved
	file     scenario.File // that it came from; empty for a run that is repeated
	parallel int
	maxDisk  scenario.Size
	known    scenario.KnownFailures
	notTried []scenario.NotTried
}

// fit reduces a plan to what fits a time budget, and lists what it leaves out.
func (a *app) fit(p *plan, budget time.Duration) error {
	sel := p.file.Within(budget, p.Scenarios, p.parallel)
	if len(sel.Picked) == 0 {
		return usage(fmt.Errorf("--budget %v is too short for any scenario of %s; the shortest needs %v", budget, p.Suite, shortest(p.Scenarios, p.parallel).Round(time.Second)))
	}
	total := len(p.Scenarios)
	p.Scenarios, p.notTried = sel.Picked, sel.NotTried
	if len(sel.LeftOut) == 0 {
		return nil
	}
	var lines []string
	repeats := 0
	byPriority := map[int][]string{}
	for _, l := range sel.LeftOut {
		switch {
		case len(l.Recipes) == 0:
			repeats += l.Scenarios
		case l.Runs == 0:
			byPriority[l.Priority] = append(byPriority[l.Priority], l.Group)
		default:
			byPriority[l.Priority] = append(byPriority[l.Priority], fmt.Sprintf("%s (%s)", l.Group, strings.Join(l.Recipes, ", ")))
		}
	}
	if repeats > 0 {
		lines = append(lines, fmt.Sprintf("repeats of scenarios that run once: %s", scenariosText(repeats)))
	}
	for _, priority := range slices.Sorted(maps.Keys(byPriority)) {
		if priority > 0 {
			lines = append(lines, fmt.Sprintf("priority %d: %s", priority, strings.Join(byPriority[priority], ", ")))
		}
	}
	if len(byPriority[0]) > 0 {
		lines = append(lines, "without a priority: "+strings.Join(byPriority[0], ", "))
	}
	fmt.Fprintf(a.stderr, "BUDGET %v: %d of %s run, in about %v; the whole of %s would take about %v.\nLEFT OUT, because they do not fit:\n",
		budget, len(sel.Picked), scenariosText(total), sel.Estimate.Round(time.Second), p.Suite, sel.Whole.Round(time.Second))
	for _, line := range lines {
		hang(a.stderr, "", 2, line, columns(a.stderr, 120)-2)
	}
	return nil
}

func shortest(scenarios []scenario.Scenario, parallel int) time.Duration {
	least := time.Duration(0)
	for _, sc := range scenarios {
		if t := scenario.Estimate([]scenario.Scenario{sc}, parallel); least == 0 || t < least {
			least = t
		}
	}
	return least
}

// printSchedule prints the faults of each scenario and their times, as comments, so
// that the output is still a suite.
func (a *app) printSchedule(scenarios []scenario.Scenario) error {
	var b strings.Builder
	for _, sc := range scenarios {
		text := chaos.PlanText(sc)
		if text == "" {
			continue
		}
		fmt.Fprintf(&b, "# %s, times from the start of the measured window:\n", sc.Name)
		for line := range strings.Lines(text) {
			b.WriteString("#   " + line)
		}
	}
	if b.Len() > 0 {
		b.WriteString("# Targets are chosen when a fault fires, by its id and the scenario's seed.\n")
	}
	_, err := a.stdout.Write([]byte(b.String()))
	return err
}
