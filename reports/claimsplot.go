package reports

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports/claims"
)

// claimCurves draws the curves of the claims.
func claimCurves(list []claims.Decision, ls map[string]look) []figure {
	var figures []figure
	for _, d := range list {
		for _, t := range d.Tables {
			if t.Metric != "" {
				figures = append(figures, claimCurve(d, t, ls))
			}
		}
	}
	return figures
}

// claimCurve draws the medians of a metric, with bars from the lowest repeat to the
// highest.
func claimCurve(d claims.Decision, t claims.Table, ls map[string]look) figure {
	f := figure{
		name: fileName(d.ID, t.Title), title: upper(t.Title), subtitle: d.ID + ": " + d.Claim,
		caption: "The median of the repeats of each scenario, with bars from the lowest to the highest.",
		width:   figureWidth, height: figureHeight, marks: true,
	}
	p := newPlot(t.Head, t.Metric)
	p.Add(grid{false, true})
	for i, name := range t.Columns {
		var pts plotter.XYs
		var bars spans
		for _, row := range t.Rows {
			if s := row.Cells[i].Stat; s != nil {
				pts = append(pts, plotter.XY{X: float64(row.X), Y: s.Median})
				bars = append(bars, span{float64(row.X), s.Min, s.Max})
				p.Y.Max = max(p.Y.Max, s.Max*1.05)
			}
		}
		f.curve(p, name, ls[name], pts, bars)
	}
	if len(f.legend) == 0 {
		return figure{}
	}
	var ticks []plot.Tick
	for _, row := range t.Rows {
		ticks = append(ticks, plot.Tick{Value: float64(row.X), Label: row.Name})
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks(ticks)
	p.X.Min, p.X.Max = ticks[0].Value*0.9, ticks[len(ticks)-1].Value*1.1
	p.Y.Min, p.Y.Max = 0, max(p.Y.Max, math.SmallestNonzeroFloat64)
	p.Y.Tick.Marker = metricTicks(t.Metric)
	f.plots = []*plot.Plot{p}
	return f
}

// metricTicks are linear, with the metric's unit.
type metricTicks string

func (m metricTicks) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	metric, err := scenario.ParseMetric(string(m))
	for i, t := range ticks {
		if t.Label != "" && err == nil {
			ticks[i].Label = metric.Text(t.Value)
		}
	}
	return ticks
}
