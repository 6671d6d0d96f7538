package checker

import "github.com/lockbench/lockbench/history"

// overlaps judges the holds in the clients' view.
func (p *part) overlaps(holds []span) {
	groups(holds, possible, func(group []span) {
		could := countClashes(group, possible)
		n := countClashes(group, certain)
		p.rep.Overlaps += n
		p.rep.UncertainOverlaps += could - n
		if n == 0 {
			return
		}
		p.explainOverlaps(group, n)
		// Incidents are groups of observed overlaps: the clocks' uncertainty
		// connects none.
		groups(group, observed, func(incident []span) {
			if countClashes(incident, certain) == 0 {
				return
			}
			p.rep.Incidents++
			p.rep.OverlapNS += sharedTime(incident)
			if missing := p.opt.maxWitnesses() - len(p.kept[Overlap]); missing > 0 {
				for _, pair := range findClashes(incident, missing) {
					w, calls := p.pairWitness(Overlap, pair[0], pair[1])
					w.Cause = p.causeOf(pair[0], pair[1])
					p.keep(w, calls...)
				}
			}
		})
	})
}

// sharedTime is how long two or more of a sorted group's spans were open, at least
// one of them not shared.
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

// pairWitness returns the witness of two clashing holds, and its calls.
func (p *part) pairWitness(class Class, x, y span) (w Witness, calls []int32) {
	a, b := &p.attempts[x.at], &p.attempts[y.at]
	w = Witness{Class: class, Key: p.key, From: max(x.s, y.s), To: min(x.e, y.e)}
	calls = append(calls, a.acquire, b.acquire)
	for _, z := range []*attempt{a, b} {
		end := z.proof
		if z.holding(p.calls) {
			if h := p.hold(z); class == Overlap && h.EndedBy >= 0 {
				end = int32(h.EndedBy)
			}
		}
		if end == none {
			end = z.firstRelease
		}
		if end != none {
			calls = append(calls, end)
		}
	}
	return w, calls
}

// keep adds a witness with its calls, if its class has room. Only the attempts of
// these calls are known here; show fills in the rest.
func (p *part) keep(w Witness, calls ...int32) {
	if p.full(w.Class) {
		return
	}
	if len(calls) > 0 {
		w.Calls = make([]history.Call, len(calls))
	}
	for k, i := range calls {
		w.Calls[k].Attempt = *p.ids.at(p.calls[i].attempt)
		p.proofs[i] = append(p.proofs[i], &w.Calls[k])
	}
	p.kept[w.Class] = append(p.kept[w.Class], w)
}

func (p *part) full(c Class) bool { return len(p.kept[c]) >= p.opt.maxWitnesses() }
