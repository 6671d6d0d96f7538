package claims

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Table shows a rank or a curve.
type Table struct {
	Title   string   `json:"title"`
	Head    string   `json:"head"`
	Columns []string `json:"columns"`
	Rows    []Row    `json:"rows"`
	Notes   []string `json:"notes,omitempty"`
	Metric  string   `json:"metric,omitempty"` // of a curve
}

// Row is one recipe, or one point of a curve.
type Row struct {
	Name  string `json:"name"`
	Cells []Cell `json:"cells"`
	X     int64  `json:"x,omitempty"` // of a point: clients, or nanoseconds
}

// Cell is a text, and its number if it has one.
type Cell struct {
	Text string `json:"text"`
	*Stat
}

// steps splits an order into its recipes and the relations between them.
func (r Rank) steps() (recipes, relations []string) {
	for i, word := range strings.Fields(r.Order) {
		if i%2 == 0 {
			recipes = append(recipes, word)
		} else {
			relations = append(relations, word)
		}
	}
	return recipes, relations
}

// checks compares each recipe with the next one, by every criterion: ">" says
// that it is better by what counts, ">=" that the next is not.
func (r Rank) checks() ([]Check, error) {
	recipes, relations := r.steps()
	if len(recipes) != len(relations)+1 || len(recipes) < 2 {
		return nil, fmt.Errorf("the order %q is not of the form a > b >= c", r.Order)
	}
	var list []Check
	for _, by := range r.By {
		if by.Best != "most" && by.Best != "least" {
			return nil, fmt.Errorf("the criterion %s needs best: most or least", by.Metric)
		}
		for i, relation := range relations {
			first, next := Set{In: by.In, Recipes: recipes[i : i+1]}, Set{In: by.In, Recipes: recipes[i+1 : i+2]}
			k := Check{Compare: by.Metric, Of: first, To: next, counted: by.Counted, Repeats: by.Repeats}
			switch relation {
			case ">":
				k.Least = by.Counts
			case ">=":
				k.Of, k.To, k.Under = next, first, by.Counts
			default:
				return nil, fmt.Errorf("%q in the order; write > or >=", relation)
			}
			if by.Best == "least" {
				k.Of, k.To = k.To, k.Of
			}
			k.Says = fmt.Sprintf("%s %s %s by %s (%s)", recipes[i], relation, recipes[i+1], by.Metric, by.name())
			list = append(list, k)
		}
	}
	return list, nil
}

func (c Criterion) name() string {
	if len(c.In) > 1 {
		return fmt.Sprintf("%d groups", len(c.In))
	}
	return c.In[0]
}

// rank is the order of the documents beside what was measured.
func (e evidence) rank(r Rank, parts []Part) Table {
	recipes, relations := r.steps()
	t := Table{Title: "the documents' order: " + r.Order, Head: "lock", Columns: []string{"documents"}}
	for _, by := range r.By {
		t.Columns = append(t.Columns, by.Metric+", "+by.name())
	}
	t.Notes = []string{"Before each figure, the median over the repeats, its place: 1 plus the number of locks that are better by the smallest effect that counts, beyond the spread of the repeats. Equal places are ties."}
	all := slices.Concat(recipes, slices.Sorted(maps.Keys(r.Also)))
	for i, recipe := range all {
		row := Row{Name: recipe, Cells: []Cell{{Text: place(i, relations)}}}
		if i >= len(recipes) {
			row.Cells[0].Text = "–"
			t.Notes = append(t.Notes, recipe+": "+r.Also[recipe]+".")
		}
		for _, by := range r.By {
			c, why := e.placed(by, recipe, all)
			if why != "" && !slices.Contains(t.Notes, why) {
				t.Notes = append(t.Notes, why)
			}
			row.Cells = append(row.Cells, c)
		}
		if i < len(relations) {
			for j := range r.By { // the parts are in the order of checks
				if p := parts[j*len(relations)+i]; p.Verdict != Confirmed {
					t.Notes = append(t.Notes, fmt.Sprintf("Difference: %s: %s: %s.", p.Says, p.Verdict, p.Reason))
				}
			}
		}
		t.Rows = append(t.Rows, row)
	}
	for _, name := range slices.Sorted(maps.Keys(r.Absent)) {
		t.Rows = append(t.Rows, Row{Name: name, Cells: slices.Repeat([]Cell{{Text: "–"}}, len(t.Columns))})
		t.Notes = append(t.Notes, name+" was not run: "+r.Absent[name]+".")
	}
	for _, by := range r.By {
		text := fmt.Sprintf("%s: the %s is best, an effect below %s does not count; scenarios: %s.", by.Metric, by.Best, by.Counts, strings.Join(by.In, ", "))
		for _, recipe := range slices.Sorted(maps.Keys(by.Counted)) {
			text += fmt.Sprintf(" %s: %s.", recipe, strings.Join(by.Counted[recipe], ", "))
		}
		t.Notes = append(t.Notes, text)
	}
	return t
}

