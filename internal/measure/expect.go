package measure

import (
	"fmt"

	"github.com/lockbench/lockbench/internal/scenario"
)

// compare compares the result with the expectation. A certain contradiction makes
// it false even if other answers are in doubt; a doubt, or a fault that missed,
// makes it null.
func (d *derivation) compare() {
	r := &d.result
	wrong, open := false, d.surpriseIncomplete()
	surprise := func(format string, args ...any) { r.Surprises = append(r.Surprises, fmt.Sprintf(format, args...)) }

	for _, reason := range d.missed {
		open = true
		surprise("inconclusive: a planned fault missed, %s", reason)
	}
	if n := len(d.history.Damage); n > 0 {
		open = true
		surprise("inconclusive: the history is damaged in %s, first %s", counted(n, "place", "places"), d.history.Damage[0])
	}
	for _, a := range scenario.Answers() {
		switch want, got := *a.Expected(&r.Expect), a.Of(r.Safety); {
		case want == "" || want == got:
		default:
			wrong, open = wrong || got != scenario.Undecided, open || got == scenario.Undecided
			surprise("%s: expected %s, but it is %s: %s", a.Key, want, got, r.Safety.Why[a.Key])
		}
	}
	for _, text := range r.Expect.Thresholds {
		t, err := scenario.ParseThreshold(text)
		if err != nil {
			open = true
			surprise("threshold %q cannot be read: %v", text, err)
			continue
		}
		met, known := t.Check(*r)
		switch {
		case !known:
			open = true
			surprise("threshold %s: not measured", t)
		case !met:
			wrong = true
			surprise("threshold %s: not met", t)
		}
	}
	d.conclude(wrong, open)
}

// surpriseIncomplete notes why the record is not whole, and reports whether
// there is a reason.
func (d *derivation) surpriseIncomplete() bool {
	why := d.incomplete()
	if why != "" {
		d.result.Surprises = append(d.result.Surprises, "inconclusive: "+why)
	}
	return why != ""
}

// conclude sets the answer: a wrong answer counts even if another one is open.
func (d *derivation) conclude(wrong, open bool) {
	switch {
	case wrong:
		d.result.AsExpected = ptr(false)
	case !open:
		d.result.AsExpected = ptr(true)
	}
}
