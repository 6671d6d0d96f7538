package compare

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/lockbench/lockbench/internal/printable"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Text writes the comparison for a terminal.
func (c Comparison) Text(w io.Writer) error {
	return c.render(w, "%s\n", "  %s\n", func(w io.Writer, rows [][]string) error {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		for _, row := range rows {
			fmt.Fprintln(t, "  "+strings.Join(row, "\t"))
		}
		return t.Flush()
	})
}

// Markdown writes the comparison for a comment on a change.
func (c Comparison) Markdown(w io.Writer) error {
	return c.render(w, "### %s\n\n", "- %s\n", func(w io.Writer, rows [][]string) error {
		rows = slices.Insert(slices.Clone(rows), 1, slices.Repeat([]string{"---"}, len(rows[0])))
		for _, row := range rows {
			cells := make([]string, len(row))
			for i, cell := range row {
				cells[i] = strings.ReplaceAll(cell, "|", `\|`)
			}
			fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
		}
		return nil
	})
}

// render writes the sections in order; title and item are formats, and table
// writes rows, the first of which is the heading.
func (c Comparison) render(w io.Writer, title, item string, table func(io.Writer, [][]string) error) error {
	var b strings.Builder
	section := func(name string, items ...string) {
		if b.Len() > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, title, name)
		for _, text := range items {
			fmt.Fprintf(&b, item, printable.Line(text))
		}
	}
	rows := func(list [][]string) error {
		b.WriteString("\n")
		for _, row := range list {
			for i := range row {
				row[i] = printable.Line(row[i])
			}
		}
		return table(&b, list)
	}
	section(c.headline(), "BASE: "+c.Base.String(), "NEW:  "+c.New.String())
	if len(c.Failed) > 0 {
		var items []string
		for _, g := range c.Failed {
			items = append(items, g.String())
		}
		section("RULES NOT MET", items...)
	}
	if len(c.Weak) > 0 {
		var items []string
		for _, g := range c.Weak {
			items = append(items, fmt.Sprintf("%s: %s: %s", g.Scenario, g.Rule, g.Open))
		}
		section("RULES MET, BUT SUCH A CHANGE COULD HAVE BEEN MISSED", items...)
	}
	if len(c.Safety) == 0 {
		section("SAFETY", "no answer changed in "+count(c.Compared, "scenario"))
	} else {
		section("SAFETY")
		list := [][]string{{"change", "scenario", "answer", "BASE", "NEW"}}
		for _, s := range c.Safety {
			change := s.Change
			if s.Known != "" {
				change += " (known: " + s.Known + ")"
			}
			list = append(list, []string{change, s.Scenario, s.Answer, s.Base + " in " + s.BaseRuns, s.New + " in " + s.NewRuns})
		}
		if err := rows(list); err != nil {
			return err
		}
	}
	if len(c.Speed) > 0 {
		items := []string{fmt.Sprintf("%d tests share an error of %g (Mann-Whitney U, Holm); ~ is no change, or one below %g %%, with the smallest change that could have been found; – was not compared", c.Tests, c.Alpha, 100*c.MinChange)}
		if c.Busy != "" {
			items = append(items, c.Busy+", so a change may be the machine's")
		}
		section("SPEED", items...)
		if err := rows(c.matrix()); err != nil {
			return err
		}
		if changed := c.changed(); len(changed) > 1 {
			if err := rows(changed); err != nil {
				return err
			}
		}
		if refused := c.refused(); len(refused) > 0 {
			section("NOT COMPARED", refused...)
		}
	}
	if len(c.Differences) > 0 {
		section("DIFFERENT ENVIRONMENTS", c.Differences...)
	}
	for _, rest := range []struct {
		title string
		list  []string
	}{{"RAN IN NEITHER", c.NotRun}, {"ONLY IN BASE", c.OnlyBase}, {"ONLY IN NEW", c.OnlyNew}} {
		if len(rest.list) > 0 {
			section(rest.title, rest.list...)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (r Run) String() string {
	text := fmt.Sprintf("%s, seed %d, %s", r.Suite, r.Seed, r.Started.UTC().Format(time.DateTime))
	if r.Lockbench != "" {
		text += ", lockbench " + r.Lockbench
	}
	return text
}

// headline is the result in a line, safety first.
func (c Comparison) headline() string {
	n := map[string]int{}
	for _, s := range c.Safety {
		n[s.Change]++
	}
	changed, decided := 0, 0
	for _, s := range c.Speed {
		if s.Changed {
			changed++
		}
		if s.Refused == "" {
			decided++
		}
	}
	safety := "safety unchanged"
	switch {
	case c.Compared == 0:
		return "nothing to compare: no scenario of both runs ran"
	case len(c.Safety) > 0:
		safety = fmt.Sprintf("safety: %d worse, %d unproven, %d better", n[Worse], n[Unproven], n[Better])
	}
	if decided == 0 {
		return safety + "; speed: not compared"
	}
	return fmt.Sprintf("%s; speed: %d of %d figures changed", safety, changed, decided)
}

// matrix has a row per scenario and a column per metric.
func (c Comparison) matrix() [][]string {
	heading := []string{"scenario"}
	for _, s := range c.Speed {
		if !slices.Contains(heading, s.Metric) {
			heading = append(heading, s.Metric)
		}
	}
	list := [][]string{heading}
	for _, s := range c.Speed {
		if last := list[len(list)-1]; last[0] != s.Scenario {
			list = append(list, append([]string{s.Scenario}, slices.Repeat([]string{""}, len(heading)-1)...))
		}
		list[len(list)-1][slices.Index(heading, s.Metric)] = s.cell()
	}
	return list
}

func (s Speed) cell() string {
	switch {
	case s.Refused != "":
		return "–"
	case s.Changed:
		return fmt.Sprintf("%+.1f%%", 100*s.Change)
	case s.Base == 0 || s.New == 0:
		return "~"
	}
	return "~ (" + s.findableText() + ")"
}

// changed lists the changes with both medians.
func (c Comparison) changed() [][]string {
	list := [][]string{{"changed", "metric", "BASE", "NEW", "change", "p", "repeats"}}
	for _, s := range c.Speed {
		if m, err := scenario.ParseMetric(s.Metric); err == nil && s.Changed {
			list = append(list, []string{s.Scenario, s.Metric, m.Text(s.Base), m.Text(s.New), s.cell(), fmt.Sprintf("%.2g", s.P), fmt.Sprintf("%d and %d", s.BaseN, s.NewN)})
		}
	}
	return list
}

// refused groups what was not compared by the reason.
func (c Comparison) refused() []string {
	n := map[string]int{}
	var order []string
	for _, s := range c.Speed {
		if s.Refused != "" {
			if n[s.Refused]++; n[s.Refused] == 1 {
				order = append(order, s.Refused)
			}
		}
	}
	for i, why := range order {
		order[i] = count(n[why], "figure") + ": " + why
	}
	return order
}

// String is the rule, where it is broken, and why that is not known.
func (g Gate) String() string {
	text := g.Rule
	if g.Scenario != "" {
		text = g.Scenario + ": " + text
	}
	if g.Open != "" {
		return text + ": not decided: " + g.Open
	}
	return text
}

// count is a number of things in words.
func count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return fmt.Sprintf("%d %s", n, thing)
}
