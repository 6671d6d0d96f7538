package checker

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// ForeignRelease is the cause of a violation in which another attempt's release
// freed the holder's lock: such a lock does not check the owner.
const ForeignRelease = "a foreign release freed the holder's lock"

// release is a release or clean-up that may have freed the lock.
type release struct {
	from, to int64
	reach    int64 // the latest end of this release and the earlier ones
	attempt  int32 // its number
	granted  int64 // when that attempt was granted the lock; 0: at any time
}

// releases lists the calls that may have freed another attempt's lock, by when
// they were sent. If the lock checks the owner, that can only be a release of an
// attempt that held the lock before and does not know of its loss; such a release
// is taken to act when it is sent. If the lock does not check the owner, it can
// be every confirmed or unknown release, at any moment until its return.
func (p *part) releases() []release {
	list := []release{}
	if p.opt.Reentrant {
		return list // it may release an inner hold
	}
	if p.opt.ReleaseIgnoresOwner {
		for i := range p.calls {
			c := &p.calls[i]
			if (c.Kind == history.KindRelease || c.Kind == history.KindCleanup) && c.Outcome != history.Lost && c.Outcome != history.Failed {
				end := returned(c)
				if c.Outcome == history.Unknown {
					end = forever // it may still arrive
				}
				list = append(list, release{from: c.Invoke, to: end, attempt: c.attempt})
			}
		}
	} else {
		for i := range p.attempts {
			if a := &p.attempts[i]; a.over != none && !a.shared {
				c := &p.calls[a.over]
				list = append(list, release{from: c.Invoke, to: c.Invoke, attempt: c.attempt, granted: p.calls[a.acquire].Return})
			}
		}
	}
	slices.SortFunc(list, func(a, b release) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.attempt, b.attempt))
	})
	reach := int64(0)
	for i := range list {
		reach = max(reach, list[i].to)
		list[i].reach = reach
	}
	return list
}

// maxForeign bounds the releases that are examined for one violation.
const maxForeign = 64

// foreign reports whether a third attempt's release may have freed the lock
// between from, when x held it, and to, when y was granted it.
func (p *part) foreign(x, y int32, from, to int64) bool {
	if p.releaseList == nil { // few histories need it, and it may be large
		p.releaseList = p.releases()
	}
	own := [2]int32{p.number(x), p.number(y)}
	end, _ := slices.BinarySearchFunc(p.releaseList, to, func(r release, at int64) int { return cmp.Compare(r.from, at) })
	for i := end - 1; i >= max(0, end-maxForeign) && p.releaseList[i].reach > from; i-- {
		r := &p.releaseList[i]
		if r.to > from && r.granted < from && !slices.Contains(own[:], r.attempt) {
			return true
		}
	}
	return false
}

func (p *part) number(at int32) int32 { return p.calls[p.attempts[at].acquire].attempt }

// explainOverlaps counts the causes of the n certain overlaps of a group.
func (p *part) explainOverlaps(group []span, n int64) {
	if n > maxClassified {
		p.explainMany(group, n)
		return
	}
	group = slices.Clone(group)
	sortSpans(group, observed)
	meeting(group, func(y, x span) bool {
		if clash(x, y) {
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

// explainMany does the same without examining each pair: it separates only the
// holders that outlived their lease.
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

// causeOf names the cause of the overlap of x and y. It looks first for a suspect
// of either attempt, then at the lock's answers, then for a suspect of all clients.
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

// generalCause names the event that may have ended all locks granted by one
// moment before a later one.
func (p *part) generalCause(granted, gone int64) string {
	for _, s := range p.general {
		if granted <= s.To && gone > s.From {
			return s.Cause
		}
	}
	return NoKnownCause
}

// outlivedFrom is when a's lease ended: as its client recorded it, or if the
// server counted it from the last confirming answer; 0 if unknown. (It may have
// begun with the request, which after a long wait is much earlier.)
func (p *part) outlivedFrom(a *attempt) int64 {
	until := p.leaseFrom(a, func(c *call) int64 { return c.Return })
	if until != 0 && a.leaseEnd > 0 && !p.opt.Reentrant { // an inner hold has its own end
		until = min(until, a.leaseEnd)
	}
	return until
}

// causeOfBreach names the cause of a breach that calls prove; the first call is a
// grant.
func (p *part) causeOfBreach(calls []int32) string {
	first, last := &p.calls[calls[0]], &p.calls[calls[len(calls)-1]]
	for _, i := range calls {
		if s, ok := p.suspects[*p.ids.at(p.calls[i].attempt)]; ok && returned(last) > s.From {
			return s.Cause
		}
	}
	if last.attempt == first.attempt && p.foreignOf(*p.ids.at(first.attempt), first.Return, last.Invoke) {
		return ForeignRelease
	}
	return p.generalCause(first.Return, returned(last))
}

// foreignOf is foreign for an attempt given by its id.
func (p *part) foreignOf(id history.Attempt, from, to int64) bool {
	at := slices.IndexFunc(p.attempts, func(a attempt) bool { return p.id(&a) == id })
	return at >= 0 && p.foreign(int32(at), int32(at), from, to)
}

// causeOfWrite names the cause of a write without the lock; "" if unknown.
func (p *part) causeOfWrite(w *history.Call) string {
	if s, ok := p.suspects[w.Attempt]; ok && w.Return > s.From {
		return s.Cause
	}
	if cause := p.blamed[w.Attempt]; cause != "" {
		return cause
	}
	for _, s := range p.general {
		if w.Return > s.From {
			return s.Cause
		}
	}
	return ""
}
