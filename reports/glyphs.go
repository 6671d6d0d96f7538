package reports

import (
	"math"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// The lines of the plotting library's glyphs are too thin for a small glyph to be
// visible.
const (
	markLine  = 1.4 // points
	smallMark = 2.5 // points: radius of the smallest glyph
)

// diamond is a filled mark.
type diamond struct{}

func (diamond) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	r := sty.Radius * 1.3 // as large as a circle
	var p vg.Path
	p.Move(vg.Point{X: at.X - r, Y: at.Y})
	p.Line(vg.Point{X: at.X, Y: at.Y + r})
	p.Line(vg.Point{X: at.X + r, Y: at.Y})
	p.Line(vg.Point{X: at.X, Y: at.Y - r})
	p.Close()
	c.SetColor(sty.Color)
	c.Fill(p)
}

type ring struct{}

func (ring) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	var p vg.Path
	p.Move(vg.Point{X: at.X + sty.Radius, Y: at.Y})
	p.Arc(at, sty.Radius, 0, 2*math.Pi)
	p.Close()
	c.SetLineStyle(draw.LineStyle{Color: sty.Color, Width: vg.Points(markLine)})
	c.Stroke(p)
}

// strokes is a glyph of two lines through its middle; each is given by its end, in
// radii.
type strokes [2]vg.Point

func plus() strokes { return strokes{{X: 1}, {Y: 1}} }

// cross marks an end or a missing value; no subject is drawn as a cross.
func cross() strokes { return strokes{{X: 0.8, Y: 0.8}, {X: 0.8, Y: -0.8}} }

func (s strokes) DrawGlyph(c *draw.Canvas, sty draw.GlyphStyle, at vg.Point) {
	line := draw.LineStyle{Color: sty.Color, Width: vg.Points(markLine)}
	for _, end := range s {
		d := end.Scale(sty.Radius)
		c.StrokeLine2(line, at.X-d.X, at.Y-d.Y, at.X+d.X, at.Y+d.Y)
	}
}
