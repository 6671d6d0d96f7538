package reports

// content is everything in a report, before it gets a format: text, Markdown and
// HTML are renderings of it.
type content struct {
	Title        string
	Subtitle     string
	Headlines    []headline
	Facts        []fact
	Answers      []string // the main results, a sentence each
	Sections     []section
	Notes        []string // footnotes; mark n refers to Notes[n-1]
	Surprises    []surprise
	Closing      string // one line: how many scenarios passed
	ClosingOK    bool
	ClosingClass class

	Plots     []plotFile
	PlotNotes []string // plots that could not be drawn, and why
	Links     []link
}

// link refers to a file of the run.
type link struct{ Path, What string }

type fact struct{ Name, Value string }

type section struct {
	Title  string
	Lead   string // one sentence under the title
	Tables []table
}

// table has one head column, whose cells name the rows, and further columns.
type table struct {
	Title  string
	Head   string // title of the head column
	Cols   []column
	Rows   []row
	Filter bool     // HTML offers to filter the rows
	Above  []string // sentences above the table
	Below  []string // sentences under the table
	// Detail tables are left out of the text report, to keep it short.
	Detail bool
}

type column struct {
	Group string // neighbours with the same group share a heading
	Name  string
	Left  bool // left-aligned text; numbers are right-aligned
}

type row struct {
	Head  string
	Marks []int
	// Span replaces the cells by one text across the table, for example for a
	// missing backend.
	Span  string
	Class class
	Cells []cell
}

type cell struct {
	Text  string
	Hover string // tooltip in HTML
	Link  string // the place in report.html that explains it
	Class class
	Marks []int
}

// class decides the colour of a text.
type class string

const (
	plain class = ""
	good  class = "good"
	bad   class = "bad"
	warn  class = "warn"
	wide  class = "wide" // a sentence, which may take several lines
	mute  class = "mute"
)

// surprise is an expectation that was not met or not decided.
type surprise struct {
	Scenario string
	Kind     string // "not as expected", "inconclusive", "failed", "missing", "interrupted"
	Text     string
}

// builder builds the sections and collects their footnotes.
type builder struct {
	run   run
	notes []string
	marks map[string]int
	// warned finds the footnote of a kind of warning.
	warned map[string]*alike
}

func newBuilder(r run) *builder {
	return &builder{run: r, marks: map[string]int{}, warned: map[string]*alike{}}
}

// note returns the mark of a footnote; equal texts get the same mark.
func (b *builder) note(text string) int {
	if n, ok := b.marks[text]; ok {
		return n
	}
	b.notes = append(b.notes, text)
	b.marks[text] = len(b.notes)
	return len(b.notes)
}

// dash is the cell of a value that was not measured.
func (b *builder) dash(reason string) cell {
	return cell{Text: none, Class: mute, Marks: []int{b.note(reason)}}
}

// cell shows the median of a metric over runs, or a dash with the reason.
func (b *builder) cell(runs []result, what string, m metric) cell {
	if s := statOf(runs, m.get); s.n > 0 {
		c := cell{Text: m.format(s.med)}
		if want := len(done(runs)); s.n < want {
			c.Marks = []int{b.note(what + ": the median of " + count(int64(s.n)) + " of " + count(int64(want)) + " repeats; not measured in the others: " + why(unmeasured(runs, m), m.field))}
		}
		return c
	}
	return b.dash(what + " was not measured: " + why(done(runs), m.field))
}

// counter is the cell of a number that should be 0: another has the class.
func counter(n int64, class class) cell {
	c := cell{Text: count(n)}
	if n > 0 {
		c.Class = class
	}
	return c
}

func unmeasured(runs []result, m metric) []result {
	var rest []result
	for _, r := range done(runs) {
		if _, ok := m.get(r); !ok {
			rest = append(rest, r)
		}
	}
	return rest
}
