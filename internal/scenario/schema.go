package scenario

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"regexp"
	"strings"
)

//go:embed result.schema.json
var resultSchema []byte

// ResultSchema is the JSON Schema (draft 2020-12) of Document. Of faults it
// accepts those of the catalogue; the file accepts any action.
func ResultSchema(known Actions) ([]byte, error) {
	var root map[string]any
	if err := json.Unmarshal(resultSchema, &root); err != nil {
		return nil, err
	}
	at := root
	for _, name := range []string{"$defs", "fault", "properties", "kind"} {
		at, _ = at[name].(map[string]any)
	}
	at["pattern"] = "^(" + strings.Join(known.patterns(), "|") + ")$"
	return json.Marshal(root)
}

// patterns matches the names of all faults.
func (a Actions) patterns() []string {
	var list []string
	for _, action := range a {
		about := action.About()
		for _, target := range about.Targets {
			pattern := regexp.QuoteMeta(target)
			if target == TargetNode {
				pattern = targetNode + "[1-9][0-9]*"
			}
			list = append(list, pattern+"-"+regexp.QuoteMeta(about.Name))
		}
	}
	return list
}

// The schema lets null mean "not measured" and nothing else. Go writes a nil
// slice as null too, so the lists that are merely empty are made empty first.

// MarshalJSON writes the document as its schema has it.
func (d Document) MarshalJSON() ([]byte, error) {
	type plain Document
	d.Scenarios = notNil(d.Scenarios)
	d.Warnings = notNil(d.Warnings)
	return json.Marshal(plain(d))
}

// MarshalJSON writes the result as the document's schema has it.
func (r Result) MarshalJSON() ([]byte, error) {
	type plain Result
	r.Faults = notNil(r.Faults)
	r.Warnings = notNil(r.Warnings)
	return json.Marshal(plain(r))
}

// MarshalJSON writes the answers as the document's schema has them.
func (s Safety) MarshalJSON() ([]byte, error) {
	type plain Safety
	s.Causes = notNil(s.Causes)
	// A scenario that never ran was asked nothing: that is unknown, too.
	for _, answer := range []*string{&s.Verdict, &s.Promise, &s.Liveness} {
		*answer = cmp.Or(*answer, Undecided)
	}
	if s.Why == nil {
		s.Why = map[string]string{}
	}
	return json.Marshal(plain(s))
}

// MarshalJSON writes the witness as the document's schema has it.
func (w Witness) MarshalJSON() ([]byte, error) {
	type plain Witness
	w.Calls = notNil(w.Calls)
	return json.Marshal(plain(w))
}

func notNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
