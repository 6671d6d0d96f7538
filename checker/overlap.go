package checker

import "github.com/lockbench/lockbench/history"

// overlaps judges the holds by the clients' view.
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
		// Incidents are groups as observed, so that a clock's uncertainty
		// joins none.
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

// explainOverlaps lays the n certain overlaps of a group to their causes: to a
// suspect first, else to a lease that its holder outlived.
func (p *part) explainOverlaps(group []span, n int64) {
	cut := make([]span, len(group)) // up to the leases' ends
	for i, x := range group {
		cut[i] = x
		if until := p.outlivedFrom(&p.attempts[x.at]); until != 0 {
			cut[i].e = min(x.e, max(x.s, until))
		}
	}
	outlived := n - countClashes(cut, certain)
	rest := n
	for i, x := range group {
		if _, ok := p.suspects[p.id(&p.attempts[x.at])]; !ok {
			continue
		}
		for k, y := range group {
			if k == i || !clash(x, y, certain) {
				continue
			}
			// A pair of two suspects is met twice.
			if _, both := p.suspects[p.id(&p.attempts[y.at])]; both && k < i {
				continue
			}
			if cause, ok := p.suspected(x, y); ok {
				p.causes[cause]++
				rest--
				if !clash(cut[i], cut[k], certain) {
					outlived--
				}
			}
		}
	}
	if outlived > 0 {
		p.causes[Outlived] += outlived
		rest -= outlived
	}
	if rest > 0 {
		p.causes[NoKnownCause] += rest
		p.unexplained = true
	}
}

// causeOf names the cause of the overlap of x and y.
func (p *part) causeOf(x, y span) string {
	if cause, ok := p.suspected(x, y); ok {
		return cause
	}
	if y.s < x.s {
		x, y = y, x
	}
	if until := p.outlivedFrom(&p.attempts[x.at]); until != 0 && until <= y.s {
		return Outlived
	}
	return NoKnownCause
}

// outlivedFrom is when a's lease was over, if the server counted it from the
// last answer that confirmed it; 0 if it is not known. (It may have begun with
// the request, which for a long wait was long before.)
func (p *part) outlivedFrom(a *attempt) int64 {
	return p.leaseFrom(a, func(c *call) int64 { return c.Return })
}

// suspected is the cause that a suspect gives the overlap of x and y.
func (p *part) suspected(x, y span) (string, bool) {
	for _, z := range []span{x, y} {
		if s, ok := p.suspects[p.id(&p.attempts[z.at])]; ok && min(x.e, y.e) > s.From {
			return s.Cause, true
		}
	}
	return "", false
}

// pairWitness shows two holds that clash, and the calls to keep it with.
func (p *part) pairWitness(class Class, x, y span) (w Witness, calls []int32) {
	a, b := &p.attempts[x.at], &p.attempts[y.at]
	w = Witness{Class: class, Key: p.key, From: max(x.s, y.s), To: min(x.e, y.e)}
	calls = append(calls, a.acquire, b.acquire)
	for _, z := range []*attempt{a, b} {
		end := z.proof
		if z.held(p.calls) {
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

// keep adds a witness, with the calls given, if its class has room. Of these
// calls only the attempts are known by now; the rest is filled in by show.
func (p *part) keep(w Witness, calls ...int32) {
	if p.full(w.Class) {
		return
	}
	if len(calls) > 0 {
		w.Calls = make([]history.Call, len(calls))
	}
	for k, i := range calls {
		w.Calls[k].Attempt = p.ids[p.calls[i].attempt]
		p.proofs[i] = append(p.proofs[i], &w.Calls[k])
	}
	p.kept[w.Class] = append(p.kept[w.Class], w)
}

func (p *part) full(c Class) bool { return len(p.kept[c]) >= p.opt.maxWitnesses() }
