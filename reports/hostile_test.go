package reports

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/lockbench/lockbench/internal/scenario"
)

// hostile is a text that tries to leave every format.
const hostile = `<script>alert(1)</script>"'|` + "`" + `](javascript:x) ]]> &amp; {{.}} ${x}` + "\x1b[31m\x00\u202e\nsecond"

// hostileDoc puts that text wherever a document has one.
func hostileDoc(t *testing.T, hostile string) scenario.Document {
	t.Helper()
	d := quickDoc()
	for i := range d.Scenarios {
		r := &d.Scenarios[i]
		for _, s := range []*string{&r.Group, &r.Recipe, &r.Topology, &r.Server, &r.Version, &r.Durability, &r.Reason, &r.WaitPolicy, &r.Bound} {
			*s += hostile
		}
		r.Workload.Kind += hostile
		r.Name += "<script>alert(2)</script>"
		r.Warnings, r.Surprises = []string{hostile}, []string{hostile}
		r.AsExpected = ptr(false)
		r.Settings = map[string]string{hostile: hostile}
		r.Unmeasured = map[string]string{"acquire_ns": hostile, hostile: hostile}
		r.Acquire = nil
		r.Safety.Why = map[string]string{"verdict": hostile, "promise": hostile, "liveness": hostile}
		r.Safety.Verdict += hostile
		r.Safety.Damage, r.Safety.Causes = []string{hostile}, []scenario.Cause{{Cause: hostile, Count: 1}}
		r.Safety.Registers = append(r.Safety.Registers, scenario.Register{Name: hostile})
		for j := range r.Safety.Witnesses {
			w := &r.Safety.Witnesses[j]
			w.Sentence, w.Class, w.Cause, w.Calls[0].Kind, w.Calls[0].Attempt, w.Calls[0].Name, w.KeyName = hostile, hostile, hostile, hostile, hostile, hostile, hostile
		}
		for j := range r.Faults {
			f := &r.Faults[j]
			f.Kind, f.Status, f.Reason, f.Target, f.Mechanism = f.Kind+hostile, hostile, hostile, hostile, hostile
		}
	}
	d.Suite, d.Lockbench, d.Host.CPUModel, d.Warnings = hostile, hostile, hostile, []string{hostile}
	return d
}

func TestHostileTextStaysText(t *testing.T) {
	d := hostileDoc(t, hostile)
	dir := t.TempDir()
	putJSON(t, filepath.Join(dir, scenario.FileResult), d)
	e := environmentOf(d)
	for i := range e.Clusters {
		c := &e.Clusters[i]
		c.Product, c.Version, c.Settings = hostile, hostile, map[string]string{hostile: hostile}
		c.Nodes[0].Log, c.Nodes[0].Name = "../../../../../../etc/passwd", hostile
	}
	putJSON(t, filepath.Join(dir, scenario.FileEnvironment), e)
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	page := withoutScript(t, slurp(t, dir, FileHTML))
	if strings.Contains(page, "<script") || strings.Contains(page, "etc/passwd\"") {
		t.Error("hostile text became markup")
	}
	wellFormed(t, page)
	text := tableText(t, d, TextOptions{})
	if strings.ContainsAny(text, "\x1b\x00\u202e") {
		t.Error("control characters reach the terminal")
	}
	mdown := slurp(t, dir, FileMarkdown)
	if strings.Contains(mdown, "<script") || regexp.MustCompile(`[^\\]\]\(javascript`).MatchString(mdown) {
		t.Error("hostile text became markup in Markdown")
	}
	svgs, err := filepath.Glob(filepath.Join(dir, DirPlots, "*.svg"))
	if err != nil || len(svgs) == 0 {
		t.Fatalf("no plots: %v", err)
	}
	for _, s := range svgs {
		wellFormed(t, slurp(t, s))
	}
	parseJUnit(t, slurp(t, dir, FileJUnit))
	parseBench(t, slurp(t, dir, FileBench))
	// The links of a name that leads out of the folder stay unmade.
	d.Scenarios[0].Name = "../../outside"
	if got := detailOf(run{dir: dir, doc: d}, 0, d.Scenarios[0]); len(got.Links) > 0 {
		t.Errorf("links out of the run's folder: %v", got.Links)
	}
}

