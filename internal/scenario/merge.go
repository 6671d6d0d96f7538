package scenario

import (
	"maps"
	"reflect"
	"slices"
	"strings"
)

// With returns f with over put over the settings of every block, as flags are
// put over a file. Expectations for recipes that are then not run are dropped.
func (f File) With(over Settings) File {
	f.Scenarios = slices.Clone(f.Scenarios)
	for i, b := range f.Scenarios {
		// The defaults go in first: a workload of another kind replaces the
		// whole workload, and must not get the old one's fields back later.
		b.Settings = merge(merge(f.Defaults, b.Settings), over)
		if len(over.Recipes) > 0 {
			b.ExpectFor = maps.Clone(b.ExpectFor)
			maps.DeleteFunc(b.ExpectFor, func(id string, _ Expect) bool { return !slices.Contains(over.Recipes, id) })
		}
		f.Scenarios[i] = b
	}
	f.Defaults = Settings{}
	f.over = maps.Clone(f.over)
	if f.over == nil {
		f.over = map[string]bool{}
	}
	v := reflect.ValueOf(over)
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("yaml"), ",")
			f.over[name] = true
		}
	}
	return f
}

// merge puts over on top of base.
func merge(base, over Settings) Settings {
	return Settings{
		Recipes:     firstList(over.Recipes, base.Recipes),
		Clients:     firstList(over.Clients, base.Clients),
		Repeat:      first(over.Repeat, base.Repeat),
		Topology:    firstList(over.Topology, base.Topology),
		Environment: firstText(over.Environment, base.Environment),
		Workers:     first(over.Workers, base.Workers),
		Workload:    mergeWorkload(base.Workload, over.Workload),
		Faults:      firstList(over.Faults, base.Faults),
		TTL:         first(over.TTL, base.TTL),
		Poll:        first(over.Poll, base.Poll),
		Warmup:      first(over.Warmup, base.Warmup),
		Duration:    first(over.Duration, base.Duration),
		Timeout:     first(over.Timeout, base.Timeout),
		Wire:        firstText(over.Wire, base.Wire),
		Servers:     mergeServers(base.Servers, over.Servers),
		Expect:      mergeExpectPointers(base.Expect, over.Expect),
		ExpectFor:   mergeExpectFor(base.ExpectFor, over.ExpectFor),
	}
}

// mergeWorkload takes fields from base where over says nothing, unless over
// names another kind: then the two have nothing to do with each other.
func mergeWorkload(base, over *Workload) *Workload {
	if over == nil || base == nil {
		return first(over, base)
	}
	if over.Kind != "" && base.Kind != "" && over.Kind != base.Kind {
		return over
	}
	return &Workload{
		Kind:         firstText(over.Kind, base.Kind),
		Keys:         first(over.Keys, base.Keys),
		Distribution: firstText(over.Distribution, base.Distribution),
		ZipfS:        first(over.ZipfS, base.ZipfS),
		Hold:         first(over.Hold, base.Hold),
		Think:        first(over.Think, base.Think),
		Arrival:      firstText(over.Arrival, base.Arrival),
		Rate:         first(over.Rate, base.Rate),
		MaxInFlight:  first(over.MaxInFlight, base.MaxInFlight),
		AcquireLimit: first(over.AcquireLimit, base.AcquireLimit),
		WatchLease:   first(over.WatchLease, base.WatchLease),
		Guard:        firstText(over.Guard, base.Guard),
		Readers:      first(over.Readers, base.Readers),
		Depth:        first(over.Depth, base.Depth),
		Batch:        first(over.Batch, base.Batch),
		Connections:  first(over.Connections, base.Connections),
	}
}

func mergeServers(base, over map[string]map[string]string) map[string]map[string]string {
	if len(base) == 0 {
		return over
	}
	all := map[string]map[string]string{}
	for _, layer := range []map[string]map[string]string{base, over} {
		for backend, settings := range layer {
			if all[backend] == nil {
				all[backend] = map[string]string{}
			}
			maps.Copy(all[backend], settings)
		}
	}
	return all
}

func mergeExpectPointers(base, over *Expect) *Expect {
	if over == nil || base == nil {
		return first(over, base)
	}
	e := mergeExpect(*base, *over)
	return &e
}

func mergeExpectFor(base, over map[string]Expect) map[string]Expect {
	if len(base) == 0 {
		return over
	}
	all := maps.Clone(base)
	for id, e := range over {
		all[id] = mergeExpect(all[id], e)
	}
	return all
}

func mergeExpect(base, over Expect) Expect {
	return Expect{
		Verdict:    firstText(over.Verdict, base.Verdict),
		Promise:    firstText(over.Promise, base.Promise),
		Liveness:   firstText(over.Liveness, base.Liveness),
		Thresholds: firstList(over.Thresholds, base.Thresholds),
	}
}

func first[T any](over, base *T) *T {
	if over != nil {
		return over
	}
	return base
}

// firstList takes an empty list for said, a nil one for not said.
func firstList[T any](over, base []T) []T {
	if over != nil {
		return over
	}
	return base
}

func firstText(over, base string) string {
	if over != "" {
		return over
	}
	return base
}

func valueOr[T any](p *T, otherwise T) T {
	if p != nil {
		return *p
	}
	return otherwise
}
