package reports

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/scenario"
)

func written(t *testing.T, d scenario.Document) (dir string) {
	t.Helper()
	dir = t.TempDir()
	writeRun(t, dir, d)
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// shared is one run with its reports, for the tests that only read: drawing is
// the slow part of them all.
var shared struct {
	once sync.Once
	dir  string
}

func quickRun(t *testing.T) string {
	t.Helper()
	shared.once.Do(func() {
		dir, err := os.MkdirTemp("", "lockbench-reports-")
		if err != nil {
			t.Fatal(err)
		}
		shared.dir = dir
		writeRun(t, dir, quickDoc())
		if err := Write(dir); err != nil {
			t.Fatal(err)
		}
	})
	return shared.dir
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.dir != "" {
		if err := os.RemoveAll(shared.dir); err != nil && code == 0 {
			code = 1
		}
	}
	os.Exit(code)
}

func slurp(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestMarkdownGolden(t *testing.T) {
	golden(t, "quick.md", slurp(t, quickRun(t), FileMarkdown))
}

// skeleton is a page's structure: headings, tables by their columns, figures
// and folded parts, without the drawings.
func skeleton(page string) string {
	page = regexp.MustCompile(`(?s)<svg.*?</svg>`).ReplaceAllString(page, "<svg/>")
	var b strings.Builder
	for _, m := range regexp.MustCompile(`(?s)<(?:h[1-4]|section|figure|summary|details|th|svg)\b[^>]*/?>[^<]*`).FindAllString(page, -1) {
		b.WriteString(strings.TrimSpace(m) + "\n")
	}
	return b.String()
}

func TestHTMLGolden(t *testing.T) {
	golden(t, "quick.html.txt", skeleton(slurp(t, quickRun(t), FileHTML)))
}

// The page must open offline: nothing in it may be fetched.
func TestHTMLStandsAlone(t *testing.T) {
	dir := quickRun(t)
	page := slurp(t, dir, FileHTML)
	for _, bad := range []string{"<script", "<link", "<iframe", "@import", "url(", "src=\"http", "href=\"http", "<img"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, m := range regexp.MustCompile(`href="([^"#]+)"`).FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(m[1]))); err != nil {
			t.Errorf("dead link %s", m[1])
		}
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(`id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]] {
			t.Errorf("id %s stands twice", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if !ids[m[1]] {
			t.Errorf("dead anchor %s", m[1])
		}
	}
	wellFormed(t, page)
}

// wellFormed parses the page as XML as far as HTML allows.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(page))
	dec.Strict = true
	dec.Entity = xml.HTMLEntity
	page = strings.Replace(page, "<!DOCTYPE html>", "", 1)
	for {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
	}
}

// hostile is a text that tries to leave every format.
const hostile = `<script>alert(1)</script>"'|` + "`" + `](javascript:x) ]]> &amp; {{.}} ${x}` + "\x1b[31m\x00\u202e\nsecond"

// hostileDoc puts that text wherever a document has one.
func hostileDoc(t *testing.T) scenario.Document {
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
			w.Sentence, w.Class, w.Cause, w.Calls[0].Kind, w.Calls[0].Attempt = hostile, hostile, hostile, hostile, hostile
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
	d := hostileDoc(t)
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
	page := slurp(t, dir, FileHTML)
	if strings.Contains(page, "<script") || strings.Contains(page, "etc/passwd\"") {
		t.Error("hostile text became markup")
	}
	wellFormed(t, page)
	text := tableText(t, d, TableOptions{})
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
			text := tableText(t, d, TableOptions{Color: true, Width: 1})
			if strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
				t.Error("a number that is none was printed")
			}
			if c := build(run{doc: d}); c.ClosingOK {
				t.Errorf("called good: %s", c.Closing)
			}
		})
	}
	// In a run of nulls no measured figure may appear.
	text := tableText(t, bare, TableOptions{})
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

func TestLoadErrorsSayWhatToDo(t *testing.T) {
	empty := t.TempDir()
	if err := Write(empty); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "not a run's folder") {
		t.Errorf("no result.json: %v", err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, scenario.FileResult), []byte(`{"schema":`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(broken); err == nil {
		t.Error("half a result.json was accepted")
	}
	newer := t.TempDir()
	putJSON(t, filepath.Join(newer, scenario.FileResult), scenario.Document{Schema: scenario.SchemaVersion + 1})
	if err := Write(newer); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a newer schema: %v", err)
	}
	damaged := t.TempDir()
	writeRun(t, damaged, selfTestDoc())
	if err := os.WriteFile(filepath.Join(damaged, scenario.FileEnvironment), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(damaged); err != nil {
		t.Errorf("a damaged environment.json cost the report: %v", err)
	}
	if !strings.Contains(slurp(t, damaged, FileHTML), "cannot be read") {
		t.Error("the report hides that environment.json is damaged")
	}
}

func TestWriteIsRepeatable(t *testing.T) {
	dir := written(t, selfTestDoc())
	golden(t, "self-test.md", slurp(t, dir, FileMarkdown))
	before := map[string]string{}
	for _, f := range []string{FileHTML, FileMarkdown, FileJUnit, FileBench} {
		before[f] = slurp(t, dir, f)
	}
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	for f, want := range before {
		if slurp(t, dir, f) != want {
			t.Errorf("%s differs when it is made again", f)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files were left: %v %v", left, err)
	}
}

func parseJUnit(t *testing.T, s string) junitSuites {
	t.Helper()
	var got junitSuites
	if err := xml.Unmarshal([]byte(s), &got); err != nil {
		t.Fatalf("junit.xml: %v", err)
	}
	return got
}

func TestJUnit(t *testing.T) {
	d := quickDoc()
	d.Scenarios[0].AsExpected, d.Scenarios[0].Surprises = ptr(false), []string{"acquire.p99 was 3ms where < 2ms was expected"}
	d.Scenarios[1].Status, d.Scenarios[1].Reason = scenario.StatusFailed, "etcd did not start"
	d.Scenarios[2].Status = scenario.StatusInterrupted
	data, err := junit(d)
	if err != nil {
		t.Fatal(err)
	}
	got := parseJUnit(t, string(data))
	if got.Tests != len(d.Scenarios) || got.Failures != 2 || got.Errors != 2 || got.Skipped != 7 {
		t.Errorf("%d tests, %d failures, %d errors, %d skipped", got.Tests, got.Failures, got.Errors, got.Skipped)
	}
	cases := got.Suites[0].Cases
	if f := cases[0].Failure; f == nil || f.Type != "not as expected" || !strings.Contains(f.Message, "p99") {
		t.Errorf("failure %+v", f)
	}
	if e := cases[1].Error; e == nil || e.Type != "failed" || e.Message != "etcd did not start" {
		t.Errorf("error %+v", e)
	}
	if e := cases[2].Error; e == nil || e.Type != "interrupted" {
		t.Errorf("interrupted %+v", e)
	}
	if s := cases[3].Skipped; s == nil || !strings.Contains(s.Message, "apt-get install memcached") {
		t.Errorf("skipped %+v", s)
	}
	inconclusive := 0
	for _, s := range got.Suites {
		for _, c := range s.Cases {
			if c.Failure != nil && c.Failure.Type == "inconclusive" {
				inconclusive++
			}
		}
	}
	if inconclusive != 1 {
		t.Errorf("%d inconclusive, want 1", inconclusive)
	}
}

// A null where something was expected is never a pass.
func TestSilenceIsNoSuccess(t *testing.T) {
	r := scenario.Result{Status: scenario.StatusDone, Expect: scenario.Expect{Verdict: scenario.Safe}}
	if o := outcomeOf(r); o != outcomeInconclusive {
		t.Errorf("null with an expectation: %s", o)
	}
	if o := outcomeOf(scenario.Result{Status: scenario.StatusDone}); o != outcomeNone {
		t.Errorf("nothing expected: %s", o)
	}
	if o := outcomeOf(scenario.Result{}); o != outcomeFailed {
		t.Errorf("no status: %s", o)
	}
	r.AsExpected = ptr(true)
	if o := outcomeOf(r); o != outcomeOK {
		t.Errorf("as expected: %s", o)
	}
}

var (
	benchConfig = regexp.MustCompile(`^[a-z][^\s:A-Z]*: \S.*$`)
	benchLine   = regexp.MustCompile(`^Benchmark[A-Z]\S*\t\d+(\t[0-9.]+ \S+)+$`)
)

func parseBench(t *testing.T, s string) []string {
	t.Helper()
	var names []string
	for _, l := range strings.Split(strings.TrimSuffix(s, "\n"), "\n") {
		switch {
		case benchLine.MatchString(l):
			name, _, _ := strings.Cut(l, "\t")
			names = append(names, name)
		case !benchConfig.MatchString(l):
			t.Errorf("not a benchmark line: %q", l)
		}
	}
	return names
}

func TestBench(t *testing.T) {
	d := quickDoc()
	names := parseBench(t, string(bench(d)))
	want := "BenchmarkLock/workload=hot-key/backend=redis/recipe=token/clients=16"
	n := 0
	for _, name := range names {
		if name == want {
			n++
		}
	}
	if n != 3 {
		t.Errorf("%s stands %d times, want once per repeat", want, n)
	}
	// Two experiments that differ only in the hold must not pass for repeats.
	other := d.Scenarios[15]
	other.Workload.Hold = scenario.Dist{Kind: scenario.DistConstant, A: 5e6}
	d.Scenarios = append(d.Scenarios, other)
	names = parseBench(t, string(bench(d)))
	if got := names[len(names)-1]; got != want+"/hold=5ms" {
		t.Errorf("name %s", got)
	}
	for _, name := range names {
		if name == want {
			t.Error("the hold is hidden in a name that needs it")
		}
	}
}

func TestSeveral(t *testing.T) {
	a, b, out := t.TempDir(), t.TempDir(), t.TempDir()
	writeRun(t, a, quickDoc())
	d := quickDoc()
	d.Seed, d.Host.Kernel = 43, "6.9.9"
	d.Scenarios = d.Scenarios[:30] // no holder-pause in this one
	for i := range d.Scenarios {
		if v := d.Scenarios[i].Throughput; v != nil {
			*v *= 2
		}
	}
	writeRun(t, b, d)
	if err := Several([]string{a, b}, out); err != nil {
		t.Fatal(err)
	}
	page, text := slurp(t, out, FileHTML), slurp(t, out, FileMarkdown)
	wellFormed(t, page)
	for _, want := range []string{"run A pairs/s", "run B pairs/s", "| redis/token | 430 |", " 860 |", "run B has no such scenario", "different machines", "missing: no memcached"} {
		if !strings.Contains(text, want) {
			t.Errorf("the report of two runs lacks %q", want)
		}
	}
	if err := Several([]string{a, b}, a); err == nil {
		t.Error("a run's own report was replaced")
	}
	if err := Several(nil, out); err == nil {
		t.Error("no runs were accepted")
	}
	if err := Several([]string{t.TempDir()}, out); err == nil {
		t.Error("a folder without results was accepted")
	}
}

// The fixtures must be what the rest of lockbench writes: they survive JSON.
func TestFixtureSurvivesJSON(t *testing.T) {
	data, err := json.Marshal(quickDoc())
	if err != nil {
		t.Fatal(err)
	}
	var d scenario.Document
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if tableText(t, d, TableOptions{}) != tableText(t, quickDoc(), TableOptions{}) {
		t.Error("the summary differs after a trip through result.json")
	}
}
