package reports

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/internal/printable"
	"github.com/lockbench/lockbench/internal/scenario"
)

// annotation is a fault as Grafana's HTTP API takes it. Times are milliseconds of the
// wall clock.
type annotation struct {
	Time int64    `json:"time"`
	End  int64    `json:"timeEnd"`
	Tags []string `json:"tags"`
	Text string   `json:"text"`
}

// annotations lists the faults of a run that had an effect. It is nil if no fault had
// one, or the run did not record the wall clock.
func annotations(doc scenario.Document) ([]byte, error) {
	var list []annotation
	for _, r := range doc.Scenarios {
		for _, f := range r.Faults {
			if f.Status != "effective" || r.WindowAt.IsZero() {
				continue
			}
			at := func(ns int64) int64 { return r.WindowAt.Add(time.Duration(ns)).UnixMilli() }
			// One that is never healed, as a kill, is a moment.
			list = append(list, annotation{
				Time: at(f.InjectedNS), End: at(cmp.Or(f.HealedNS, f.InjectedNS)),
				Tags: []string{"lockbench", printable.Name(f.Kind), printable.Name(r.Recipe)},
				Text: fmt.Sprintf("%s of %s in %s", printable.Name(f.Kind), printable.Name(f.Target), printable.Line(r.Name)),
			})
		}
	}
	if list == nil {
		return nil, nil
	}
	data, err := json.MarshalIndent(list, "", "  ")
	return append(data, '\n'), err
}
