package conformance

import (
	"fmt"

	"github.com/lockbench/lockbench/impls"
)

// Answer is what came of measuring a property.
type Answer string

// The answers.
const (
	Yes Answer = "yes"
	No  Answer = "no"
	// NotApplicable: the question makes no sense for this lock. There are
	// three such questions: signals-loss and reports-lost of a lock that no client
	// but its holder can end, and extends of one that cannot be extended.
	NotApplicable Answer = "n/a"
	// Unknown: it could not be measured; the evidence says why.
	Unknown Answer = "unknown"
)

// Finding is one property of a lock, as promised and as measured.
type Finding struct {
	Property impls.Property
	Promised bool // by the recipe's Info.Has
	Measured Answer
	// Evidence is a sentence: what was seen, with times relative to the event
	// in question.
	Evidence string
}

// AsPromised reports whether the lock has what it promises and lacks what it
// does not: a property that was measured though not promised is a difference
// too. What is unknown is never as promised.
func (f Finding) AsPromised() bool {
	switch f.Measured {
	case Yes:
		return f.Promised
	case No, NotApplicable:
		return !f.Promised
	default:
		return false
	}
}

// String is the finding in a line.
func (f Finding) String() string {
	promised := "not promised"
	if f.Promised {
		promised = "promised"
	}
	return fmt.Sprintf("%s: %s, measured %s: %s", f.Property, promised, f.Measured, f.Evidence)
}

// seen is one observation that speaks for or against a property. What was seen
// to be wrong once counts, whatever else was seen; and a lock that could not be
// looked at in one place is not known to be right.
type seen struct {
	property impls.Property
	answer   Answer
	evidence string
}

// judge makes one finding of all that was seen of a property.
func judge(p impls.Property, promised bool, all []seen) Finding {
	f := Finding{Property: p, Promised: promised, Measured: Unknown, Evidence: "nothing was measured"}
	weight := map[Answer]int{No: 4, Unknown: 3, Yes: 2, NotApplicable: 1}
	others, best := 0, 0
	for _, s := range all {
		if s.property != p {
			continue
		}
		switch w := weight[s.answer]; {
		case w > best:
			best, others = w, 0
			f.Measured, f.Evidence = s.answer, s.evidence
		case w == best:
			others++
		}
	}
	switch {
	case others > 0 && f.Measured == Yes:
		f.Evidence += fmt.Sprintf("; nor anything against it in %d other places", others)
	case others > 0 && f.Measured == No:
		f.Evidence += fmt.Sprintf("; and the like in %d other places", others)
	}
	return f
}
