package reports

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/lockbench/lockbench/internal/scenario"
)

// span is a stretch on one axis at a place on the other.
type span struct{ at, from, to float64 }

type spans []span

// vertical draws spans of y.
type vertical struct {
	spans
	style draw.LineStyle
}

func (v vertical) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, s := range v.spans {
		if s.to > s.from {
			c.StrokeLine2(v.style, x(s.at), y(s.from), x(s.at), y(s.to))
		}
	}
}

// shade marks faults over the full height: a line at the beginning, shaded until
// the end.
type shade []shaded

type shaded struct {
	span
	name string // "" if all faults are of one kind
}

func (s shade) Plot(c draw.Canvas, p *plot.Plot) {
	x, _ := p.Transforms(&c)
	named := 0
	for _, b := range s {
		at := x(b.from)
		if at > c.Max.X || x(b.to) < c.Min.X {
			continue
		}
		if from, to := max(at, c.Min.X), min(x(b.to), c.Max.X); to > from {
			c.SetColor(veil)
			c.Fill(vg.Rectangle{Min: vg.Point{X: from, Y: c.Min.Y}, Max: vg.Point{X: to, Y: c.Max.Y}}.Path())
		}
		if at >= c.Min.X {
			c.StrokeLine2(draw.LineStyle{Color: hurt, Width: vg.Points(1)}, at, c.Min.Y, at, c.Max.Y)
		}
		if b.name != "" { // one below the other: they can begin together
			named++
			sty := textStyle(sans(7), hurt)
			sty.YAlign = text.YTop
			c.FillText(sty, vg.Point{X: max(at, c.Min.X) + vg.Points(3), Y: c.Max.Y - vg.Points(float64(9*named-8))}, b.name)
		}
	}
}

// corner writes a text into a corner of a plot.
type corner struct {
	text string
	look look
}

func (l corner) Plot(c draw.Canvas, _ *plot.Plot) {
	sty := textStyle(bold(9.5), l.look.color)
	c.FillText(sty, vg.Point{X: c.Min.X + vg.Points(6), Y: c.Max.Y + vg.Points(11)}, l.text)
}

// waitRanges draws how long waiters waited: a row per recipe, from p50 to the
// longest, on a logarithmic axis.
func waitRanges(e *experiment, clients int, ls map[string]look) figure {
	f := figure{
		name: fileName("wait-under-contention", e.title(), fmt.Sprintf("%dc", clients)), title: "How long a client waited for a contended lock, " + e.at(clients), subtitle: e.figureConditions(clients),
		caption: "Time from the call of acquire to the grant: median, 90th and 99th percentile and maximum (each the median of the repeats). Further left is better; the axis is logarithmic.",
		width:   figureWidth,
	}
	p := newPlot("wait until the grant", "")
	p.Add(grid{true, false})
	var names []string
	var w waitRows
	lo, hi := math.Inf(1), 0.0
	for _, name := range e.rows {
		rs := e.runs[point{name, clients}]
		var qs []float64
		for _, q := range []func(*scenario.Latency) int64{p50, p90, p99, top} {
			if s := statOf(rs, mAcquire(q).get); s.n > 0 {
				qs = append(qs, max(s.med, 1))
			}
		}
		if len(qs) < 4 {
			continue
		}
		lo, hi = min(lo, qs[0]), max(hi, qs[3])
		w = append(w, waitRow{qs, ls[name]})
		names = append(names, name)
	}
	if len(w) == 0 {
		return figure{}
	}
	p.Add(w)
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, logTicks(roundNanos)
	p.X.Min, p.X.Max = decade(lo*0.9, hi*1.1)
	nameRows(p, names)
	f.height = vg.Points(110 + 40*float64(len(names)))
	f.plots = []*plot.Plot{p}
	return f
}

// nameRows puts recipes beside the rows of a plot, the first on top.
func nameRows(p *plot.Plot, names []string) {
	var ticks []plot.Tick
	for i, n := range names {
		ticks = append(ticks, plot.Tick{Value: float64(len(names) - 1 - i), Label: n})
	}
	p.Y.Min, p.Y.Max = -0.6, float64(len(names))-0.4
	p.Y.Tick.Marker, p.Y.Tick.Length, p.Y.LineStyle.Width = plot.ConstantTicks(ticks), 0, 0
}

type waitRow struct {
	qs   []float64 // p50, p90, p99, longest
	look look
}

type waitRows []waitRow