func place(i int, relations []string) string {
	text := fmt.Sprint(i + 1)
	if i > 0 && i <= len(relations) && relations[i-1] == ">=" {
		text += " or tied"
	}
	return text
}

// placed is a recipe's place among all by a criterion, and its figure.
func (e evidence) placed(by Criterion, recipe string, all []string) (c Cell, why string) {
	of := func(recipe string) (sample, string) {
		return e.sideOf(Check{Compare: by.Metric, counted: by.Counted, Repeats: 1}, Set{In: by.In, Recipes: []string{recipe}})
	}
	own, why := of(recipe)
	if why != "" {
		return Cell{Text: "–"}, why
	}
	counts, _ := parseEffect(by.Counts) // validated with the checks
	place := 1
	for _, other := range all {
		better, why := of(other)
		if why != "" || other == recipe || len(better.inRunsOf(own).runs) == 0 {
			continue
		}
		worse := own
		if by.Best == "least" {
			better, worse = worse, better
		}
		if counts.verdict(counts.between(better, worse)) == Confirmed {
			place++
		}
	}
	return Cell{Text: fmt.Sprintf("%d: %s", place, metricText(by.Metric, own.stat().Median)), Stat: own.stat()}, ""
}

// curve is a metric over what varies, a column for each recipe.
func (e evidence) curve(v Curve) Table {
	t := Table{Title: v.Title, Head: v.X, Metric: v.Metric}
	list := e.of(v.Of)
	points := map[int64][]measured{}
	for _, m := range list {
		points[v.at(m.Result)] = append(points[v.at(m.Result)], m)
		if !slices.Contains(t.Columns, m.Recipe) {
			t.Columns = append(t.Columns, m.Recipe)
		}
	}
	xs := slices.Sorted(maps.Keys(points))
	for _, x := range xs {
		row := Row{Name: v.point(x), X: x}
		at := evidence{points[x]}
		for _, recipe := range t.Columns {
			m, why := at.sample(v.Metric, Set{In: groups(points[x]), Recipes: []string{recipe}, Clients: v.Of.Clients}, 1)
			if why != "" {
				row.Cells = append(row.Cells, Cell{Text: "– (" + why + ")"})
				continue
			}
			row.Cells = append(row.Cells, Cell{Text: m.stat().text(), Stat: m.stat()})
		}
		t.Rows = append(t.Rows, row)
	}
	if len(t.Columns) == 2 {
		t.Notes = []string{crossing(t)}
	}
	if len(xs) == 0 {
		t.Notes = []string{"not measured: no scenario was run of " + v.Of.words()}
	}
	return t
}

func groups(list []measured) []string {
	var out []string
	for _, m := range list {
		if !slices.Contains(out, m.Group) {
			out = append(out, m.Group)
		}
	}
	return out
}

func (v Curve) at(r scenario.Result) int64 {
	switch v.X {
	case "ttl":
		return int64(r.TTL)
	case "hold":
		return int64(r.Workload.Hold.A)
	}
	return int64(r.Clients)
}

func (v Curve) point(x int64) string {
	if v.X == "clients" {
		return fmt.Sprint(x)
	}
	return time.Duration(x).String()
}

// crossing is where the lower of two series changes, beyond their spreads.
func crossing(t Table) string {
	low, since := -1, ""
	text := ""
	for _, row := range t.Rows {
		a, b := row.Cells[0].Stat, row.Cells[1].Stat
		if a == nil || b == nil {
			continue
		}
		now := -1
		switch {
		case a.Max < b.Min:
			now = 0
		case b.Max < a.Min:
			now = 1
		default:
			continue
		}
		if low >= 0 && now != low {
			text += fmt.Sprintf("Crossing: %s is lower up to %s %s, %s from %s on. ", t.Columns[low], t.Head, since, t.Columns[now], row.Name)
		}
		low, since = now, row.Name
	}
	switch {
	case text != "":
		return strings.TrimSpace(text)
	case low < 0:
		return "No crossing: the two do not differ beyond the spread of their repeats."
	}
	return fmt.Sprintf("No crossing: %s is lower at every point where the two differ beyond the spread of their repeats.", t.Columns[low])
}
