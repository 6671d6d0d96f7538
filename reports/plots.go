package reports

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/HdrHistogram/hdrhistogram-go"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/lockbench/lockbench/internal/scenario"
)

const (
	figureWidth  = 640 // points
	figureHeight = 360
)

// mostFaultPlots is the number of experiments under faults that have plots: these take
// half a second each to draw, and 20 KB of the page.
const mostFaultPlots = 12

// drawPlots draws every figure for which the run has data. The notes name the
// missing curves.
func drawPlots(r run) ([]plotFile, []string, error) {
	es := experiments(loads(r.doc.Scenarios))
	ls := looks(es)
	var figures []figure
	var notes []string
	var errs []error
	names := map[string]int{}
	hurt := 0 // experiments under faults
	add := func(f figure, note string) {
		if note != "" {
			notes = append(notes, note)
		}
		if len(f.plots) == 0 {
			return
		}
		// Two experiments can have the same name.
		names[f.name]++
		if n := names[f.name]; n > 1 {
			f.name = fmt.Sprintf("%s-%d", f.name, n)
		}
		figures = append(figures, f)
	}
	decided, err := runClaims(r)
	errs = append(errs, err)
	for _, f := range claimCurves(decided, ls) {
		add(f, "")
	}
	for _, e := range es {
		switch {
		case decided != nil:
			// Its experiments are about claims, whose curves are drawn.
		case e.uncontended():
			for i, n := range e.counts {
				if i == 0 || i == len(e.counts)-1 {
					add(percentiles(r, e, n, ls, "acquire latency without contention"))
				}
			}
			add(throughput(e, ls), "")
		case len(e.faults) == 0 && matrixed(es):
			// A run of many faults is not about speed.
		case len(e.faults) == 0:
			n := e.counts[len(e.counts)-1]
			add(waitRanges(e, n, ls), "")
			add(percentiles(r, e, n, ls, "wait under contention"))
			add(throughput(e, ls), "")
		case hurt >= mostFaultPlots:
			hurt++
		default:
			hurt++
			add(takeoverTimes(e, ls), "")
			if e.load.Kind != scenario.Takeover { // its only grants are the takeovers
				add(overTime(e, ls), "")
			}
		}
	}
	if n := hurt - mostFaultPlots; n > 0 {
		notes = append(notes, fmt.Sprintf("The plots of %s under faults are left out: a report has those of %d. Run a part of the suite for the others.", plural(n, "more experiment", "more experiments"), mostFaultPlots))
	}
	for _, f := range sweeps(es, ls) {
		add(f, "")
	}
	var files []plotFile
	for _, f := range figures {
		p, err := f.write(r.dir)
		if err != nil {
			errs = append(errs, fmt.Errorf("write plot %s: %w", f.name, err))
			continue
		}
		files = append(files, p)
	}
	return files, notes, errors.Join(errs...)
}

// fileName makes a file name out of words.
func fileName(words ...string) string {
	s := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			return c
		case c >= 'A' && c <= 'Z':
			return c + 'a' - 'A'
		}
		return '-'
	}, strings.Join(words, "-"))
	for strings.Contains(s, "--") {
		s = strings.ReplaceAll(s, "--", "-")
	}
	s = strings.Trim(s, "-")
	return s[:min(len(s), 80)]
}

func (e *experiment) at(clients int) string {
	return plural(clients, "client", "clients")
}

// percentiles draws acquire latency by percentile, on an axis that counts nines.
func percentiles(r run, e *experiment, clients int, ls map[string]look, what string) (figure, string) {
	f := figure{
		name: fileName("latency-percentiles", e.title(), fmt.Sprintf("%dc", clients)), title: upper(what) + ", " + e.at(clients), subtitle: e.figureConditions(clients),
		caption: "How long an acquire took, by percentile, from the latency.hlog files (all repeats together). Lower is better; from 90% on, each label to the right is ten times rarer.",
		width:   figureWidth, height: figureHeight, marks: true,
	}
	p := newPlot("percentile of acquires", "acquire latency")
	p.Add(grid{true, true})
	lo, hi, far := math.Inf(1), 0.0, 100.0
	var without, damaged []string
	for _, name := range e.rows {
		rs := e.runs[point{name, clients}]
		if len(done(rs)) == 0 {
			continue
		}
		h, err := r.latencies(rs, tagAcquire)
		if err != nil {
			damaged = append(damaged, fmt.Sprintf("%s (%s)", name, clean(err.Error())))
			continue
		}
		if h == nil || h.TotalCount() == 0 {
			without = append(without, name)
			continue
		}
		pts := curve(h)
		p.Add(&plotter.Line{XYs: pts, LineStyle: ls[name].line()}, &plotter.Scatter{XYs: ticked(pts), GlyphStyle: ls[name].glyph(3)})
		f.legend = append(f.legend, entry{name, ls[name]})
		for _, pt := range pts {
			lo, hi, far = min(lo, pt.Y), max(hi, pt.Y), max(far, pt.X)
		}
	}
	var notes []string
	if len(damaged) > 0 {
		notes = append(notes, fmt.Sprintf("%s: no curve for %s.", f.title, list(damaged)))
	}
	if len(without) > 0 {
		notes = append(notes, fmt.Sprintf("%s: no histogram for %s.", f.title, list(without)))
	}
	note := strings.Join(notes, " ")
	if len(f.legend) == 0 {
		return figure{}, note
	}
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Min, p.X.Max = 1, far
	p.Y.Min, p.Y.Max = decade(max(lo, 1), hi)
	p.X.Tick.Marker = plot.ConstantTicks(percentileTicks(far))
	p.Y.Tick.Marker = logTicks(roundNanos)
	f.plots = []*plot.Plot{p}
	return f, note
}

