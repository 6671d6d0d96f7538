package chaos

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Planned is one fault as it will be carried out. Its target is chosen when it
// fires, among the clients or servers at that time, by its id and the seed.
type Planned struct {
	ID string // of its events
	scenario.Fault
}

// Plan lists the faults of a scenario in the order in which they are armed.
func Plan(sc scenario.Scenario) []Planned { return plan(sc.Faults) }

func plan(faults []scenario.Fault) []Planned {
	faults = slices.Clone(faults)
	slices.SortStableFunc(faults, func(a, b scenario.Fault) int { return cmp.Compare(a.At, b.At) })
	list := make([]Planned, len(faults))
	for i, f := range faults {
		list[i] = Planned{ID(i, f), f}
	}
	return list
}

// When describes at what moment the fault fires.
func (p Planned) When() string {
	when := "at " + p.At.String()
	if p.Step != "" || p.After > 0 {
		when = "from " + p.At.String()
	}
	if p.Step != "" {
		nth := "a client"
		if p.Nth > 1 {
			nth = fmt.Sprintf("client number %d", p.Nth)
		}
		when += fmt.Sprintf(", while %s stands at the step %s", nth, p.Step)
	}
	if p.After > 0 {
		when += fmt.Sprintf(", when the hold is %g TTL old", p.After)
	}
	return when
}

// How describes how long and how strong the fault is; "" for one without a
// duration.
func (p Planned) How() string {
	var parts []string
	add := func(format string, value any) { parts = append(parts, fmt.Sprintf(format, value)) }
	if p.For > 0 {
		add("for %v", p.For)
	}
	if p.By != 0 {
		add("by %v", p.By)
	}
	if p.Jitter > 0 {
		add("jitter up to %v", p.Jitter)
	}
	if p.Rate > 0 {
		add("%d bytes a second", p.Rate)
	}
	return strings.Join(parts, ", ")
}

// PlanText is the plan of a scenario, one fault a line; "" without faults.
func PlanText(sc scenario.Scenario) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, p := range Plan(sc) {
		line := p.ID + "\t" + p.When()
		if how := p.How(); how != "" {
			line += "\t" + how
		}
		fmt.Fprintln(w, line)
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

// ID is the stable name of the i-th fault of a schedule: the same seed gives
// the same fault the same choices in any run.
func ID(i int, f scenario.Fault) string { return fmt.Sprintf("%s-%d", f.Kind, i+1) }
