package checker

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// In a log that names no attempts only the order of a client's calls shows which of
// them belong together. That holds as long as a client does one thing at a
// time and no line is missing: else a release may be taken for that of another
// acquire, and a sound lock would be accused. So where the calls of a client on a key
// contradict that order, none of its inferred attempts there proves anything.

// disordered lists the clients whose inferred calls contradict one another: they
// overlap in time or stand twice, or a call succeeds on an attempt that is over.
func (p *part) disordered() map[uint32]bool {
	var order []int32
	for i := range p.calls {
		if p.calls[i].Flags&history.FlagInferred != 0 {
			order = append(order, int32(i))
		}
	}
	slices.SortFunc(order, func(i, j int32) int {
		a, b := &p.calls[i], &p.calls[j]
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.Seq, b.Seq))
	})
	found := map[uint32]bool{}
	var o callOrder
	for k, i := range order {
		c := &p.calls[i]
		if k == 0 || c.Client != o.last.Client {
			o = callOrder{}
		}
		if !o.takes(c) {
			found[c.Client] = true
		}
	}
	return found
}

// callOrder is how far one client's calls on a key have come.
type callOrder struct {
	last    call
	until   int64 // the requests so far had returned; a renewal may run beside them
	attempt int32 // of the last acquire
	over    bool  // and nothing may succeed on it any more
}

// takes reports whether c can follow the calls before it.
func (o *callOrder) takes(c *call) bool {
	twice := *c
	twice.Seq, twice.attempt = o.last.Seq, o.last.attempt
	ok := c.Invoke >= o.last.Invoke && twice != o.last
	o.last = *c
	succeeded := c.Outcome == history.Released || c.Outcome == history.Extended
	switch c.Kind {
	case history.KindAcquire, history.KindTry:
		o.attempt, o.over = c.attempt, c.Outcome == history.Busy || c.Outcome == history.Failed
	case history.KindRelease, history.KindCleanup, history.KindExtend:
		if c.attempt == o.attempt {
			ok = ok && !(o.over && succeeded)
			o.over = o.over || c.Outcome == history.Released || c.Outcome == history.Lost
		}
	}
	if c.Kind != history.KindExtend && c.Kind != history.KindLost {
		ok = ok && c.Invoke >= o.until
		o.until = max(o.until, c.Invoke, c.Return)
	}
	return ok
}