// curve has points at equal steps of the logarithm of 1/(1-p), up to the number of
// values.
func curve(h *hdrhistogram.Histogram) plotter.XYs {
	var pts plotter.XYs
	end := math.Log10(float64(h.TotalCount()))
	const steps = 240
	for i := 0; i <= steps; i++ {
		x := math.Pow(10, end*float64(i)/steps)
		v := h.ValueAtQuantile(100 * (1 - 1/x))
		pts = append(pts, plotter.XY{X: x, Y: float64(max(v, 1))})
	}
	return append(pts, plotter.XY{X: pts[len(pts)-1].X, Y: float64(max(h.Max(), 1))})
}

// ticked picks the points at the labels of the axis, which get a mark.
func ticked(pts plotter.XYs) plotter.XYs {
	var out plotter.XYs
	i := 0
	for _, t := range percentileTicks(pts[len(pts)-1].X) {
		for i < len(pts)-1 && pts[i].X < t.Value*0.9999 {
			i++
		}
		out = append(out, plotter.XY{X: t.Value, Y: pts[i].Y})
	}
	return out
}

func percentileTicks(far float64) []plot.Tick {
	ts := []plot.Tick{{Value: 1, Label: "min"}, {Value: 2, Label: "50%"}, {Value: 4, Label: "75%"}}
	label := "90%"
	for x := 10.0; x <= far*1.0001; x *= 10 {
		ts = append(ts, plot.Tick{Value: x, Label: label})
		switch label {
		case "90%":
			label = "99%"
		case "99%":
			label = "99.9%"
		default:
			label = strings.TrimSuffix(label, "%") + "9%"
		}
	}
	return ts
}

// throughput draws grants per second against the number of clients.
func throughput(e *experiment, ls map[string]look) figure {
	s := series{axis: "clients", of: func(row string, i int) []result { return e.runs[point{row, e.counts[i]}] }}
	for _, n := range e.counts {
		s.at, s.labels = append(s.at, float64(n)), append(s.labels, fmt.Sprint(n))
	}
	f := figure{
		name: fileName("throughput-vs-clients", e.title()), title: "Acquires per second against the number of clients", subtitle: e.figureConditions(0),
	}
	return s.draw(f, e.rows, ls)
}

// series are experiments that differ in one number, from which a curve per recipe
// is drawn.
type series struct {
	axis   string
	at     []float64 // rising
	labels []string
	of     func(row string, i int) []result
}

// curve adds a line with a bar at each point, unless it has no points.
func (f *figure) curve(p *plot.Plot, name string, l look, pts plotter.XYs, bars spans) {
	if len(pts) == 0 {
		return
	}
	p.Add(&plotter.Line{XYs: pts, LineStyle: l.line()}, vertical{bars, draw.LineStyle{Color: l.color, Width: vg.Points(1)}}, &plotter.Scatter{XYs: pts, GlyphStyle: l.glyph(3)})
	f.legend = append(f.legend, entry{name, l})
}

// draw completes f with the acquires per second.
func (s series) draw(f figure, rows []string, ls map[string]look) figure {
	if len(s.at) < 2 {
		return figure{}
	}
	f.caption = "Completed acquires per second, all clients together. Higher is better; both axes are logarithmic. Repeated runs: the median, with bars from the lowest to the highest."
	f.width, f.height, f.marks = figureWidth, figureHeight, true
	p := newPlot(s.axis, "acquires per second")
	p.Add(grid{false, true})
	lo, hi := math.Inf(1), 0.0
	for _, name := range rows {
		var pts plotter.XYs
		var bars spans
		for i, x := range s.at {
			if s := statOf(s.of(name, i), mThroughput().get); s.n > 0 && s.min > 0 {
				pts = append(pts, plotter.XY{X: x, Y: s.med})
				bars = append(bars, span{x, s.min, s.max})
				lo, hi = min(lo, s.min), max(hi, s.max)
			}
		}
		f.curve(p, name, ls[name], pts, bars)
	}
	if len(f.legend) == 0 {
		return figure{}
	}
	var ticks []plot.Tick
	for i, x := range s.at {
		ticks = append(ticks, plot.Tick{Value: x, Label: s.labels[i]})
	}
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Min, p.X.Max = s.at[0]*0.9, s.at[len(s.at)-1]*1.1
	p.Y.Min, p.Y.Max = decade(lo, hi)
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.ConstantTicks(ticks), logTicks(roundRate)
	f.plots = []*plot.Plot{p}
	return f
}

// figureConditions are the experiment's conditions, with the number of clients if
// the figure shows one of several.
func (e *experiment) figureConditions(clients int) string {
	c := e.conditions()
	if len(e.counts) > 1 && clients > 0 {
		c = e.at(clients) + " · " + c
	}
	if !e.uncontended() {
		if w := e.policy(); w != "" {
			c += " · polling recipes: " + w
		}
	}
	if n := e.repeats(); n > 1 {
		c += fmt.Sprintf(" · %d repeats", n)
	}
	return c
}

// policy is the wait policy of the recipes that poll.
func (e *experiment) policy() string {
	for _, r := range done(e.all()) {
		if strings.HasPrefix(r.WaitPolicy, "poll") {
			return clean(r.WaitPolicy)
		}
	}
	return ""
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
