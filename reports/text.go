package reports

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	defaultWidth = 120
	minWidth     = 60
	minText      = 24 // narrowest column in which text is wrapped
	gap          = "  "
)

// textPrinter writes a content as text.
type textPrinter struct {
	strings.Builder
	color bool
	width int
}

func renderText(c *content, o TextOptions) string {
	p := &textPrinter{color: o.Color, width: o.Width}
	if p.width == 0 {
		p.width = defaultWidth
	}
	p.width = max(p.width, minWidth)
	p.line(p.paint(c.Title, "1"))
	p.wrap(c.Subtitle, "")
	p.headlines(c.Headlines)
	for _, f := range c.Facts {
		p.wrap(f.Name+": "+f.Value, "  ")
	}
	for _, s := range c.Sections {
		tables := slices.DeleteFunc(slices.Clone(s.Tables), func(t table) bool { return t.Detail })
		if len(tables) == 0 {
			continue
		}
		p.line("")
		p.line(p.paint(s.Title, "1"))
		for i, t := range tables {
			if i > 0 {
				p.line("")
			}
			p.table(t)
		}
	}
	if len(c.Answers) > 0 {
		p.line("")
		p.line(p.paint("SUMMARY", "1"))
		for _, a := range c.Answers {
			p.wrap("- "+a, "  ")
		}
	}
	if len(c.Notes) > 0 {
		p.line("")
		p.line(p.paint("NOTES", "1"))
		for i, n := range c.Notes {
			color := ""
			if strings.HasPrefix(n, "Warning: ") {
				color = "33"
			}
			p.wrapIn(color, superscript(i+1)+" "+n, "  ")
		}
	}
	p.line("")
	p.headlines(c.Headlines) // again: the end is what a terminal shows
	for _, s := range c.Surprises {
		p.wrap(p.paint(s.Kind, "31")+": "+s.Scenario+": "+s.Text, "  ")
	}
	p.line(p.paintClass(c.Closing, c.ClosingClass))
	return p.String()
}

func (p *textPrinter) headlines(hs []headline) {
	for _, h := range hs {
		p.wrapIn(h.Class.code(), h.Text, "  ")
	}
}

func (p *textPrinter) line(s string) {
	p.WriteString(strings.TrimRight(s, " "))
	p.WriteByte('\n')
}

// wrap prints a sentence, broken at spaces; lines after the first begin with indent.
func (p *textPrinter) wrap(s, indent string) { p.wrapIn("", s, indent) }

// wrapIn is wrap in a colour.
func (p *textPrinter) wrapIn(color, s, indent string) {
	for _, l := range fold(s, p.width, indent) {
		p.line(p.paint(l, color))
	}
}

// fold breaks s at spaces into lines of at most width; lines after the first begin
// with indent.
func fold(s string, width int, indent string) []string {
	words := strings.Split(s, " ")
	lines, line := []string(nil), words[0]
	for _, w := range words[1:] {
		if visible(line)+1+visible(w) > width {
			lines, line = append(lines, strings.TrimRight(line, " ")), indent+w
		} else {
			line += " " + w
		}
	}
	return append(lines, strings.TrimRight(line, " "))
}

// table prints t, split into blocks that fit the width.
func (p *textPrinter) table(t table) {
	if t.Title != "" {
		p.wrap(t.Title, "  ")
	}
	for _, s := range t.Above {
		p.wrapIn(map[bool]string{true: "33"}[strings.HasPrefix(s, "Warning: ")], "  "+s, "  ")
	}
	head := len([]rune(t.Head))
	for _, r := range t.Rows {
		head = max(head, visible(r.Head)+len([]rune(marks(r.Marks))))
	}
	widths := columnWidths(t)
	for from := 0; ; {
		to, at := from, head
		for to < len(t.Cols) && (to == from || at+len(gap)+widths[to] <= p.width) {
			at += len(gap) + widths[to]
			to++
		}
		// Keep columns with the same heading together if possible.
		if g := to; g < len(t.Cols) && t.Cols[g].Group != "" {
			for g > from && t.Cols[g-1].Group == t.Cols[to].Group {
				g--
			}
			if g > from {
				for ; to > g; to-- {
					at -= len(gap) + widths[to-1]
				}
			}
		}
		// Text in the last column wraps if there is a little room for it.
		if room := p.width - at - len(gap); to == len(t.Cols)-1 && t.Cols[to].Left && room >= minText {
			widths[to] = room
			to++
		}
		p.block(t, head, widths, from, to, from == 0)
		if to >= len(t.Cols) || !slices.ContainsFunc(t.Rows, func(r row) bool { return r.Span == "" }) {
			break // only spans are left
		}
		from = to
	}
	for _, s := range t.Below {
		p.wrap("  "+s, "  ")
	}
}

