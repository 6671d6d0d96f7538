package checker

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// holdsOf lists all holds of h by (key, start, client). Attempts whose records
// contradict one another are left out.
func holdsOf(h *history.History) []Hold {
	var holds []Hold
	j := surveyed(h).Judge(Options{})
	for key, of := range byKey(h.Calls) {
		g := j.gather(key, len(of))
		var origin []int32 // index in h by the part's call number
		for _, i := range of {
			if g.Visit(&h.Calls[i]); len(g.calls) > len(origin) {
				origin = append(origin, i)
			}
		}
		p := g.fold()
		for i := range p.attempts {
			if a := &p.attempts[i]; a.held(p.calls) {
				hold := p.hold(a)
				hold.Grant = int(origin[hold.Grant])
				if hold.EndedBy >= 0 {
					hold.EndedBy = int(origin[hold.EndedBy])
				}
				holds = append(holds, hold)
			}
		}
	}
	slices.SortFunc(holds, func(a, b Hold) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Start, b.Start), cmp.Compare(a.Client, b.Client), compareIDs(a.Attempt, b.Attempt))
	})
	return holds
}
