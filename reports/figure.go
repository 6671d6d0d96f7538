package reports

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// figure is one picture: a title, a line with the conditions, the plots one below
// the other, and a legend beside them.
type figure struct {
	name     string // of its files, without extension
	title    string
	subtitle string
	caption  string // how to read it
	width    vg.Length
	height   vg.Length
	plots    []*plot.Plot
	legend   []entry
	marks    bool   // the legend shows marks as well as lines
	yLabel   string // of all plots together, if they have none of their own
}

type entry struct {
	name string
	look look
}

// plotFile is a figure as written.
type plotFile struct {
	Title, Subtitle, Caption string
	SVG, PNG                 string // paths relative to the run's folder, slash-separated
	Inline                   []byte // the SVG element
}

const (
	margin     = 10 // points around a figure
	axisHeight = 26 // points that labels and title of a shared axis take
)

func (f figure) draw(c draw.Canvas) {
	c.SetColor(rgb(0xff, 0xff, 0xff))
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, vg.Points(margin), -vg.Points(margin), vg.Points(margin), -vg.Points(margin))
	top := c.Max.Y
	put := func(s string, sty text.Style) {
		for _, l := range breakLines(s, sty, c.Max.X-c.Min.X) {
			c.FillText(sty, vg.Point{X: c.Min.X, Y: top}, l)
			top -= sty.Font.Size * 1.35
		}
	}
	put(f.title, textStyle(bold(13), ink))
	put(f.subtitle, textStyle(sans(9.5), soft))
	c.Max.Y = top - vg.Points(4)
	if len(f.legend) > 0 {
		c = f.drawLegend(c)
	}
	edge := c.Min.X
	if f.yLabel != "" {
		c.Min.X += vg.Points(16)
	}
	whole, axes := f.areas(c)
	if f.yLabel != "" {
		sty := labelStyle()
		sty.Rotation, sty.XAlign = math.Pi/2, text.XCenter
		c.FillText(sty, vg.Point{X: edge, Y: (axes.Min.Y + axes.Max.Y) / 2}, f.yLabel)
	}
	for i, p := range f.plots {
		p.Draw(whole[i])
	}
}

func labelStyle() text.Style { return textStyle(sans(10), ink) }

// areas divides a canvas among the plots; axes is the area of all their axes.
func (f figure) areas(c draw.Canvas) (whole []draw.Canvas, axes vg.Rectangle) {
	n := vg.Length(len(f.plots))
	// The lowest plot has the labels of the x axis for all.
	var foot vg.Length
	if n > 1 {
		foot = vg.Points(axisHeight)
	}
	each := (c.Max.Y - c.Min.Y - foot) / n
	// Align the left and right edges of the plots.
	left, right := c.Min.X, c.Max.X
	canvases := make([]draw.Canvas, len(f.plots))
	for i, p := range f.plots {
		canvases[i] = draw.Crop(c, 0, 0, foot+each*(n-1-vg.Length(i)), -each*vg.Length(i))
		if i == len(f.plots)-1 {
			canvases[i].Min.Y -= foot
		}
		data := p.DataCanvas(canvases[i])
		left, right = max(left, data.Min.X), min(right, data.Max.X)
	}
	axes = vg.Rectangle{Min: vg.Point{X: left, Y: c.Max.Y}, Max: vg.Point{X: right, Y: c.Min.Y}}
	for i, p := range f.plots {
		data := p.DataCanvas(canvases[i])
		axes.Min.Y, axes.Max.Y = min(axes.Min.Y, data.Min.Y), max(axes.Max.Y, data.Max.Y)
		canvases[i] = draw.Crop(canvases[i], left-data.Min.X, right-data.Max.X, 0, 0)
	}
	return canvases, axes
}

// drawLegend takes a strip on the right.
func (f figure) drawLegend(c draw.Canvas) draw.Canvas {
	sty := textStyle(sans(10), ink)
	thumb := vg.Points(30)
	var w vg.Length
	for _, e := range f.legend {
		w = max(w, sty.Width(e.name))
	}
	w += thumb + vg.Points(20)
	x, y := c.Max.X-w+vg.Points(14), c.Max.Y-vg.Points(12)
	for _, e := range f.legend {
		c.StrokeLine2(e.look.line(), x, y, x+thumb, y)
		if f.marks {
			c.DrawGlyph(e.look.glyph(3), vg.Point{X: x + thumb/2, Y: y})
		}
		c.FillText(sty, vg.Point{X: x + thumb + vg.Points(6), Y: y + sty.Font.Size*0.62}, e.name)
		y -= sty.Font.Size * 1.7
	}
	return draw.Crop(c, 0, -w, 0, 0)
}

func textStyle(f font.Font, c color.Color) text.Style {
	return text.Style{Color: c, Font: f, YAlign: text.YTop, Handler: plot.DefaultTextHandler}
}

func breakLines(s string, sty text.Style, width vg.Length) []string {
	var lines []string
	line := ""
	for _, w := range strings.Fields(s) {
		if next := strings.TrimSpace(line + " " + w); line == "" || sty.Width(next) <= width {
			line = next
			continue
		}
		lines, line = append(lines, line), w
	}
	if line == "" {
		return lines
	}
	return append(lines, line)
}

// write draws a figure as SVG and as PNG into dir.
func (f figure) write(dir string) (plotFile, error) {
	out := plotFile{Title: f.title, Subtitle: f.subtitle, Caption: f.caption, SVG: DirPlots + "/" + f.name + ".svg", PNG: DirPlots + "/" + f.name + ".png"}
	if err := os.MkdirAll(filepath.Join(dir, DirPlots), 0o755); err != nil {
		return out, err
	}
	var svg, png bytes.Buffer
	vec := vgsvg.New(f.width, f.height)
	f.draw(draw.New(vec))
	img := vgimg.NewWith(vgimg.UseWH(f.width, f.height), vgimg.UseDPI(144))
	f.draw(draw.New(img))
	_, err1 := vec.WriteTo(&svg)
	_, err2 := vgimg.PngCanvas{Canvas: img}.WriteTo(&png)
	if err := errors.Join(err1, err2); err != nil {
		return out, fmt.Errorf("draw %s: %w", f.name, err)
	}
	data := svg.Bytes()
	if i := bytes.Index(data, []byte("<svg")); i >= 0 {
		out.Inline = data[i:]
	}
	return out, errors.Join(
		replace(filepath.Join(dir, filepath.FromSlash(out.SVG)), data),
		replace(filepath.Join(dir, filepath.FromSlash(out.PNG)), png.Bytes()))
}
