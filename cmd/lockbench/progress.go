package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// progress prints the progress of a run on stderr: one line that is rewritten on a
// terminal, otherwise one line per scenario.
type progress struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	color    bool
	width    int               // columns of the terminal
	names    int               // columns of the longest prefix
	prefixes map[string]string // "[ 3/35] contended-redis-token-16c-r1", by the names of the running scenarios
	open     bool              // the terminal shows a line that will be rewritten
}

// newProgress prints the plan in a line.
func newProgress(w io.Writer, plan scenario.Resolved) *progress {
	terminal := isTerminal(w)
	p := &progress{w: w, terminal: terminal, color: terminal && os.Getenv("NO_COLOR") == "", width: columns(w, 80), prefixes: map[string]string{}}
	counter := len(progressPrefix(len(plan.Scenarios), len(plan.Scenarios), ""))
	for _, sc := range plan.Scenarios {
		p.names = max(p.names, counter+len(sc.Name))
	}
	p.Note(fmt.Sprintf("%s: %s, %v of load (Ctrl-C stops the run and writes the report)", plan.Suite, scenariosText(len(plan.Scenarios)), loadTime(plan.Scenarios).Round(time.Second)))
	return p
}

// progressPrefix is the beginning of the line of the i-th of n scenarios.
func progressPrefix(i, n int, name string) string {
	return fmt.Sprintf("[%*d/%d] %s", len(fmt.Sprint(n)), i, n, name)
}

func (p *progress) Note(line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintln(p.w, line)
}

func (p *progress) Begin(i, n int, sc scenario.Scenario) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.prefixes[sc.Name] = progressPrefix(i, n, sc.Name)
	if p.terminal {
		p.rewrite(p.prefixes[sc.Name])
	}
}

func (p *progress) Tick(sc scenario.Scenario, elapsed, total time.Duration, acquired uint64) {
	if !p.terminal {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	const width = 20
	done := 0
	if total > 0 {
		done = int(width * elapsed / total)
	}
	bar := strings.Repeat("█", done) + strings.Repeat("░", width-done)
	far := fmt.Sprintf("%4.1fs of %.1fs  %d acquired", elapsed.Seconds(), total.Seconds(), acquired)
	if p.width < p.names+1+width+1+len(far)+2 {
		p.rewrite(p.prefixes[sc.Name] + " " + far) // no room for the bar
		return
	}
	p.rewrite(fmt.Sprintf("%-*s %s %s", p.names, p.prefixes[sc.Name], bar, far))
}

func (p *progress) Violation(sc scenario.Scenario, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	fmt.Fprintf(p.w, "%s: %s\n", p.prefixes[sc.Name], p.paint(red, what))
}

func (p *progress) Done(r scenario.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	if r.Status == scenario.StatusInterrupted && r.Acquired == 0 {
		return // it did not begin; the report lists it
	}
	fmt.Fprintf(p.w, "%-*s %s\n", p.names, p.prefixes[r.Name], p.outcome(r))
	delete(p.prefixes, r.Name)
}

// outcome summarises a result.
func (p *progress) outcome(r scenario.Result) string {
	switch r.Status {
	case scenario.StatusDone:
	case scenario.StatusMissing:
		return p.paint(yellow, "missing")
	default:
		return p.paint(red, string(r.Status)+": "+r.Reason)
	}
	words := []string{}
	if r.Throughput != nil {
		words = append(words, rateText(*r.Throughput))
	}
	s := r.Safety
	switch {
	case r.Workload.Kind == scenario.Properties:
		words = append(words, measuredProperties(r.Properties))
	case r.Workload.Kind != scenario.Uncontended:
		verdict := s.Verdict
		if verdict == scenario.Unsafe {
			verdict = p.paint(red, verdict) // also where it was expected
		}
		words = append(words, fmt.Sprintf("%s, guarantee %s, %s", verdict, s.Promise, s.Liveness))
	}
	switch {
	case s.Overlaps == 1:
		words = append(words, "1 overlap")
	case s.Overlaps > 1:
		words = append(words, fmt.Sprintf("%d overlaps", s.Overlaps))
	}
	for _, f := range r.Faults {
		words = append(words, f.Kind+" "+f.Status)
	}
	text := strings.Join(words, "; ")
	switch {
	case r.KnownFailure != "":
		return text + "  " + p.paint(yellow, "known to fail")
	case r.AsExpected == nil:
		return text + "  " + p.paint(yellow, "inconclusive")
	case !*r.AsExpected:
		return text + "  " + p.paint(red, "NOT AS EXPECTED")
	}
	return text
}

// rateText is a number of grants per second, with decimals if it is small: holds of
// seconds must not show as 0/s.
func rateText(perSecond float64) string {
	if 0 < perSecond && perSecond < 9.95 {
		return fmt.Sprintf("%.2g/s", perSecond)
	}
	return fmt.Sprintf("%.0f/s", perSecond)
}

// measuredProperties summarises the properties of a recipe.
func measuredProperties(list []scenario.Property) string {
	has, differ := 0, []string{}
	for _, p := range list {
		if p.Measured == scenario.Yes {
			has++
		}
		if !p.AsPromised() {
			differ = append(differ, p.Property+" "+p.Measured)
		}
	}
	text := fmt.Sprintf("has %d of %d properties", has, len(list))
	if len(differ) > 0 {
		text += "; not as guaranteed: " + strings.Join(differ, ", ")
	}
	return text
}

const (
	red    = "31"
	yellow = "33"
)

func (p *progress) paint(color, s string) string {
	if !p.color {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// rewrite replaces the current line. It cuts the line at the width of the terminal:
// a wrapped line could not be replaced.
func (p *progress) rewrite(line string) {
	if rs := []rune(line); p.width > 1 && len(rs) >= p.width {
		line = string(rs[:p.width-1])
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", line)
	p.open = true
}

func (p *progress) clear() {
	if p.open {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.open = false
	}
}
