package conformance

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/impls"
)

// TestJudge: what was wrong once is wrong, what could not be looked at is not
// right, and what is unknown is never as promised.
func TestJudge(t *testing.T) {
	all := func(list ...Answer) (s []seen) {
		for _, a := range list {
			s = append(s, seen{impls.Once, a, "it was " + string(a)}, seen{impls.Batch, No, "of another property"})
		}
		return s
	}
	for _, c := range []struct {
		seen       []seen
		promised   bool
		want       Answer
		asPromised bool
		evidence   string
	}{
		{all(), true, Unknown, false, "nothing"},
		{all(Yes), true, Yes, true, "it was yes"},
		{all(Yes), false, Yes, false, "it was yes"},
		{all(Yes, Yes, Yes), true, Yes, true, "2 other places"},
		{all(Yes, No, Unknown), true, No, false, "it was no"},
		{all(Yes, No, No), false, No, true, "1 other places"},
		{all(Yes, Unknown), true, Unknown, false, "it was unknown"},
		{all(Unknown), false, Unknown, false, "it was unknown"},
		{all(NotApplicable, Yes), true, Yes, true, "it was yes"},
		{all(NotApplicable), true, NotApplicable, false, "it was n/a"},
		{all(NotApplicable), false, NotApplicable, true, "it was n/a"},
	} {
		f := judge(impls.Once, c.promised, c.seen)
		if f.Measured != c.want || f.AsPromised() != c.asPromised || !strings.Contains(f.Evidence, c.evidence) {
			t.Errorf("%v, promised %t: %+v, as promised %t", c.seen, c.promised, f, f.AsPromised())
		}
	}
}
