package reports

import (
	"fmt"
	"strings"
)

// renderMarkdown renders a content as GitHub Markdown.
func renderMarkdown(c *content) string {
	var b strings.Builder
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("# %s\n\n%s\n\n", md(c.Title), md(c.Subtitle))
	for _, h := range c.Headlines {
		p("**%s**\n\n", md(h.Text))
	}
	p("**%s**\n\n", md(c.Closing))
	for _, f := range c.Facts {
		p("- **%s**: %s\n", md(f.Name), md(f.Value))
	}
	if len(c.Surprises) > 0 {
		p("\n## Not passed\n\n")
		for _, s := range c.Surprises {
			p("- **%s**: %s: %s\n", md(s.Kind), md(s.Scenario), md(s.Text))
		}
	}
	if len(c.Answers) > 0 {
		p("\n## Summary\n\n")
		for _, a := range c.Answers {
			p("- %s\n", md(a))
		}
	}
	for _, s := range c.Sections {
		p("\n## %s\n", md(heading(s.Title)))
		if s.Lead != "" {
			p("\n%s\n", md(s.Lead))
		}
		for _, t := range s.Tables {
			mdTable(&b, t)
		}
	}
	if len(c.Plots) > 0 || len(c.PlotNotes) > 0 {
		p("\n## Plots\n")
		for _, f := range c.Plots {
			p("\n![%s](%s)\n\n%s\n", md(f.Title+": "+f.Subtitle), f.SVG, md(f.Caption))
		}
		for _, n := range c.PlotNotes {
			p("\n%s\n", md(n))
		}
	}
	if len(c.Notes) > 0 {
		p("\n## Notes\n\n")
		for i, n := range c.Notes {
			// Not a list, which would number itself.
			p("<sup>%d</sup> %s  \n", i+1, md(n))
		}
	}
	if len(c.Links) > 0 {
		p("\n## Files of this run\n\n")
		for _, l := range c.Links {
			p("- [%s](%s): %s\n", md(l.Path), strings.ReplaceAll(l.Path, " ", "%20"), md(l.What))
		}
	}
	return b.String()
}

// heading turns the capitals of the text report into a title.
func heading(s string) string {
	return upper(strings.ToLower(s))
}

func mdTable(b *strings.Builder, t table) {
	p := func(format string, args ...any) { fmt.Fprintf(b, format, args...) }
	if t.Title != "" {
		p("\n**%s**\n", md(t.Title))
	}
	for _, s := range t.Above {
		p("\n%s\n", md(s))
	}
	p("\n| %s |", md(t.Head))
	for _, c := range t.Cols {
		p(" %s |", md(c.title()))
	}
	p("\n|---|")
	for _, c := range t.Cols {
		if c.Left {
			p("---|")
		} else {
			p("---:|")
		}
	}
	for _, r := range t.Rows {
		p("\n| %s%s |", md(r.Head), mdMarks(r.Marks))
		if r.Span != "" {
			p(" %s |%s", md(r.Span), strings.Repeat("  |", max(len(t.Cols)-1, 0)))
			continue
		}
		for i := range t.Cols {
			var c cell
			if i < len(r.Cells) {
				c = r.Cells[i]
			}
			text := md(c.Text)
			if c.Class == bad && text != "" {
				text = "**" + text + "**"
			}
			if c.Link != "" {
				text = "[" + text + "](" + FileHTML + c.Link + ")"
			}
			p(" %s%s |", text, mdMarks(c.Marks))
		}
	}
	p("\n")
	for _, s := range t.Below {
		p("\n%s\n", md(s))
	}
}

func mdMarks(ns []int) string {
	var parts []string
	for _, n := range ns {
		parts = append(parts, fmt.Sprint(n))
	}
	if len(parts) == 0 {
		return ""
	}
	return "<sup>" + strings.Join(parts, ",") + "</sup>"
}

var mdEscaper = strings.NewReplacer(
	"&", "&amp;", "<", "&lt;", ">", "&gt;", "|", "\\|", "*", "\\*", "_", "\\_", "`", "\\`", "[", "\\[", "]", "\\]", "\\", "\\\\", "~", "\\~", "#", "\\#", "@", "&#64;", "!", "\\!", "$", "\\$")

// md escapes s for Markdown.
func md(s string) string { return mdEscaper.Replace(clean(s)) }
