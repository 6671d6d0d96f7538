package reports

import (
	"image/color"
	"math"
	"strconv"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/backend/all"
)

// look is how one subject is drawn in every plot: the backend decides colour and
// glyph, the recipe decides the dashes. The colours are distinguishable with the
// usual kinds of colour blindness, and no difference is in colour alone.
type look struct {
	color color.Color
	shape draw.GlyphDrawer
	dash  []vg.Length
}

func looks(es []*experiment) map[string]look {
	dashes := [][]vg.Length{nil, {vg.Points(6), vg.Points(3)}, {vg.Points(2), vg.Points(2)}, {vg.Points(8), vg.Points(3), vg.Points(2), vg.Points(3)}, {vg.Points(12), vg.Points(4)}}
	out := map[string]look{}
	used := map[string]int{}
	for _, e := range es {
		for _, name := range e.rows {
			if _, ok := out[name]; ok {
				continue
			}
			var backend string
			if rs := e.of(name); len(rs) > 0 {
				backend = rs[0].Backend
			}
			l := look{dash: dashes[used[backend]%len(dashes)]}
			l.color, l.shape = styleOf(backend)
			used[backend]++
			out[name] = l
		}
	}
	return out
}

// styleOf returns the colour and glyph of a backend.
func styleOf(name string) (color.Color, draw.GlyphDrawer) {
	d := all.Describe(name)
	switch {
	case name == reference:
		return rgb(0x55, 0x55, 0x55), plus()
	case d.Name == "":
		return color.Black, draw.SquareGlyph{}
	}
	shapes := map[backend.Glyph]draw.GlyphDrawer{
		backend.Circle: draw.CircleGlyph{}, backend.Box: draw.BoxGlyph{}, backend.Pyramid: draw.PyramidGlyph{},
		backend.Diamond: diamond{}, backend.Ring: ring{}, backend.Triangle: draw.TriangleGlyph{}, backend.Square: draw.SquareGlyph{},
	}
	return d.Color, shapes[d.Glyph]
}

func rgb(r, g, b uint8) color.Color { return color.NRGBA{r, g, b, 0xff} }

func (l look) line() draw.LineStyle {
	return draw.LineStyle{Color: l.color, Width: vg.Points(1.6), Dashes: l.dash}
}

func (l look) glyph(radius float64) draw.GlyphStyle {
	return draw.GlyphStyle{Color: l.color, Radius: vg.Points(radius), Shape: l.shape}
}

var (
	ink  = rgb(0x22, 0x22, 0x22)
	soft = rgb(0x66, 0x66, 0x66)
	rule = rgb(0xE2, 0xE2, 0xE2)
	veil = color.NRGBA{0xC0, 0x30, 0x30, 0x26}
	hurt = rgb(0xC0, 0x30, 0x30)
)

// newPlot is a plot with thin axes and without a title, which the figure has.
func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font = sans(10)
		a.Label.TextStyle.Color = ink
		a.Label.Padding = vg.Points(4)
		a.Tick.Label.Font = sans(9)
		a.Tick.Label.Color = ink
		a.LineStyle.Color, a.Tick.LineStyle.Color = soft, soft
		a.LineStyle.Width, a.Tick.LineStyle.Width = vg.Points(0.6), vg.Points(0.6)
		a.Padding = vg.Points(2)
	}
	return p
}

func sans(size float64) font.Font {
	return font.Font{Typeface: plot.DefaultFont.Typeface, Variant: "Sans", Size: vg.Points(size)}
}

func bold(size float64) font.Font {
	f := sans(size)
	f.Weight = xfont.WeightBold
	return f
}

// grid draws a light line at each labelled tick.
type grid struct{ x, y bool }

func (g grid) Plot(c draw.Canvas, p *plot.Plot) {
	tx, ty := p.Transforms(&c)
	style := draw.LineStyle{Color: rule, Width: vg.Points(0.6)}
	if g.x {
		for _, t := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
			if t.Label != "" && t.Value >= p.X.Min && t.Value <= p.X.Max {
				c.StrokeLine2(style, tx(t.Value), c.Min.Y, tx(t.Value), c.Max.Y)
			}
		}
	}
	if g.y {
		for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
			if t.Label != "" && t.Value >= p.Y.Min && t.Value <= p.Y.Max {
				c.StrokeLine2(style, c.Min.X, ty(t.Value), c.Max.X, ty(t.Value))
			}
		}
	}
}

// logTicks labels 1, and also 2 and 5 if few decades are shown.
func logTicks(format func(float64) string) plot.Ticker {
	return plot.TickerFunc(func(min, max float64) []plot.Tick {
		if min <= 0 || max <= min {
			return nil
		}
		few := math.Log10(max/min) < 2.2
		var ts []plot.Tick
		for e := math.Floor(math.Log10(min)); e <= math.Ceil(math.Log10(max)); e++ {
			for m := 1.0; m < 10; m++ {
				v := m * math.Pow(10, e)
				if v < min*0.999 || v > max*1.001 {
					continue
				}
				t := plot.Tick{Value: v}
				if m == 1 || few && (m == 2 || m == 5) {
					t.Label = format(v)
				}
				ts = append(ts, t)
			}
		}
		return ts
	})
}

// roundNanos labels an axis of times: 1ms, 20µs.
func roundNanos(ns float64) string {
	return round(ns, []unit{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}})
}

func roundRate(v float64) string {
	return round(v, []unit{{1e6, "M"}, {1e3, "k"}, {1, ""}})
}

// round prints the value of a tick.
func round(v float64, units []unit) string {
	for i, u := range units {
		if x := v / u.size; x >= 0.9999 || i == len(units)-1 {
			return strconv.FormatFloat(x, 'g', 4, 64) + u.name
		}
	}
	return ""
}

// decade widens a range to the next 1, 2 or 5 times a power of ten on each side.
func decade(min, max float64) (float64, float64) {
	lo := math.Pow(10, math.Floor(math.Log10(min)))
	for _, m := range []float64{5, 2} {
		if lo*m <= min {
			lo *= m
			break
		}
	}
	hi := math.Pow(10, math.Floor(math.Log10(max)))
	for _, m := range []float64{1, 2, 5, 10} {
		if hi*m >= max {
			hi *= m
			break
		}
	}
	if hi <= lo {
		hi = lo * 10
	}
	return lo, hi
}
