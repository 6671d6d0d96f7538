package measure

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// properties derives the result of a scenario in which conformance measured the
// recipe's properties. There was no load, so there are no figures.
func properties(dir string, in *input) (scenario.Result, error) {
	in.history = &history.History{}
	d := &derivation{input: in}
	d.describe()
	r := &d.result
	if err := scenario.ReadJSON(filepath.Join(dir, scenario.FileProperties), &r.Properties); err != nil {
		return scenario.Result{}, err
	}
	// No figure of a load was measured.
	v := reflect.ValueOf(*r)
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
		if v.Field(i).Kind() == reflect.Pointer && v.Field(i).IsNil() && name != "as_expected" && r.Unmeasured[name] == "" {
			d.unmeasured(name, "the scenario measures properties; there is no load")
		}
	}
	r.Safety = scenario.Unjudged("the scenario measures properties; there is no load to judge")
	d.compareProperties()
	return *r, nil
}

// compareProperties holds what was measured against what the recipe promises.
// Either way a difference is one: a recipe that is better than its word has a
// wrong word, or the measurement does not see what it should.
func (d *derivation) compareProperties() {
	r := &d.result
	wrong := false
	open := d.surpriseIncomplete()
	if len(r.Properties) == 0 {
		open = true
		r.Surprises = append(r.Surprises, "inconclusive: no property was measured")
	}
	for _, p := range r.Properties {
		switch {
		case p.AsPromised():
		case p.Measured == scenario.Undecided:
			open = true
			r.Surprises = append(r.Surprises, fmt.Sprintf("inconclusive: %s: promised %s, and not decided: %s", p.Property, p.Promised, p.Evidence))
		default:
			wrong = true
			r.Surprises = append(r.Surprises, fmt.Sprintf("%s: promised %s, measured %s: %s", p.Property, p.Promised, p.Measured, p.Evidence))
		}
	}
	d.conclude(wrong, open)
}