func (p *textPrinter) block(t table, head int, widths []int, from, to int, first bool) {
	if groups := groupLine(t, head, widths, from, to); groups != "" {
		p.line(p.paint(groups, "2"))
	}
	names := pad(t.Head, head, true)
	for i := from; i < to; i++ {
		names += gap + pad(t.Cols[i].Name, widths[i], t.Cols[i].Left)
	}
	p.line(p.paint(strings.TrimRight(names, " "), "2"))
	for _, r := range t.Rows {
		name := pad(r.Head+marks(r.Marks), head, true)
		if r.Span != "" {
			if first {
				p.span(name+gap, r)
			}
			continue
		}
		if !first && !slices.ContainsFunc(r.Cells[min(from, len(r.Cells)):min(to, len(r.Cells))], func(c cell) bool { return c.Text != none || len(c.Marks) > 0 }) {
			continue // nothing to say in these columns
		}
		line, rest := name, []string(nil)
		for i := from; i < to; i++ {
			var c cell
			if i < len(r.Cells) {
				c = r.Cells[i]
			}
			text := c.Text + marks(c.Marks)
			if i == len(t.Cols)-1 && visible(text) > widths[i] {
				lines := fold(text, widths[i], "")
				text = lines[0]
				for _, l := range lines[1:] {
					rest = append(rest, strings.Repeat(" ", visible(line)+len(gap))+p.paintClass(l, c.Class))
				}
			}
			line += gap + strings.Replace(pad(text, widths[i], t.Cols[i].Left), text, p.paintClass(text, c.Class), 1)
		}
		p.line(line)
		for _, l := range rest {
			p.line(l)
		}
	}
}

// span prints a row with one text across the table.
func (p *textPrinter) span(name string, r row) {
	n := visible(name)
	for i, l := range fold(strings.Repeat("x", n)+r.Span, p.width, strings.Repeat(" ", n)) {
		if i > 0 {
			name = strings.Repeat(" ", n)
		}
		text := []rune(l)
		p.line(name + p.paintClass(string(text[min(len(text), n):]), r.Class))
	}
}

func columnWidths(t table) []int {
	ws := make([]int, len(t.Cols))
	for i, c := range t.Cols {
		ws[i] = visible(c.Name)
		for _, r := range t.Rows {
			if r.Span == "" && i < len(r.Cells) {
				ws[i] = max(ws[i], visible(r.Cells[i].Text+marks(r.Cells[i].Marks)))
			}
		}
	}
	// Widen the last column of a group whose heading is wider.
	for i := 0; i < len(t.Cols); {
		j, sum := i, -len(gap)
		for j < len(t.Cols) && t.Cols[j].Group == t.Cols[i].Group && (j == i || t.Cols[i].Group != "") {
			sum += ws[j] + len(gap)
			j++
		}
		if need := visible(t.Cols[i].Group); need > sum {
			ws[j-1] += need - sum
		}
		i = j
	}
	return ws
}

func groupLine(t table, head int, widths []int, from, to int) string {
	line, any := strings.Repeat(" ", head), false
	for i := from; i < to; {
		g := t.Cols[i].Group
		j, sum := i, -len(gap)
		for j < to && t.Cols[j].Group == g && (j == i || g != "") {
			sum += widths[j] + len(gap)
			j++
		}
		any = any || g != ""
		// A heading is aligned like its columns.
		line += gap + pad(g, sum, j-i > 1 || t.Cols[i].Left)
		i = j
	}
	if !any {
		return ""
	}
	return strings.TrimRight(line, " ")
}

func pad(s string, width int, left bool) string {
	n := width - visible(s)
	if n <= 0 {
		return s
	}
	if left {
		return s + strings.Repeat(" ", n)
	}
	return strings.Repeat(" ", n) + s
}

// visible counts the columns of s without colour codes.
func visible(s string) int {
	n := utf8.RuneCountInString(s)
	for {
		i := strings.Index(s, "\x1b[")
		if i < 0 {
			return n
		}
		j := strings.IndexByte(s[i:], 'm')
		if j < 0 {
			return n
		}
		n -= j + 1
		s = s[i+j+1:]
	}
}

func (p *textPrinter) paint(s, code string) string {
	if !p.color || s == "" || code == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// code is the ANSI colour of a class, "" for none.
func (c class) code() string {
	return map[class]string{good: "32", bad: "31", warn: "33", mute: "2"}[c]
}

func (p *textPrinter) paintClass(s string, c class) string { return p.paint(s, c.code()) }

// marks writes footnote marks as superscripts.
func marks(ns []int) string {
	var parts []string
	for _, n := range ns {
		parts = append(parts, superscript(n))
	}
	return strings.Join(parts, "˒")
}

func superscript(n int) string {
	return strings.NewReplacer("0", "⁰", "1", "¹", "2", "²", "3", "³", "4", "⁴", "5", "⁵", "6", "⁶", "7", "⁷", "8", "⁸", "9", "⁹").Replace(fmt.Sprint(n))
}
