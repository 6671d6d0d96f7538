package reports

import (
	"encoding/json"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports/claims"
)

// Claims decides the documents' claims with these ids, or all of them, by the runs
// in dirs, all of the suite "claims".
func Claims(dirs, ids []string) ([]claims.Decision, error) {
	var runs []claims.Run
	seen := map[time.Time]bool{}
	for _, dir := range dirs {
		r, err := load(dir)
		if err != nil {
			return nil, err
		}
		// One run under two names (results/latest) is not two repeats.
		if started := r.doc.Started; seen[started] {
			continue
		} else if !started.IsZero() {
			seen[started] = true
		}
		if r.doc.Suite != claims.Suite {
			return nil, fmt.Errorf("%s is a run of the suite %q: only the suite %q decides claims; run lockbench run %[3]s", dir, r.doc.Suite, claims.Suite)
		}
		runs = append(runs, claims.Run{Prefix: filepath.ToSlash(dir), Document: r.doc})
	}
	return decide(ids, runs)
}

func decide(ids []string, runs []claims.Run) ([]claims.Decision, error) {
	all, err := claims.All()
	if err == nil {
		all, err = claims.ByID(all, ids)
	}
	if err != nil {
		return nil, err
	}
	return claims.Decide(all, runs), nil
}

// ClaimsText writes verdicts as text.
func ClaimsText(w io.Writer, list []claims.Decision, o TextOptions) error {
	c := claimsContent(list)
	c.Closing = claims.Counts(list)
	_, err := io.WriteString(w, renderText(c, o))
	return err
}

// ClaimsMarkdown writes verdicts as GitHub Markdown.
func ClaimsMarkdown(w io.Writer, list []claims.Decision) error {
	c := claimsContent(list)
	c.Closing = claims.Counts(list)
	_, err := io.WriteString(w, renderMarkdown(c))
	return err
}

func claimsContent(list []claims.Decision) *content {
	s := claimsSection(list, nil)
	for i := range s.Tables {
		s.Tables[i].Detail = false
	}
	return &content{Title: "lockbench claims", Subtitle: "What the documents claim, and what was measured.", Sections: []section{s}}
}

// claims is the section of a run that decides claims; of other runs it is empty.
func (b *builder) claims() section {
	list, err := runClaims(b.run)
	if err != nil {
		b.note("Warning: the claims were not decided: " + err.Error())
	}
	if len(list) == 0 {
		return section{}
	}
	anchors := map[string]string{}
	for _, r := range b.run.doc.Scenarios {
		anchors[path.Join(scenario.DirScenarios, r.Name)] = b.anchor(r)
	}
	all := len(list)
	list = slices.DeleteFunc(list, func(d claims.Decision) bool {
		return len(d.Tables) == 0 && !slices.ContainsFunc(d.Parts, func(p claims.Part) bool { return len(p.Scenarios) > 0 })
	})
	s := claimsSection(list, anchors)
	left := ""
	if n := all - len(list); n > 0 {
		left = fmt.Sprintf("; this run has no scenario of %s more", plural(n, "claim", "claims"))
	}
	s.Lead = claims.Counts(list) + left + ". A claim is inconclusive where a scenario is missing, a fault missed, or the effect within the spread of the repeats."
	return s
}

// runClaims decides the claims of a run of that suite; the paths of its scenarios
// are relative to its folder.
func runClaims(r run) ([]claims.Decision, error) {
	if r.doc.Suite != claims.Suite {
		return nil, nil
	}
	return decide(nil, []claims.Run{{Document: r.doc}})
}

// claimsFile is the content of claims.json, or nil for a run of another suite.
func claimsFile(r run) ([]byte, error) {
	list, err := runClaims(r)
	if list == nil || err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(list, "", "  ")
	return append(data, '\n'), err
}

// claimsSection links scenarios to their anchors in report.html, by their folders.
func claimsSection(list []claims.Decision, anchors map[string]string) section {
	verdicts := table{Head: "claim", Cols: []column{{Name: "verdict", Left: true}, {Name: "sources", Left: true}, {Name: "the documents' statement, and the reason", Left: true}}}
	parts := table{Title: "rules and evidence", Head: "claim", Detail: true, Cols: []column{
		{Name: "verdict", Left: true}, {Name: "rule, what was measured, and a scenario that shows it", Left: true}}}
	var more []table
	for _, d := range list {
		verdicts.Rows = append(verdicts.Rows, row{Head: d.ID, Cells: []cell{
			{Text: d.Verdict, Class: claimClass(d.Verdict)}, {Text: strings.Join(d.Documents, " ")},
			{Text: upper(clean(d.Claim)) + ". " + upper(clean(d.Reason)) + ".", Class: wide}}})
		for _, p := range d.Parts {
			verdict, text := cell{Text: p.Verdict, Class: claimClass(p.Verdict)}, ruleText(p)+". "+upper(p.Reason)+"."
			if n := len(p.Scenarios); n > 0 {
				verdict.Link = anchors[p.Scenarios[0]]
				text += fmt.Sprintf(" See %s (1 of %d).", p.Scenarios[0], n)
			}
			parts.Rows = append(parts.Rows, row{Head: d.ID, Cells: []cell{verdict, {Text: clean(text), Class: wide}}})
		}
		if d.Limits != "" {
			parts.Below = append(parts.Below, d.ID+": "+d.Limits+".")
		}
		for _, t := range d.Tables {
			more = append(more, claimTable(d.ID, t))
		}
	}
	return section{Title: "CLAIMS", Tables: slices.Concat([]table{verdicts}, more, []table{parts})}
}

func claimTable(id string, t claims.Table) table {
	out := table{Title: id + ": " + t.Title, Head: t.Head, Detail: true}
	for _, n := range t.Notes {
		out.Below = append(out.Below, clean(n))
	}
	for _, name := range t.Columns {
		out.Cols = append(out.Cols, column{Name: clean(name), Left: true})
	}
	for _, r := range t.Rows {
		cells := make([]cell, 0, len(r.Cells))
		for _, c := range r.Cells {
			cells = append(cells, cell{Text: clean(c.Text)})
		}
		out.Rows = append(out.Rows, row{Head: clean(r.Name), Cells: cells})
	}
	return out
}

func ruleText(p claims.Part) string {
	if p.Says == "" {
		return p.Rule
	}
	return p.Says + ": " + p.Rule
}

func claimClass(verdict string) class {
	switch verdict {
	case claims.Confirmed:
		return good
	case claims.Refuted:
		return bad
	}
	return warn
}
