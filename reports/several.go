package reports

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Several writes report.html and report.md into the folder out, which it creates
// if needed: the tables of several runs side by side, a group of columns per run,
// in the given order. Experiments are matched by group, load and faults, not by
// name; an experiment that only some runs have keeps its row.
//
// It does not write into a run's own folder, where it would replace the report.
func Several(dirs []string, out string) error {
	if len(dirs) == 0 {
		return errors.New("compare runs: no run folder given")
	}
	if _, err := os.Stat(filepath.Join(out, scenario.FileResult)); err == nil {
		return fmt.Errorf("%s is a run's folder: the report of several runs would replace its own; choose another folder", out)
	}
	var runs []run
	for _, d := range dirs {
		r, err := load(d)
		if err != nil {
			return err
		}
		runs = append(runs, r)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("create the report's folder: %w", err)
	}
	c := sideBySide(runs, out)
	html, err := renderHTML(c, run{})
	if err != nil {
		return fmt.Errorf("render %s: %w", FileHTML, err)
	}
	for name, data := range map[string][]byte{FileHTML: html, FileMarkdown: []byte(renderMarkdown(c))} {
		if err := replace(filepath.Join(out, name), data); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return nil
}

// letter names a run in the tables: A to Z, then R27 and on.
func letter(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return fmt.Sprintf("R%d", i+1)
}

func sideBySide(runs []run, out string) *content {
	c := &content{Title: "lockbench: " + plural(len(runs), "run", "runs") + " side by side", Subtitle: "The runs were made at different times: a difference means little where the ranges of the repeats overlap."}
	b := newBuilder(run{})
	c.Sections = append(c.Sections, section{Title: "RUNS", Tables: []table{runsTable(runs)}})
	hosts, good := map[string]bool{}, 0
	for i, r := range runs {
		h := r.doc.Host
		hosts[fmt.Sprint(h.CPUModel, h.CPUs, h.Kernel, h.MemoryB)] = true
		if _, ok := closing(r.doc, len(r.doc.Scenarios) > 0); ok {
			good++
		}
		for _, s := range surprises(r.doc) {
			s.Scenario = letter(i) + ": " + s.Scenario
			c.Surprises = append(c.Surprises, s)
		}
		if rel, err := filepath.Rel(out, r.dir); err == nil {
			c.Links = append(c.Links, link{filepath.ToSlash(filepath.Join(rel, FileHTML)), "run " + letter(i) + " in full"})
		}
	}
	if len(hosts) > 1 {
		b.note("The runs were made on different machines: do not compare their speed and cost.")
	}
	c.ClosingClass = map[bool]class{true: plain, false: bad}[good == len(runs)]
	c.Closing, c.ClosingOK = fmt.Sprintf("%d of %s passed in every scenario.", good, plural(len(runs), "run", "runs")), good == len(runs)
	sections := map[string]*section{}
	order := []string{"UNCONTENDED", "CONTENDED", "SAFETY"}
	for _, n := range order {
		sections[n] = &section{Title: n}
	}
	for _, m := range match(runs) {
		for _, n := range m.counts() {
			switch {
			case m.first.uncontended():
				sections["UNCONTENDED"].add(b.compared(m, n, len(runs), speedColumns("pairs/s"), b.speedCells))
			case len(m.first.faults) == 0:
				sections["CONTENDED"].add(b.compared(m, n, len(runs), speedColumns("acquires/s"), b.speedCells))
			}
			if !m.first.uncontended() {
				sections["SAFETY"].add(b.compared(m, n, len(runs), answerColumns(), b.answerCells))
			}
		}
	}
	for _, n := range order {
		if len(sections[n].Tables) > 0 {
			c.Sections = append(c.Sections, *sections[n])
		}
	}
	c.Notes = b.notes
	return c
}

func (s *section) add(t table) { s.Tables = append(s.Tables, nonEmpty(t)...) }

func runsTable(runs []run) table {
	t := table{Head: "run", Cols: []column{{Name: "folder", Left: true}, {Name: "suite", Left: true}, {Name: "seed"}, {Name: "started", Left: true}, {Name: "lockbench", Left: true}, {Name: "host", Left: true}, {Name: "outcome", Left: true}}}
	for i, r := range runs {
		d := r.doc
		text, ok := closing(d, len(d.Scenarios) > 0)
		class := warn
		if ok {
			class = good
		}
		hs := headlines(meet(d))
		for i := len(hs) - 1; i >= 0; i-- {
			text = hs[i].Text + " " + text
			if hs[i].Class == bad {
				class = bad
			}
		}
		started := none
		if !d.Started.IsZero() {
			started = d.Started.UTC().Format(time.DateTime)
		}
		name := filepath.Base(r.dir)
		if abs, err := filepath.Abs(r.dir); err == nil {
			name = filepath.Base(abs)
		}
		t.Rows = append(t.Rows, row{Head: letter(i), Cells: []cell{{Text: clean(name)}, {Text: clean(d.Suite)}, {Text: fmt.Sprint(d.Seed)}, {Text: started}, {Text: or(clean(d.Lockbench), none)},
			{Text: or(strings.TrimSpace(fmt.Sprintf("%d × %s", d.Host.CPUs, clean(d.Host.CPUModel))), none)}, {Text: text, Class: class}}})
	}
	return t
}

// matched is one experiment in each run that has it; nil in the others.
type matched struct {
	first *experiment
	runs  []*experiment
}

func match(runs []run) []*matched {
	byID := map[identity]*matched{}
	var all []*matched
	for i, r := range runs {
		for _, e := range experiments(loads(r.doc.Scenarios)) {
			m := byID[e.id]
			if m == nil {
				m = &matched{first: e, runs: make([]*experiment, len(runs))}
				byID[e.id] = m
				all = append(all, m)
			}
			m.runs[i] = e
		}
	}
	return all
}

func (m *matched) counts() []int {
	var ns []int
	for _, e := range m.runs {
		if e != nil {
			ns = append(ns, e.counts...)
		}
	}
	slices.Sort(ns)
	return slices.Compact(ns)
}

// compared is a table with the same columns for each run.
func (b *builder) compared(m *matched, clients, runs int, cols []column, cells func([]result) []cell) table {
	t := table{Title: fmt.Sprintf("%s: %s · %s", m.first.title(), plural(clients, "client", "clients"), clean(m.first.load.Kind)+", hold "+m.first.load.Hold.String()+", TTL "+m.first.ttl.String()), Head: "recipe"}
	for i := range runs {
		for _, c := range cols {
			c.Group = "run " + letter(i)
			t.Cols = append(t.Cols, c)
		}
	}
	var names []string
	for _, e := range m.runs {
		if e == nil {
			continue
		}
		for _, n := range e.rows {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	for _, name := range names {
		r := row{Head: name}
		any := false
		for i := range runs {
			var rs []result
			if e := m.runs[i]; e != nil {
				rs = e.runs[point{name, clients}]
			}
			any = any || len(rs) > 0
			switch why := absent(rs); {
			case len(rs) == 0:
				r.Cells = append(r.Cells, filled(b.dash("run "+letter(i)+" has no such scenario"), len(cols))...)
			case why != "":
				r.Cells = append(r.Cells, filled(b.dash("run "+letter(i)+": "+why), len(cols))...)
			default:
				r.Cells = append(r.Cells, cells(done(rs))...)
			}
		}
		if any {
			t.Rows = append(t.Rows, r)
		}
	}
	return t
}

func filled(c cell, n int) []cell { return slices.Repeat([]cell{c}, n) }

func speedColumns(unit string) []column {
	return []column{{Name: unit}, {Name: "min..max"}, {Name: "p50"}, {Name: "p99"}}
}

func (b *builder) speedCells(rs []result) []cell {
	return []cell{b.cell(rs, "throughput", mThroughput()), b.spread(rs, mThroughput()), b.cell(rs, "acquire p50", mAcquire(p50)), b.cell(rs, "acquire p99", mAcquire(p99))}
}

func answerColumns() []column {
	return []column{{Name: "verdict", Left: true}, {Name: "guarantee", Left: true}, {Name: "liveness", Left: true}, {Group: "overlaps", Name: "incidents"}}
}

func (b *builder) answerCells(rs []result) []cell {
	var cs []cell
	for _, a := range answerKinds {
		cs = append(cs, b.answer(rs, a))
	}
	var n int64
	for _, r := range rs {
		n += r.Safety.OverlapIncidents
	}
	c := cell{Text: count(n)}
	if n > 0 {
		c.Class = bad
	}
	return append(cs, c)
}
