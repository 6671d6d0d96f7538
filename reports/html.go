package reports

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

//go:embed report.html.tmpl
var pageTemplate string

//go:embed report.css
var pageStyle string

//go:embed report.js
var pageScript string

// page is what the template sees.
type page struct {
	*content
	Style   template.CSS
	Script  template.JS
	Split   bool   // style and script are files
	Hash    string // of the script, for the content security policy
	Worst   *detail
	Figures []figureView
	Details []detail
	Env     *environmentView
	EnvNote string
}

// timelineBox is a timeline; the first of the page can be drawn in true time.
type timelineBox struct {
	*timeline
	First bool
}

type figureView struct {
	plotFile
	SVGElement template.HTML
}

type environmentView struct {
	Drivers  []fact
	Clusters []clusterView
	Missing  []fact
}

type clusterView struct {
	Title    string
	Facts    []fact
	Settings []fact
	Nodes    []nodeView
}

type nodeView struct{ Name, Address, Command, Log string }

// renderHTML renders a content as one self-contained page: style, script (unless split)
// and plots are in it, and links refer to files in the run's folder. It is complete without the
// script.
func renderHTML(c *content, r run, split bool) ([]byte, error) {
	t, err := template.New("report").Funcs(template.FuncMap{
		"marks":   func(ns []int) string { return strings.Trim(fmt.Sprint(ns), "[]") },
		"heading": heading,
		"groups":  groupHeads,
		"span":    func(t table) int { return max(len(t.Cols), 1) },
		"inc":     func(i int) int { return i + 1 },
		"above":   func(n int) int { return n - 7 },
		"text":    func(n int) int { return n + 4 },
		"below":   func(n int) int { return n - 6 },
		"box":     func(t *timeline, first bool) timelineBox { return timelineBox{t, first} },
	}).Parse(pageTemplate)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256([]byte(pageScript))
	p := page{content: c, Split: split, Style: template.CSS(pageStyle), Script: template.JS(pageScript), Hash: base64.StdEncoding.EncodeToString(hash[:]), Details: details(r), EnvNote: r.envNote}
	if i := worst(r.doc); i >= 0 && p.Details[i].Timeline != nil {
		first := p.Details[i]
		p.Worst = &first
		p.Details[i].Timeline = nil // it is at the top
	}
	for _, f := range c.Plots {
		// The SVG writer escapes every text.
		p.Figures = append(p.Figures, figureView{f, template.HTML(f.Inline)})
	}
	if r.env != nil {
		p.Env = viewEnvironment(r)
	}
	var b bytes.Buffer
	if err := t.Execute(&b, p); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

type groupHead struct {
	Name string
	Span int
	Left bool
}

// groupHeads is the upper line of a table's heading, or nil.
func groupHeads(t table) []groupHead {
	var hs []groupHead
	any := false
	for i := 0; i < len(t.Cols); {
		j := i + 1
		for j < len(t.Cols) && t.Cols[i].Group != "" && t.Cols[j].Group == t.Cols[i].Group {
			j++
		}
		any = any || t.Cols[i].Group != ""
		hs = append(hs, groupHead{t.Cols[i].Group, j - i, t.Cols[i].Left})
		i = j
	}
	if !any {
		return nil
	}
	return hs
}

// readyAfter is empty for servers that the run did not start.
func readyAfter(c scenario.ClusterInfo) string {
	if c.Environment == scenario.EnvExternal {
		return ""
	}
	return fmt.Sprintf("%d ms", c.ReadyMS)
}

func viewEnvironment(r run) *environmentView {
	v := &environmentView{Drivers: pairs(r.env.Drivers), Missing: pairs(r.env.Missing)}
	for _, c := range r.env.Clusters {
		cv := clusterView{Title: strings.TrimSpace(fmt.Sprintf("%s (%s): %s %s", clean(c.Backend), clean(c.Topology), clean(c.Product), clean(c.Version))), Settings: pairs(c.Settings)}
		for _, f := range []fact{{"durability", clean(c.Durability)}, {"binary", clean(c.Binary)}, {"environment", clean(c.Environment)}, {"ready after", readyAfter(c)}} {
			if f.Value != "" {
				cv.Facts = append(cv.Facts, f)
			}
		}
		for _, n := range c.Nodes {
			nv := nodeView{Name: clean(n.Name), Address: clean(n.Address), Command: clean(strings.Join(n.Command, " "))}
			if n.Log != "" && r.has(n.Log) {
				nv.Log = n.Log
			}
			cv.Nodes = append(cv.Nodes, nv)
		}
		v.Clusters = append(v.Clusters, cv)
	}
	return v
}
