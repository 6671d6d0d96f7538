package checker

import "time"

// answerMargin is how late an answer may be without being the lock's fault: the
// client stamps it a moment after the lock gave it.
const answerMargin = 200 * time.Millisecond

// late judges when an acquire was answered: a grant must come before its lease
// is over, and the answer soon after the limit that the client set. The time in which the
// client could not run does not count: it may have stopped between the lock's answer
// and its stamp.
func (p *part) late(a *attempt) {
	c := &p.calls[a.acquire]
	if a.inner || returned(c) == forever {
		return
	}
	if !p.opt.LeaseEndsDoubtful && a.held(p.calls) && a.grantEnd > 0 && p.awake(c, a.grantEnd) > int64(answerMargin) {
		p.breach(LateGrant, a.acquire)
	}
	if limit := int64(p.opt.AcquireLimit); limit > 0 && p.awake(c, c.Invoke+limit) > int64(answerMargin) {
		p.breach(LateAnswer, a.acquire)
	}
}

// awake is how long the client of c was undisturbed between a moment and c's return.
func (p *part) awake(c *call, from int64) (sum int64) {
	for _, x := range p.undisturbed(c.Client, max(from, c.Invoke), c.Return) {
		sum += x.to - x.from
	}
	return sum
}