// Whatever is absent, a report is written.
func TestEmptyAndNull(t *testing.T) {
	docs := map[string]scenario.Document{
		"nothing":      {},
		"no scenarios": {Schema: 1, Suite: "quick", Interrupted: true},
		"bare results": {Schema: 1, Scenarios: []scenario.Result{{}, {Status: scenario.StatusDone}, {Status: scenario.StatusFailed}, {Status: "new"}}},
	}
	bare := quickDoc()
	for i := range bare.Scenarios {
		r := &bare.Scenarios[i]
		*r = scenario.Result{Name: r.Name, Recipe: r.Recipe, Backend: r.Backend, Group: r.Group, Workload: r.Workload, Clients: r.Clients, Status: scenario.StatusDone,
			Expect: r.Expect, Faults: r.Faults, Safety: scenario.Safety{Witnesses: []scenario.Witness{{}, {Calls: []scenario.WitnessCall{{}}}}}}
	}
	docs["all null"] = bare
	interrupted := quickDoc()
	for i := range interrupted.Scenarios {
		if i > 9 {
			interrupted.Scenarios[i] = scenario.Result{Name: interrupted.Scenarios[i].Name, Group: interrupted.Scenarios[i].Group, Recipe: interrupted.Scenarios[i].Recipe, Status: scenario.StatusInterrupted}
		}
	}
	docs["interrupted"] = interrupted
	for name, d := range docs {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			putJSON(t, filepath.Join(dir, scenario.FileResult), d)
			if err := Write(dir); err != nil {
				t.Fatal(err)
			}
			wellFormed(t, slurp(t, dir, FileHTML))
			text := tableText(t, d, TextOptions{Color: true, Width: 1})
			if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
				t.Error("a number that is none was printed")
			}
			if c := build(run{doc: d}); c.ClosingOK {
				t.Errorf("called good: %s", c.Closing)
			}
		})
	}
	// In a run of nulls no measured figure may appear.
	text := tableText(t, bare, TextOptions{})
	if !strings.Contains(text, none) || regexp.MustCompile(`\d(ms|µs)\b`).MatchString(section0(text, "UNCONTENDED")) {
		t.Errorf("what was not measured is not shown as such:\n%s", text)
	}
}

// section0 cuts a section's rows out of a summary, without its title lines.
func section0(text, title string) string {
	_, rest, _ := strings.Cut(text, title+"\n")
	body, _, _ := strings.Cut(rest, "\n\n")
	_, body, _ = strings.Cut(body, "\n")
	return body
}

// FuzzControlCharacters: no report has a raw control character, whatever the texts
// and names of a result are.
func FuzzControlCharacters(f *testing.F) {
	f.Add(hostile)
	f.Add("\x1b]0;owned\x07\rverdict safe\u202e\u2066\u200b\u009b31m\x7f \xff")
	f.Fuzz(func(t *testing.T, text string) {
		d := hostileDoc(t, text)
		d.Scenarios = d.Scenarios[len(d.Scenarios)-3:] // quick enough to fuzz
		c := build(run{doc: d})
		page, err := renderHTML(c, run{doc: d}, false)
		if err != nil {
			t.Fatal(err)
		}
		cases, err := junit(run{doc: d})
		if err != nil {
			t.Fatal(err)
		}
		for format, out := range map[string]string{
			"text": renderText(c, TextOptions{}), FileHTML: string(page), FileMarkdown: renderMarkdown(c), FileJUnit: string(cases), FileBench: string(bench(d)),
		} {
			if i := strings.IndexFunc(out, func(r rune) bool { return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) }); i >= 0 {
				t.Errorf("%s: %q", format, out[max(0, i-30):min(len(out), i+30)])
			}
		}
	})
}
