package checker

import (
	"github.com/lockbench/lockbench/history"
)

// judgement is the work on one report.
type judgement struct {
	*record
	opt      Options
	rep      Report
	suspects map[history.Attempt]Suspect
	causes   map[string]int64
	kept     map[Class][]Witness
	// unexplained marks keys with an overlap that no suspect explains.
	unexplained map[uint32]bool
	pauses      map[uint32][]stretch
}

// overlaps judges the holds of one key by the clients' view.
func (j *judgement) overlaps(key uint32, holds []span) {
	groups(holds, possible, func(group []span) {
		could := countClashes(group, possible)
		n := countClashes(group, certain)
		j.rep.Overlaps += n
		j.rep.UncertainOverlaps += could - n
		if n == 0 {
			return
		}
		j.explainOverlaps(key, group, n)
		// Incidents are groups as observed, so that a clock's uncertainty
		// joins none.
		groups(group, observed, func(incident []span) {
			if countClashes(incident, certain) == 0 {
				return
			}
			j.rep.Incidents++
			j.rep.OverlapNS += sharedTime(incident)
			if missing := j.opt.maxWitnesses() - len(j.kept[Overlap]); missing > 0 {
				for _, pair := range findClashes(incident, missing) {
					w := j.pairWitness(Overlap, key, pair[0], pair[1])
					w.Cause = j.causeOf(pair[0], pair[1])
					j.keep(w)
				}
			}
		})
	})
}

// sharedTime is how long two or more of a sorted group's spans were open, one
// of them not shared.
func sharedTime(sorted []span) int64 {
	var total int64
	reach, alone, counted := sorted[0].e, sorted[0].s, sorted[0].s
	if !sorted[0].shared {
		alone = sorted[0].e
	}
	for _, x := range sorted[1:] {
		against := reach
		if x.shared {
			against = alone
		}
		from, to := max(x.s, counted), min(x.e, against)
		if to > from {
			total += to - from
			counted = to
		}
		reach = max(reach, x.e)
		if !x.shared {
			alone = max(alone, x.e)
		}
	}
	return total
}

// explainOverlaps lays the n certain overlaps of a group to their causes.
func (j *judgement) explainOverlaps(key uint32, group []span, n int64) {
	var explained int64
	for i, x := range group {
		if _, ok := j.suspects[j.attempts[x.at].id]; !ok {
			continue
		}
		for k, y := range group {
			if k == i || !clash(x, y, certain) {
				continue
			}
			// A pair of two suspects is met twice.
			if _, both := j.suspects[j.attempts[y.at].id]; both && k < i {
				continue
			}
			if cause := j.causeOf(x, y); cause != NoKnownCause {
				j.causes[cause]++
				explained++
			}
		}
	}
	if n > explained {
		j.causes[NoKnownCause] += n - explained
		j.unexplained[key] = true
	}
}

// causeOf names the cause of the overlap of x and y.
func (j *judgement) causeOf(x, y span) string {
	for _, z := range []span{x, y} {
		if s, ok := j.suspects[j.attempts[z.at].id]; ok && min(x.e, y.e) > s.From {
			return s.Cause
		}
	}
	return NoKnownCause
}

// pairWitness shows two holds that clash.
func (j *judgement) pairWitness(class Class, key uint32, x, y span) Witness {
	a, b := &j.attempts[x.at], &j.attempts[y.at]
	w := Witness{Class: class, Key: key, From: max(x.s, y.s), To: min(x.e, y.e)}
	w.Calls = append(w.Calls, j.calls[a.acquire], j.calls[b.acquire])
	for _, z := range []*attempt{a, b} {
		end := z.proof
		if z.held(j.calls) {
			if h := j.hold(z); class == Overlap && h.EndedBy >= 0 {
				end = int32(h.EndedBy)
			}
		}
		if end == none {
			end = z.firstRelease
		}
		if end != none {
			w.Calls = append(w.Calls, j.calls[end])
		}
	}
	return w
}

// keep adds a witness if its class has room.
func (j *judgement) keep(w Witness) {
	if len(j.kept[w.Class]) < j.opt.maxWitnesses() {
		j.kept[w.Class] = append(j.kept[w.Class], w)
	}
}

func (j *judgement) full(c Class) bool { return len(j.kept[c]) >= j.opt.maxWitnesses() }
