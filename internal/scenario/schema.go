package scenario

import (
	"cmp"
	"encoding/json"
)

// The schema of result.json, result.schema.json, lets null mean "not measured"
// and nothing else. Go writes a nil slice as null too, so the lists that are
// merely empty are made empty first.

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
