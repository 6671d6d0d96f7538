package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/run"
	"github.com/lockbench/lockbench/internal/scenario"
)

// progress prints the progress of a run on stderr: one line per scenario that is
// done. On a terminal, lines below them are rewritten: how far the run is, and one
// for each scenario that runs.
type progress struct {
	mu       sync.Mutex
	w        io.Writer
	cursor   io.Writer // where the cursor of the terminal is moved
	terminal bool
	color    bool
	names    int                 // columns of the longest prefix
	running  map[string]*running // by the names of the scenarios
	shown    int                 // lines that will be rewritten

	now         func() time.Time
	started     time.Time
	done, total int                      // scenarios
	loaded, all time.Duration            // load of the finished scenarios, and of all
	loads       map[string]time.Duration // of the scenarios
	unsafe      map[string]bool
}

// running is a scenario that runs.
type running struct {
	prefix string // "[ 3/35] contended-redis-token-16c-r1"
	at     run.Status
	waits  *hdr.Histogram // of the grants in the window; nil: none yet
	stale  int            // stale writes
}

// newProgress prints the plan in a line.
func newProgress(w io.Writer, plan scenario.Resolved) *progress {
	terminal := isTerminal(w) && os.Getenv("TERM") != "dumb"
	cursor := w
	if f, ok := file(w); ok {
		cursor = f
	}
	p := &progress{
		w: w, cursor: cursor, terminal: terminal, color: terminal && os.Getenv("NO_COLOR") == "", running: map[string]*running{},
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
	p.print(line)
}

func (p *progress) Begin(i, n int, sc scenario.Scenario) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[sc.Name] = &running{prefix: progressPrefix(i, n, sc.Name)}
	p.rewrite()
}

func (p *progress) Tick(sc scenario.Scenario, at run.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[sc.Name].at = at
	p.rewrite()
}

// Call adds a call to the live figures of its scenario.
func (p *progress) Call(sc scenario.Scenario, c *history.Call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.running[sc.Name]
	if c.Kind == history.KindWrite && c.Flags&history.FlagStale != 0 {
		r.stale++
	}
	if c.Outcome != history.Held || c.Flags&(history.FlagWarmup|history.FlagDrain) != 0 {
		return
	}
	if r.waits == nil {
		r.waits = hdr.New(int64(time.Microsecond), int64(time.Hour), 2)
	}
	_ = r.waits.RecordValue(min(c.Return-c.Invoke, int64(time.Hour))) // no value is too large
}

// overall is how far the run is and what was found.
func (p *progress) overall() string {
	head := fmt.Sprintf("%d of %d done", p.done, p.total)
	loaded := p.loaded
	for _, r := range p.running {
		loaded += r.at.Elapsed
	}
	// The load so far took so long with all that comes around it.
	if took := p.now().Sub(p.started); loaded > 0 && p.all > loaded {
		left := time.Duration(float64(took) * float64(p.all-loaded) / float64(loaded))
		head += ", " + left.Round(time.Second).String() + " left"
	}
	if n := len(p.unsafe); n > 0 {
		head += ", " + p.paint(red, fmt.Sprintf("%d unsafe", n))
	}
	return head
}

// live is the line of a running scenario. Its name is shortened where the terminal
// is narrow.
func (p *progress) live(name string, r *running, width int) string {
	words := []string{}
	if r.at.Total > 0 {
		words = append(words, fmt.Sprintf("%.1fs of %.1fs", r.at.Elapsed.Seconds(), r.at.Total.Seconds()))
	}
	if r.at.Elapsed > 0 {
		words = append(words, rateText(float64(r.at.Acquired)/r.at.Elapsed.Seconds()))
	}
	if r.waits != nil {
		words = append(words, "p99 "+threeDigits(time.Duration(r.waits.ValueAtQuantile(99))))
	}
	if r.at.DoubleHolds > 0 {
		words = append(words, p.paint(red, plural(r.at.DoubleHolds, "double hold")))
	}
	if r.stale > 0 {
		words = append(words, p.paint(red, plural(r.stale, "stale write")))
	}
	far := strings.Join(words, ", ")
	if room := width - visibleLen(far) - len("   "); room < len(name) {
		name = name[:max(0, room-1)] + "…"
	}
	return strings.TrimRight("  "+name+" "+far, " ")
}

func threeDigits(d time.Duration) string {
	unit := time.Nanosecond
	for d/unit >= 1000 {
		unit *= 10
	}
	return d.Round(unit).String()
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (p *progress) Violation(sc scenario.Scenario, what string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.unsafe[sc.Name] = true
	p.print(p.running[sc.Name].prefix + ": " + p.paint(red, what))
}

func (p *progress) Done(r scenario.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
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
		p.rewrite()
		return // it did not begin; the report lists it
	}
	p.print(fmt.Sprintf("%-*s %s", p.names, at.prefix, p.outcome(r)))
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

// print prints a line above those that are rewritten.
func (p *progress) print(line string) {
	p.clear()
	fmt.Fprintln(p.w, line)
	p.rewrite()
}

// rewrite replaces the lines of the running scenarios. It cuts them at the width of
// the terminal, and leaves some out where it is low: lines that wrapped or scrolled
// could not be replaced. The cursor stands below them, where the terminal also
// shows the keys of Ctrl-C.
func (p *progress) rewrite() {
	if !p.terminal {
		return
	}
	p.clear()
	var text strings.Builder
	if len(p.running) > 0 {
		width, rows := columns(p.w, 80)-1, height(p.w, 24)
		names := slices.SortedFunc(maps.Keys(p.running), func(a, b string) int { return strings.Compare(p.running[a].prefix, p.running[b].prefix) })
		lines := []string{p.overall()}
		if room := max(1, rows-3); len(names) > room {
			lines[0] += fmt.Sprintf(" (%d more running)", len(names)-room)
			names = names[:room]
		}
		for _, name := range names {
			lines = append(lines, p.live(name, p.running[name], width))
		}
		for _, line := range lines {
			if visibleLen(line) > width {
				line = string([]rune(stripColor(line))[:max(0, width)])
			}
			text.WriteString(line + "\n")
		}
		p.shown = len(lines)
	}
	fmt.Fprint(p.w, text.String())
}

// stripColor removes what paint adds.
func stripColor(s string) string {
	return strings.NewReplacer("\x1b["+red+"m", "", "\x1b["+yellow+"m", "", "\x1b[0m", "").Replace(s)
}

func visibleLen(s string) int { return utf8.RuneCountInString(stripColor(s)) }

// clear removes the lines that are rewritten. The guard of the output lets no
// sequence pass that moves the cursor, for a name could contain it.
func (p *progress) clear() {
	if p.shown > 0 {
		fmt.Fprintf(p.cursor, "\r\x1b[%dA\x1b[J", p.shown)
		p.shown = 0
	}
}
