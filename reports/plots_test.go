package reports

import (
	"bytes"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/lockbench/lockbench/internal/scenario"
)

func TestPlotsAreDrawn(t *testing.T) {
	dir := quickRun(t)
	for _, name := range []string{
		"latency-percentiles-uncontended-1c", "latency-percentiles-uncontended-32c", "latency-percentiles-contended-16c",
		"throughput-vs-clients-uncontended", "wait-under-contention-contended-16c", "throughput-over-time-paused-under-holder-pause",
	} {
		svg, err := os.ReadFile(filepath.Join(dir, DirPlots, name+".svg"))
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Contains(svg, []byte("redis/token")) {
			t.Errorf("%s.svg does not name redis/token", name)
		}
		if bytes.Contains(svg, []byte("memcached")) {
			t.Errorf("%s.svg shows memcached, which did not run", name)
		}
		data, err := os.ReadFile(filepath.Join(dir, DirPlots, name+".png"))
		if err != nil {
			t.Error(err)
			continue
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Errorf("%s.png: %v", name, err)
			continue
		}
		colors := map[[3]uint32]bool{}
		for y := 0; y < img.Bounds().Dy(); y += 2 {
			for x := 0; x < img.Bounds().Dx(); x += 2 {
				r, g, b, _ := img.At(x, y).RGBA()
				colors[[3]uint32{r, g, b}] = true
			}
		}
		if len(colors) < 10 {
			t.Errorf("%s.png shows %d colours: nothing was drawn", name, len(colors))
		}
	}
}

// A damaged or absent histogram costs its own curve, and the report says so.
func TestDamagedHistogramIsNamed(t *testing.T) {
	dir := t.TempDir()
	d := quickDoc()
	// The damaged ones are of one client; the other figures would only be drawn again.
	d.Scenarios = slices.DeleteFunc(d.Scenarios, func(r scenario.Result) bool { return r.Clients != 1 })
	writeRun(t, dir, d)
	at := func(recipe string, clients int) string {
		for _, r := range d.Scenarios {
			if r.Recipe == recipe && r.Clients == clients {
				return filepath.Join(dir, scenario.DirScenarios, r.Name, scenario.FileLatency)
			}
		}
		t.Fatalf("no scenario of %s", recipe)
		return ""
	}
	whole, err := os.ReadFile(at("redis/token", 1))
	if err != nil {
		t.Fatal(err)
	}
	damage := map[string][]byte{
		at("redis/token", 1): whole[:len(whole)*2/3],
		at("etcd/mutex", 1):  []byte("Tag=acquire,1.0,1.0,1.0,HISTFAAAnonsense\n"),
	}
	for path, data := range damage {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Remove(at("zookeeper/sequence", 1)); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(dir, FileMarkdown))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"no curve for", "etcd/mutex (scenarios/", "no histogram for zookeeper/sequence"} {
		if !strings.Contains(string(page), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
}

func TestPercentileTicks(t *testing.T) {
	var labels []string
	for _, tk := range percentileTicks(1e6) {
		labels = append(labels, tk.Label)
	}
	want := "min 50% 75% 90% 99% 99.9% 99.99% 99.999% 99.9999%"
	if got := strings.Join(labels, " "); got != want {
		t.Errorf("ticks %s, want %s", got, want)
	}
}

func TestDecadeHoldsItsRange(t *testing.T) {
	for _, c := range [][4]float64{{3, 70, 2, 100}, {1, 1, 1, 10}, {5.5, 480, 5, 500}, {999, 1001, 500, 2000}, {0.2, 0.9, 0.2, 1}} {
		lo, hi := decade(c[0], c[1])
		if lo != c[2] || hi != c[3] {
			t.Errorf("decade(%g, %g) = %g, %g, want %g, %g", c[0], c[1], lo, hi, c[2], c[3])
		}
		if lo > c[0] || hi < c[1] {
			t.Errorf("decade(%g, %g) leaves data out", c[0], c[1])
		}
	}
}

func TestEveryFaultIsMarked(t *testing.T) {
	r := result{Faults: []scenario.FaultResult{
		{Kind: "holder-cut", InjectedNS: 2 * sec, HealedNS: 5 * sec},
		{Kind: "holder-cut", InjectedNS: 7 * sec}, // a moment, or never healed
		{Kind: "holder-cut"},                      // never injected
	}}
	got := faultSpans(r)
	if want := (shade{{span: span{0, 2, 5}}, {span: span{0, 7, 7}}}); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	r.Faults[1].Kind = "leader-kill"
	if got := faultSpans(r); got[0].name != "holder-cut" || got[1].name != "leader-kill" {
		t.Errorf("two kinds that look alike: %+v", got)
	}
}

// A single mark as small as they get is seen, whosever it is, and none can be
// taken for the cross of what never happened.
func TestMarksAreSeen(t *testing.T) {
	drawn := func(s draw.GlyphDrawer) (ink float64, bytes []uint8) {
		img := vgimg.NewWith(vgimg.UseWH(20, 20), vgimg.UseDPI(144))
		c := draw.New(img)
		c.DrawGlyph(draw.GlyphStyle{Color: rgb(0, 0, 0), Radius: smallMark, Shape: s}, vg.Point{X: 10, Y: 10})
		at := img.Image()
		for y := range at.Bounds().Dy() {
			for x := range at.Bounds().Dx() {
				r, _, _, _ := at.At(x, y).RGBA()
				ink += 1 - float64(r)/0xffff
				bytes = append(bytes, uint8(r>>8))
			}
		}
		return ink, bytes
	}
	full, _ := drawn(draw.CircleGlyph{})
	if thin, _ := drawn(draw.CrossGlyph{}); thin > full/2 {
		t.Fatalf("the library's cross has %.0f pixels of ink, a circle %.0f: this test would let it pass", thin, full)
	}
	_, never := drawn(cross())
	d := append(quickDoc().Scenarios, selfTestDoc().Scenarios...)
	for name, l := range looks(experiments(d)) {
		ink, bytes := drawn(l.shape)
		if ink < full/2 {
			t.Errorf("%s: %.0f pixels of ink, a circle has %.0f", name, ink, full)
		}
		if slices.Equal(bytes, never) {
			t.Errorf("%s is drawn as what never happened", name)
		}
	}
}

// The name of an axis is no longer than the axis, also where one panel is alone.
func TestAxisHasRoomForItsName(t *testing.T) {
	rs := slices.DeleteFunc(quickDoc().Scenarios, func(r result) bool { return r.Group != "paused" || r.Status != scenario.StatusDone })
	for n := 1; n <= len(rs); n++ {
		es := experiments(rs[:n])
		f := overTime(es[0], looks(es))
		const titles = 60 // points: a title and two lines under it
		_, axes := f.areas(draw.New(vgimg.New(f.width, f.height-titles)))
		if name, room := labelStyle().Width(f.yLabel), axes.Max.Y-axes.Min.Y; name > room {
			t.Errorf("%d panels: %q takes %.0f points of %.0f", n, f.yLabel, name.Points(), room.Points())
		}
	}
}
