package checker

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// ForeignRelease is the cause of a violation of a holder whose lock another, who
// had held it before, released: such a lock does not ask whose it is.
const ForeignRelease = "a foreign release freed the holder's lock"

// release is a confirmed release, for the search of foreign ones.
type release struct {
	invoke int64
	at     int32 // the attempt that sent it
}

// releases lists the confirmed releases by when they were sent. A re-entrant
// lock's may be of an inner hold, and are left out.
func (p *part) releases() []release {
	var list []release
	for i := range p.attempts {
		if over := p.attempts[i].over; over != none && !p.opt.Reentrant && !p.attempts[i].shared {
			list = append(list, release{p.calls[over].Invoke, int32(i)})
		}
	}
	slices.SortFunc(list, func(a, b release) int { return cmp.Compare(a.invoke, b.invoke) })
	return list
}

// maxForeign bounds how many releases are looked at for one violation.
const maxForeign = 64

// foreign reports whether an attempt that had been granted the lock before x
// sent a release, which was confirmed, between from and to, in which x held it.
func (p *part) foreign(x, y int32, from, to int64) bool {
	i, _ := slices.BinarySearchFunc(p.letGo, from+1, func(r release, at int64) int { return cmp.Compare(r.invoke, at) })
	for _, r := range p.letGo[i:min(len(p.letGo), i+maxForeign)] {
		if r.invoke >= to {
			return false
		}
		if r.at != x && r.at != y && p.calls[p.attempts[r.at].acquire].Return < from {
			return true
		}
	}
	return false
}

// explainOverlaps lays the n certain overlaps of a group to their causes.
func (p *part) explainOverlaps(group []span, n int64) {
	if n > maxClassified {
		p.explainMany(group, n)
		return
	}
	group = slices.Clone(group)
	sortSpans(group, observed)
	meeting(group, func(y, x span) bool {
		if clash(x, y, certain) {
			cause := p.causeOf(y, x)
			p.causes[cause]++
			if cause == NoKnownCause {
				p.unexplained = true
			} else {
				p.blamed[p.id(&p.attempts[y.at])], p.blamed[p.id(&p.attempts[x.at])] = cause, cause
			}
		}
		return true
	})
}

// explainMany does the same for a lock so broken that its pairs are too many to
// be looked at: there are those whose holder outlived its lease, and the rest.
func (p *part) explainMany(group []span, n int64) {
	cut := make([]span, len(group)) // up to the leases' ends
	for i, x := range group {
		cut[i] = x
		if until := p.outlivedFrom(&p.attempts[x.at]); until != 0 {
			cut[i].e = min(x.e, max(x.s, until))
		}
	}
	rest := countClashes(cut, certain)
	if outlived := n - rest; outlived > 0 {
		p.causes[Outlived] += outlived
	}
	if rest > 0 {
		p.causes[NoKnownCause] += rest
		p.unexplained = true
	}
}

// causeOf names the cause of the overlap of x and y: what is known of one of the
// two first, then what the lock did to the earlier, then what happened to the
// servers.
func (p *part) causeOf(x, y span) string {
	if y.s < x.s {
		x, y = y, x
	}
	for _, z := range []span{x, y} {
		if s, ok := p.suspects[p.id(&p.attempts[z.at])]; ok && min(x.e, y.e) > s.From {
			return s.Cause
		}
	}
	if until := p.outlivedFrom(&p.attempts[x.at]); until != 0 && until <= y.s {
		return Outlived
	}
	if p.foreign(x.at, y.at, x.s, y.s) {
		return ForeignRelease
	}
	return p.generalCause(x.s, y.s)
}

// generalCause names what may have made everybody lose what was granted by one
// moment, for another to find it gone at a later one.
func (p *part) generalCause(granted, gone int64) string {
	for _, s := range p.general {
		if granted <= s.To && gone > s.From {
			return s.Cause
		}
	}
	return NoKnownCause
}

// outlivedFrom is when a's lease was over, if the server counted it from the
// last answer that confirmed it; 0 if it is not known. (It may have begun with
// the request, which for a long wait was long before.)
func (p *part) outlivedFrom(a *attempt) int64 {
	return p.leaseFrom(a, func(c *call) int64 { return c.Return })
}

// causeOfBreach names the cause of a breach that calls prove, the first of them
// a grant.
func (p *part) causeOfBreach(calls []int32) string {
	first, last := &p.calls[calls[0]], &p.calls[calls[len(calls)-1]]
	for _, i := range calls {
		if s, ok := p.suspects[p.ids[p.calls[i].attempt]]; ok && returned(last) > s.From {
			return s.Cause
		}
	}
	if last.attempt == first.attempt && p.foreignOf(p.ids[first.attempt], first.Return, last.Invoke) {
		return ForeignRelease
	}
	return p.generalCause(first.Return, returned(last))
}

// foreignOf is foreign for an attempt by its id.
func (p *part) foreignOf(id history.Attempt, from, to int64) bool {
	at := slices.IndexFunc(p.attempts, func(a attempt) bool { return p.id(&a) == id })
	return at >= 0 && p.foreign(int32(at), int32(at), from, to)
}

// causeOfWrite names why an attempt wrote when it should not have: "" if nothing
// is known.
func (p *part) causeOfWrite(w *history.Call) string {
	if s, ok := p.suspects[w.Attempt]; ok && w.Return > s.From {
		return s.Cause
	}
	return p.blamed[w.Attempt]
}
