package reports

import (
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// takeoverTimes draws each takeover as a glyph: a row per recipe, with the takeover
// bound as a bar across the row.
func takeoverTimes(e *experiment, ls map[string]look) figure {
	f := figure{
		name: fileName("takeover", e.title()), title: "How long a dead client's lock stayed taken", subtitle: e.figureConditions(0),
		caption: "Each mark is a killed holder: the time from its death to the next grant of its key. The black bar is the takeover bound of the recipe. A red cross with the word never marks a key that was not granted again, and how long clients waited for it.",
		width:   figureWidth,
	}
	p := newPlot("from the holder's death to the next grant (seconds)", "")
	p.Add(grid{true, false})
	var rows takeoverRows
	var names []string
	far := 0.0
	for _, name := range e.rows {
		t, any := takeovers(done(e.of(name)))
		if !any {
			continue
		}
		r := takeoverRow{dots: fromDeath(t), bound: float64(t.BoundNS), look: ls[name]}
		if t.Granted < t.Holds {
			r.unserved = float64(t.UnansweredNS)
		}
		for _, v := range append([]float64{r.bound, r.unserved}, r.dots...) {
			far = max(far, v/1e9)
		}
		rows, names = append(rows, r), append(names, name)
	}
	if len(rows) == 0 {
		return figure{}
	}
	p.Add(rows)
	p.X.Min, p.X.Max = 0, far*1.06
	nameRows(p, names)
	f.height = vg.Points(110 + 22*float64(len(names)))
	f.plots = []*plot.Plot{p}
	return f
}

type takeoverRow struct {
	dots     []float64 // ns, rising
	bound    float64   // ns; 0: none
	unserved float64   // ns; longest wait for a key that was not granted again; 0: none
	look     look
}

type takeoverRows []takeoverRow

func (t takeoverRows) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	black := draw.LineStyle{Color: ink, Width: vg.Points(2)}
	red := rgb(0xB0, 0x20, 0x20)
	for i, row := range t {
		at := y(float64(len(t) - 1 - i))
		if row.bound > 0 {
			c.StrokeLine2(black, x(row.bound/1e9), at-vg.Points(8), x(row.bound/1e9), at+vg.Points(8))
		}
		for j, v := range row.dots {
			// Glyphs of a row are in three lines, so that equal values are visible.
			dy := vg.Points(3 * math.Mod(float64(j), 3))
			c.DrawGlyph(row.look.glyph(smallMark), vg.Point{X: x(v / 1e9), Y: at + dy - vg.Points(3)})
		}
		if row.unserved > 0 {
			c.DrawGlyph(draw.GlyphStyle{Color: red, Radius: vg.Points(4), Shape: cross()}, vg.Point{X: x(row.unserved / 1e9), Y: at})
			sty := textStyle(sans(8), red)
			sty.XAlign, sty.YAlign = text.XRight, text.YCenter
			c.FillText(sty, vg.Point{X: x(row.unserved/1e9) - vg.Points(7), Y: at}, "never")
		}
	}
}
