package reports

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/internal/scenario"
)

// sweeps draws the experiments without faults that differ in their TTL alone, or in
// their hold alone, against that time.
func sweeps(es []*experiment, ls map[string]look) []figure {
	var figures []figure
	for _, axis := range []struct {
		name string
		of   func(*experiment) (float64, string)
		same func(*setting)
	}{
		{"TTL", func(e *experiment) (float64, string) { return e.ttl.Seconds(), e.ttl.String() }, func(s *setting) { s.ttl = 0 }},
		{"hold", func(e *experiment) (float64, string) { return e.load.Hold.Mean().Seconds(), e.load.Hold.String() }, func(s *setting) { s.hold, s.think = "", "" }},
	} {
		alike := map[setting][]*experiment{}
		var order []setting
		for _, e := range es {
			if at, _ := axis.of(e); len(e.faults) > 0 || at <= 0 || e.load.Kind == scenario.Properties {
				continue
			}
			key := e.id.setting
			key.group = ""
			axis.same(&key)
			if alike[key] == nil {
				order = append(order, key)
			}
			alike[key] = append(alike[key], e)
		}
		for _, key := range order {
			list := alike[key]
			byAxis := func(a, b *experiment) int {
				x, _ := axis.of(a)
				y, _ := axis.of(b)
				return cmp.Compare(x, y)
			}
			slices.SortStableFunc(list, byAxis)
			list = slices.CompactFunc(list, func(a, b *experiment) bool { return byAxis(a, b) == 0 })
			for _, n := range list[0].counts {
				s := series{axis: axis.name, of: func(row string, i int) []result { return list[i].runs[point{row, n}] }}
				for _, e := range list {
					x, label := axis.of(e)
					s.at, s.labels = append(s.at, x), append(s.labels, label)
				}
				f := figure{
					name:  fileName("throughput-vs", axis.name, list[0].load.Kind, list[0].at(n)),
					title: "Acquires per second against the " + axis.name, subtitle: clean(list[0].load.Kind) + " · " + list[0].at(n),
				}
				if f = s.draw(f, list[0].rows, ls); len(f.plots) > 0 {
					figures = append(figures, f)
				}
			}
		}
	}
	return figures
}
