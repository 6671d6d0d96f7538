package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// measuresProperties reports whether a result has the recipe's properties instead
// of a load.
func measuresProperties(r result) bool { return r.Workload.Kind == scenario.Properties }

// loads are the results with a load.
func loads(rs []result) []result {
	return slices.DeleteFunc(slices.Clone(rs), measuresProperties)
}

// propertyHead is a property's heading: a short name, and its origin.
type propertyHead struct{ short, group string }

const (
	asked   = "required by the documents"
	careful = "of a careful lock"
)

func propertyHeads() map[string]propertyHead {
	return map[string]propertyHead{
		"exclusive": {"excl", asked}, "deadlock-free": {"dlfree", asked}, "symmetric": {"symm", asked}, "available": {"avail", asked},
		"reentrant": {"reent", asked}, "blocking": {"block", asked}, "nonblocking": {"try", asked}, "expiry": {"expiry", asked},
		"ordered": {"order", asked}, "read-write": {"r/w", asked}, "batch": {"batch", asked},
		"reports-lost": {"lost", careful}, "cleans-up": {"clean", careful}, "signals-loss": {"signal", careful}, "extends": {"ext", careful}, "once": {"once", careful},
	}
}

// properties: which properties each recipe has, measured and compared with its
// guarantees.
func (b *builder) properties() section {
	s := section{Title: "PROPERTIES", Lead: "Each property of each recipe, measured on real servers and compared with the recipe's guarantees."}
	byRecipe := map[string][]result{}
	var recipes, names []string
	for _, r := range b.run.doc.Scenarios {
		if !measuresProperties(r) {
			continue
		}
		l := label(r)
		if byRecipe[l] == nil {
			recipes = append(recipes, l)
		}
		byRecipe[l] = append(byRecipe[l], r)
		for _, p := range r.Properties {
			if !slices.Contains(names, p.Property) {
				names = append(names, p.Property)
			}
		}
	}
	t := table{Head: "recipe"}
	heads := propertyHeads()
	var words []string
	for _, n := range names {
		h, ok := heads[n]
		if !ok {
			h.short = clean(n)
		}
		t.Cols = append(t.Cols, column{Group: h.group, Name: h.short, Left: true})
		if h.short != clean(n) {
			words = append(words, h.short+" "+clean(n))
		}
	}
	for _, l := range recipes {
		rs := byRecipe[l]
		r := row{Head: l}
		if why := absent(rs); why != "" {
			r.Span, r.Class = why, warn
			t.Rows = append(t.Rows, r)
			continue
		}
		for _, n := range names {
			r.Cells = append(r.Cells, b.property(l, n, done(rs)))
		}
		t.Rows = append(t.Rows, r)
	}
	below := "yes, no: measured. !: differs from the recipe's guarantees, see the note. –: does not apply. ?: not decided."
	if len(words) > 0 {
		below += " Abbreviations: " + strings.Join(words, ", ") + "."
	}
	t.Below = []string{below}
	s.Tables = nonEmpty(t)
	return s
}

// property is one cell. A run that differs from the guarantee takes precedence.
func (b *builder) property(recipe, name string, rs []result) cell {
	var found *scenario.Property
	for _, r := range rs {
		for i := range r.Properties {
			p := &r.Properties[i]
			if p.Property == name && (found == nil || found.AsPromised() && !p.AsPromised()) {
				found = p
			}
		}
	}
	if found == nil {
		return b.dash(fmt.Sprintf("%s, %s: the property was not measured", recipe, name))
	}
	evidence := clean(found.Evidence)
	c := cell{Hover: fmt.Sprintf("%s: guaranteed %s, measured %s. %s", clean(name), clean(found.Promised), clean(found.Measured), evidence)}
	switch found.Measured {
	case scenario.Yes:
		c.Text, c.Class = "yes", good
	case scenario.No:
		c.Text = "no"
	case scenario.NotApplicable:
		c.Text, c.Class = none, mute
	default:
		c.Text, c.Class = "?", warn
	}
	if found.AsPromised() {
		return c
	}
	if found.Measured != scenario.Undecided {
		c.Text, c.Class = c.Text+"!", bad
	}
	c.Marks = []int{b.note(fmt.Sprintf("%s, %s: guaranteed %s, measured %s: %s", recipe, clean(name), clean(found.Promised), clean(found.Measured), evidence))}
	return c
}

// guaranteed states which recipes have the properties that they guarantee.
func guaranteed(d scenario.Document) []string {
	n := 0
	var differ []string
	for _, r := range d.Scenarios {
		if !measuresProperties(r) || r.Status != scenario.StatusDone {
			continue
		}
		n++
		if slices.ContainsFunc(r.Properties, func(p scenario.Property) bool { return !p.AsPromised() }) {
			differ = append(differ, label(r))
		}
	}
	switch {
	case n == 0:
		return nil
	case len(differ) == 0:
		return []string{fmt.Sprintf("Properties: %s as guaranteed.", allOf(n, "recipe", "recipes"))}
	}
	return []string{fmt.Sprintf("Properties: %d of %s not as guaranteed: %s.", len(differ), plural(n, "recipe", "recipes"), list(differ))}
}

// propertyRow is one property in the details of a scenario.
type propertyRow struct {
	Name, Claim, Promised, Measured, Evidence string
	Class                                     class
}

func propertyRows(r result) []propertyRow {
	var rows []propertyRow
	for _, p := range r.Properties {
		row := propertyRow{Name: clean(p.Property), Claim: clean(p.Claim), Promised: clean(p.Promised), Measured: clean(p.Measured), Evidence: clean(p.Evidence)}
		switch {
		case p.AsPromised():
		case p.Measured == scenario.Undecided:
			row.Class = warn
		default:
			row.Class = bad
		}
		rows = append(rows, row)
	}
	return rows
}
