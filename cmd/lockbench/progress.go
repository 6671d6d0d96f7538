package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/lockbench/lockbench/internal/scenario"
)

// progress prints the progress of a run on stderr: one line that is rewritten on a
// terminal, otherwise one line per scenario.
type progress struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	color    bool
	names    int                // columns of the longest prefix
	running  map[string]running // by the names of the scenarios
	open     bool               // the terminal shows a line that will be rewritten

	now         func() time.Time
	started     time.Time
	done, total int                      // scenarios
	loaded, all time.Duration            // load of the finished scenarios, and of all
	loads       map[string]time.Duration // of the scenarios
	unsafe      map[string]bool
}

// running is a scenario that runs.
type running struct {
	prefix  string        // "[ 3/35] contended-redis-token-16c-r1"
	elapsed time.Duration // of its load
}

// newProgress prints the plan in a line.
func newProgress(w io.Writer, plan scenario.Resolved) *progress {
	terminal := isTerminal(w)
	p := &progress{
		w: w, terminal: terminal, color: terminal && os.Getenv("NO_COLOR") == "", running: map[string]running{},
		now: time.Now, started: time.Now(), total: len(plan.Scenarios), all: loadTime(plan.Scenarios), loads: map[string]time.Duration{}, unsafe: map[string]bool{},
	}
	counter := len(progressPrefix(len(plan.Scenarios), len(plan.Scenarios), ""))
	for _, sc := range plan.Scenarios {
		p.names = max(p.names, counter+len(sc.Name))
		p.loads[sc.Name] = loadTime([]scenario.Scenario{sc})
	}
	p.Note(fmt.Sprintf("%s: %s, %v of load (Ctrl-C stops the run and writes the report)", plan.Suite, scenariosText(len(plan.Scenarios)), p.all.Round(time.Second)))
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
	p.running[sc.Name] = running{prefix: progressPrefix(i, n, sc.Name)}
	if p.terminal {
		p.rewrite(p.status(sc.Name, ""))
	}
}

func (p *progress) Tick(sc scenario.Scenario, elapsed, total time.Duration, acquired uint64) {
	if !p.terminal {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.running[sc.Name]
	at.elapsed = elapsed
	p.running[sc.Name] = at
	for _, other := range p.running {
		if other.prefix < at.prefix {
			return // of several that run at once, the line shows the first
		}
	}
	text := fmt.Sprintf("%.1fs of %.1fs", elapsed.Seconds(), total.Seconds())
	if elapsed > 0 {
		text += ", " + rateText(float64(acquired)/elapsed.Seconds())
	}
	p.rewrite(p.status(sc.Name, text))
}

// status is the line of a running scenario: how far the run is and what was found,
// then the scenario. The name is shortened where the terminal is narrow.
func (p *progress) status(name, far string) string {
	head := fmt.Sprintf("%d of %d done", p.done, p.total)
	loaded := p.loaded
	for _, r := range p.running {
		loaded += r.elapsed
	}
	// The load so far took so long with all that comes around it.
	if took := p.now().Sub(p.started); loaded > 0 && p.all > loaded {
		left := time.Duration(float64(took) * float64(p.all-loaded) / float64(loaded))
		head += ", " + left.Round(time.Second).String() + " left"
	}
	if n := len(p.unsafe); n > 0 {
		head += ", " + p.paint(red, fmt.Sprintf("%d unsafe", n))
	}
	if others := len(p.running) - 1; others > 0 {
		far += fmt.Sprintf(" (and %d more)", others)
	}
	room := columns(p.w, 80) - 1 - visibleLen(head) - len(": ") - len(" ") - len(far)
	if room < len(name) {
		name = name[:max(0, room-1)] + "…"
	}
	return strings.TrimRight(head+": "+name+" "+far, " ")
}

func (p *progress) Violation(sc scenario.Scenario, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	p.unsafe[sc.Name] = true
	fmt.Fprintf(p.w, "%s: %s\n", p.running[sc.Name].prefix, p.paint(red, what))
}

func (p *progress) Done(r scenario.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clear()
	at := p.running[r.Name]
	delete(p.running, r.Name)
	p.done++
	if r.Status == scenario.StatusDone {
		p.loaded += p.loads[r.Name]
	} else {
		p.all -= p.loads[r.Name] // it took no time that others will take
	}
	if r.Safety.Verdict == scenario.Unsafe {
		p.unsafe[r.Name] = true
	}
	if r.Status == scenario.StatusInterrupted && r.Acquired == 0 {
		return // it did not begin; the report lists it
	}
	fmt.Fprintf(p.w, "%-*s %s\n", p.names, at.prefix, p.outcome(r))
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
	if width := columns(p.w, 80); visibleLen(line) >= width {
		plain := []rune(stripColor(line))
		line = string(plain[:max(0, width-1)])
	}
	fmt.Fprintf(p.w, "\r\x1b[K%s", line)
	p.open = true
}

// stripColor removes what paint adds.
func stripColor(s string) string {
	return strings.NewReplacer("\x1b["+red+"m", "", "\x1b["+yellow+"m", "", "\x1b[0m", "").Replace(s)
}

func visibleLen(s string) int { return utf8.RuneCountInString(stripColor(s)) }

func (p *progress) clear() {
	if p.open {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.open = false
	}
}
