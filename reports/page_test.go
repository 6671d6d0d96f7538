package reports

import (
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

// element is a part of a page.
type element struct {
	XMLName  xml.Name
	Attrs    []xml.Attr `xml:",any,attr"`
	Children []element  `xml:",any"`
	Text     string     `xml:",chardata"`
}

func parsePage(t *testing.T, page string) element {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(page, "<!DOCTYPE html>")))
	dec.Entity = xml.HTMLEntity
	var e element
	if err := dec.Decode(&e); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e element) attr(name string) string {
	for _, a := range e.Attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// all finds elements by name, and by id or class if given.
func (e element) all(name, mark string) []element {
	var out []element
	for _, c := range e.Children {
		if c.XMLName.Local == name && (mark == "" || c.attr("id") == mark || strings.Contains(" "+c.attr("class")+" ", " "+mark+" ")) {
			out = append(out, c)
		}
		out = append(out, c.all(name, mark)...)
	}
	return out
}

func (e element) text() string {
	s := e.Text
	for _, c := range e.Children {
		if c.XMLName.Local != "sup" {
			s += c.text()
		}
	}
	return strings.TrimSpace(s)
}

// The matrix has the verdicts of the document, each linked to its scenario, which has
// that verdict beside its name.
func TestMatrixEqualsTheResults(t *testing.T) {
	d := quickDoc()
	page, err := renderHTML(build(run{doc: d}), run{doc: d}, false)
	if err != nil {
		t.Fatal(err)
	}
	root := parsePage(t, string(page))
	table := root.all("section", "RESULTS")[0].all("table", "")[0]
	heads := table.all("thead", "")[0].all("tr", "")
	var columns []string
	for _, h := range heads[len(heads)-1].Children {
		columns = append(columns, h.text())
	}
	checked := 0
	for _, line := range table.all("tbody", "")[0].all("tr", "") {
		for i, cell := range line.Children {
			want := map[string]bool{}
			for _, r := range d.Scenarios {
				fault := noFault
				if len(r.Faults) > 0 {
					fault = r.Faults[0].Kind
				}
				if r.Recipe == line.Children[0].text() && r.Workload.Kind != scenario.Uncontended && columns[i] == fault && r.Status == scenario.StatusDone {
					want[r.Safety.Verdict] = true
				}
			}
			links := cell.all("a", "")
			if len(want) != 1 || len(links) != 1 {
				continue
			}
			checked++
			got, _, _ := strings.Cut(links[0].text(), " ")
			if got == "missed" {
				got = scenario.Undecided
			}
			if !want[got] {
				t.Errorf("%s under %s is %s, the document has %v", line.Children[0].text(), columns[i], got, want)
			}
			target := root.all("details", strings.TrimPrefix(links[0].attr("href"), "#"))
			if len(target) != 1 {
				t.Fatalf("%s: no such scenario", links[0].attr("href"))
			}
			if summary := target[0].all("summary", "")[0]; summary.all("span", "tag")[0].text() != got || !strings.Contains(summary.text(), line.Children[0].text()) {
				t.Errorf("%s under %s leads to %q", line.Children[0].text(), columns[i], summary.text())
			}
		}
	}
	if checked < 8 {
		t.Errorf("only %d cells were compared", checked)
	}
}

// The first screen shows the worst violation: both holders' lanes, and the band while
// both held the key.
func TestWorstViolationIsOnTheFirstScreen(t *testing.T) {
	d := quickDoc()
	w, faults := late()
	for i := range d.Scenarios {
		if r := &d.Scenarios[i]; r.Group == "paused" && r.Recipe == "etcd/mutex" {
			r.Safety.Witnesses, r.Faults, r.Safety.OverlapNS = []scenario.Witness{w}, faults, 1000*sec
		}
	}
	page, err := renderHTML(build(run{doc: d}), run{doc: d}, false)
	if err != nil {
		t.Fatal(err)
	}
	root := parsePage(t, string(page))
	first := root.all("section", "")[0]
	if first.attr("id") != "worst" || !strings.Contains(first.all("h2", "")[0].text(), "etcd-mutex") {
		t.Fatalf("the first section is %s: %s", first.attr("id"), first.text())
	}
	svg := first.all("svg", "timeline")[0]
	var lanes []string
	for _, x := range svg.all("text", "proves") {
		lanes = append(lanes, x.text())
	}
	if fmt.Sprint(lanes) != "[client 3 client 10]" {
		t.Errorf("the lanes of the holders are %v", lanes)
	}
	if bands := svg.all("rect", "clash"); len(bands) != 1 || bands[0].attr("id") == "" || bands[0].all("title", "")[0].text() != "both held it" {
		t.Errorf("bands: %+v", bands)
	}
	if holds := svg.all("rect", "holding"); len(holds) != 3 {
		t.Errorf("%d holds, want 3", len(holds))
	}
}

// The report of the whole safety suite stays small: of the repeats that passed, the
// worst is shown in full and every other has its verdict.
func TestSizeOfALargeReport(t *testing.T) {
	small := quickDoc()
	var hurt []result
	for _, r := range small.Scenarios {
		if len(r.Safety.Witnesses) > 0 && r.Status == scenario.StatusDone && outcomeOf(r) == outcomeOK {
			hurt = append(hurt, r)
		}
	}
	d := small
	d.Scenarios = nil
	const blocks, repeats = 340, 3
	for b := range blocks {
		for rep := range repeats {
			r := hurt[b%len(hurt)]
			r.Repeat, r.Group = rep+1, fmt.Sprintf("safety-%d", b/30)
			r.Topology = fmt.Sprintf("servers-%d", b%30)
			r.Name = fmt.Sprintf("%s-%s-%s-r%d", r.Group, strings.ReplaceAll(r.Recipe, "/", "-"), r.Topology, rep+1)
			d.Scenarios = append(d.Scenarios, r)
		}
	}
	page, err := renderHTML(build(run{doc: d}), run{doc: d}, false)
	if err != nil {
		t.Fatal(err)
	}
	if most := 5 << 20; len(page) > most {
		t.Errorf("%d scenarios take %d bytes, at most %d", len(d.Scenarios), len(page), most)
	}
	root := parsePage(t, string(page))
	for i := range d.Scenarios {
		id := fmt.Sprintf("s%d", i+1)
		if n := len(root.all("details", id)) + len(root.all("p", id)); n != 1 {
			t.Fatalf("%s is in the page %d times", id, n)
		}
		if i > 20 {
			break // finding each takes a while
		}
	}
	if full, short := len(root.all("section", "scenarios")[0].all("details", "")), len(root.all("p", "short")); short != blocks*(repeats-1) || full < blocks {
		t.Errorf("%d in full and %d in a line, want %d and %d", full, short, blocks, blocks*(repeats-1))
	}
}