func (w waitRows) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	names := []string{"p50", "p90", "p99", "max"}
	sty := textStyle(sans(8), soft)
	sty.XAlign, sty.YAlign = text.XCenter, text.YBottom
	for i, row := range w {
		at := y(float64(len(w) - 1 - i))
		thin := draw.LineStyle{Color: row.look.color, Width: vg.Points(1.2)}
		thick := draw.LineStyle{Color: row.look.color, Width: vg.Points(4)}
		c.StrokeLine2(thin, x(row.qs[0]), at, x(row.qs[3]), at)
		c.StrokeLine2(thick, x(row.qs[0]), at, x(row.qs[1]), at)
		last := vg.Length(math.Inf(-1))
		for j, q := range row.qs {
			radius := 4.0
			if j > 0 {
				radius = 3
			}
			c.DrawGlyph(draw.GlyphStyle{Color: row.look.color, Radius: vg.Points(radius), Shape: markOf(j)}, vg.Point{X: x(q), Y: at})
			// Leave out a name that would cover the one before it.
			if x(q)-last > vg.Points(20) {
				c.FillText(sty, vg.Point{X: x(q), Y: at + vg.Points(6)}, names[j])
				last = x(q)
			}
		}
	}
}

func markOf(quantile int) draw.GlyphDrawer {
	switch quantile {
	case 0:
		return draw.CircleGlyph{}
	case 3:
		return cross()
	}
	return ring{}
}

// overTime draws grants per second around a fault, a panel per recipe. In an empty
// stretch all clients wait.
func overTime(e *experiment, ls map[string]look) figure {
	f := figure{
		name: fileName("throughput-over-time", e.title()), title: "Grants per second around " + clean(list(e.faults)), subtitle: "line: the fault begins, shaded: while it lasts · " + e.figureConditions(0),
		caption: "Grants in each second of the measured window. A line marks the beginning of a fault; the time until it was healed is shaded. In an empty stretch all clients waited. First repeat of each recipe.",
		width:   figureWidth,
	}
	end, most := 0.0, 1.0
	type panel struct {
		name string
		r    result
	}
	var panels []panel
	for _, name := range e.rows {
		for _, r := range done(e.of(name)) {
			if len(r.PerSecond) > 0 {
				panels = append(panels, panel{name, r})
				end = max(end, float64(len(r.PerSecond)))
				for _, n := range r.PerSecond {
					most = max(most, float64(n))
				}
				break
			}
		}
	}
	for i, pn := range panels {
		p := newPlot("", "")
		p.Add(faultSpans(pn.r))
		bars := make(spans, 0, len(pn.r.PerSecond))
		for s, n := range pn.r.PerSecond {
			bars = append(bars, span{float64(s), 0, float64(n)})
		}
		p.Add(grid{false, true}, columns{bars, ls[pn.name]}, corner{pn.name + missedText(pn.r), ls[pn.name]})
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, end, 0, most*1.05
		p.Y.Tick.Marker = plot.ConstantTicks([]plot.Tick{{Value: 0, Label: "0"}, {Value: most, Label: count(int64(most))}})
		if i == len(panels)-1 {
			p.X.Label.Text = "seconds of the measured window"
		} else {
			p.X.Tick.Marker = unlabelled{p.X.Tick.Marker}
		}
		p.Title.Text = " " // room for the panel's name
		p.Title.TextStyle.Font = sans(6)
		f.plots = append(f.plots, p)
	}
	f.yLabel = "grants per second"
	// A single panel must be as high as the name of its axis.
	f.height = vg.Points(max(86+76*float64(len(panels)), 215))
	return f
}

// unlabelled keeps the ticks of an axis and drops their labels.
type unlabelled struct{ plot.Ticker }

func (u unlabelled) Ticks(min, max float64) []plot.Tick {
	ts := u.Ticker.Ticks(min, max)
	for i := range ts {
		ts[i].Label = ""
	}
	return ts
}

// columns draws a bar per second.
type columns struct {
	spans
	look look
}

func (b columns) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	c.SetColor(b.look.color)
	for _, s := range b.spans {
		if s.to > 0 {
			c.Fill(vg.Rectangle{Min: vg.Point{X: x(s.at + 0.08), Y: y(0)}, Max: vg.Point{X: x(s.at + 0.92), Y: y(s.to)}}.Path())
		}
	}
}

// faultSpans are the times of a run's faults. An instant fault ends when it
// begins.
func faultSpans(r result) shade {
	var s shade
	several := slices.ContainsFunc(r.Faults, func(f scenario.FaultResult) bool { return f.Kind != r.Faults[0].Kind })
	for _, f := range r.Faults {
		if f.InjectedNS == 0 {
			continue
		}
		b := shaded{span: span{0, float64(f.InjectedNS) / 1e9, float64(max(f.HealedNS, f.InjectedNS)) / 1e9}}
		if several {
			b.name = clean(f.Kind)
		}
		s = append(s, b)
	}
	return s
}

func missedText(r result) string {
	if missed(r) {
		return ": the fault missed"
	}
	return ""
}
