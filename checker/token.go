package checker

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// tokens judges the fencing tokens: a grant that returned before another was
// requested, or before that other's hold certainly lasted, has the smaller token,
// and no two grants have the same. A grant counts once, however many it
// contradicts. If the grants exclude one another (fit), the order of the tokens is
// the order of the holds: the grant with the smaller token must be able to end
// before the other begins.
//
// Stamps are widened by their clocks' uncertainty, also within a process; what
// that hides is shorter than any request.
func (p *part) tokens(fit bool) {
	if !p.opt.Fencing {
		return
	}
	type grant struct {
		call     int32
		from, to int64
		token    uint64
		wrong    bool
	}
	var grants []grant
	for i := range p.attempts {
		a := &p.attempts[i]
		if !a.held(p.calls) || a.shared {
			continue // a reader has nothing to fence
		}
		c := &p.calls[a.acquire]
		if c.Fence == 0 {
			if p.rep.NoToken++; !p.opt.TokensMissing {
				p.breach(MissingToken, a.acquire)
			}
			continue
		}
		u, from := p.uncertainty(p.client(a)), c.Invoke
		if x, _, ok := p.proof(int32(i)); ok && fit {
			from = max(from, x.e)
		}
		grants = append(grants, grant{call: a.acquire, from: from - u, to: c.Return + u, token: c.Fence})
	}
	report := func(earlier, later int32) {
		p.rep.TokenRegressions++
		p.breach(TokenRegression, earlier, later)
	}

	// In order of request, against the highest token of the grants that had
	// returned by then.
	slices.SortFunc(grants, func(a, b grant) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.token, b.token), cmp.Compare(p.calls[a.call].Client, p.calls[b.call].Client))
	})
	byReturn := make([]int32, len(grants))
	for i := range byReturn {
		byReturn[i] = int32(i)
	}
	slices.SortFunc(byReturn, func(a, b int32) int { return cmp.Compare(grants[a].to, grants[b].to) })
	next, highest, second := 0, none, none // of those that had returned
	for i := range grants {
		g := &grants[i]
		for next < len(byReturn) && grants[byReturn[next]].to < g.from {
			switch k := byReturn[next]; {
			case highest == none || grants[k].token > grants[highest].token:
				highest, second = k, highest
			case second == none || grants[k].token > grants[second].token:
				second = k
			}
			next++
		}
		above := highest
		if above == int32(i) {
			above = second
		}
		if above != none && grants[above].token >= g.token {
			g.wrong = true
			report(grants[above].call, g.call)
		}
	}
	// Equal tokens, each except the first.
	slices.SortStableFunc(grants, func(a, b grant) int { return cmp.Compare(a.token, b.token) })
	for i := 1; i < len(grants); i++ {
		if grants[i].token == grants[i-1].token && !grants[i].wrong {
			report(grants[i-1].call, grants[i].call)
		}
	}
}

// contended counts the grants during which another client's acquire or hold of
// the key was open.
func (p *part) contended() {
	// Every attempt is a use of the lock, from its acquire's invoke on.
	uses := make([]timed, len(p.attempts)+len(p.alone))
	for i := range uses {
		uses[i] = timed{p.calls[p.acquire(int32(i))].Invoke, int32(i)}
	}
	sortTimed(uses, func(a, b int32) int { return p.inTime(p.acquire(a), p.acquire(b)) })
	// The two latest ends of different clients, among the uses so far.
	type end struct {
		at     int64
		client uint32
	}
	one, two := end{at: -forever}, end{at: -forever}
	latest := func(x end) {
		switch {
		case x.client == one.client:
			one.at = max(one.at, x.at)
		case x.at > one.at:
			one, two = x, one
		case x.at > two.at:
			two = x
		}
	}
	next := 0 // the first use after a grant of another client than the grant's
	for i, use := range uses {
		c := &p.calls[p.acquire(use.number)]
		until := p.ended(c)
		if a := p.grantOfNumber(use.number); a != nil {
			until = p.hold(a).End
			other := one
			if one.client == c.Client {
				other = two
			}
			open := other.client != c.Client && other.at >= c.Invoke
			// Uses that begin while this acquire is open.
			for next = max(next, i+1); next < len(uses); next++ {
				if p.calls[p.acquire(uses[next].number)].Client != c.Client {
					open = open || uses[next].at <= c.Return
					break
				}
			}
			if !a.also {
				p.rep.Grants++
			}
			if !a.also && open {
				p.rep.ContendedGrants++
			}
		}
		latest(end{until, c.Client})
	}
}

// grantOfNumber returns the attempt of a number if it got the lock, or nil.
func (p *part) grantOfNumber(number int32) *attempt {
	if int(number) >= len(p.attempts) || !p.attempts[number].granted(p.calls) {
		return nil
	}
	return &p.attempts[number]
}

// findTokenAbove finds the first accepted register call before w's return with a
// greater token.
func findTokenAbove(accepted []*history.Call, w *history.Call) (history.Call, bool) {
	var best *history.Call
	for _, c := range accepted {
		if c.Fence > w.Fence && c.Invoke < w.Return && (best == nil || c.Invoke < best.Invoke) {
			best = c
		}
	}
	if best == nil {
		return history.Call{}, false
	}
	return *best, true
}
