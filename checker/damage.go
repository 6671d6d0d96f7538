package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// cell is one key of one guarded register.
type cell struct {
	used     bool
	fenced   bool
	writes   []*history.Call // writes that clients know to be accepted
	accepted []*history.Call // these writes, and the accepted reads
	unsure   int64
	stale    []*history.Call
	rejected int64
	final    *history.Call
}

// damaged judges the registers. Each accepted write stores the read value + 1, so
// the final value is the number of writes that were not lost.
func (p *part) damaged() {
	for _, c := range p.cellsOf() {
		reg := Register{Fenced: c.fenced, Known: true}
		p.account(c, &reg)
		p.rep.Registers = append(p.rep.Registers, reg)
	}
}

// account fills in the counts of one register.
func (p *part) account(c *cell, reg *Register) {
	reg.Acknowledged, reg.Uncertain = int64(len(c.writes)), c.unsure
	reg.StaleWrites, reg.Rejected = int64(len(c.stale)), c.rejected
	p.staleWrites(c)
	if c.final == nil {
		reg.Known = len(c.writes) == 0 && c.unsure == 0
		return
	}
	final := c.final
	acked, accepted := uint64(len(c.writes)), final.Arg
	reg.Accepted, reg.Final = int64(accepted), int64(final.Value)
	where := fmt.Sprintf("key %d", p.key)
	switch {
	case acked > accepted:
		reg.Contradiction = fmt.Sprintf("%s: clients know of %d accepted writes, the register counted %d", where, acked, accepted)
	case final.Value > accepted:
		reg.Contradiction = fmt.Sprintf("%s: its value is %d after %d accepted writes that add one each", where, final.Value, accepted)
	case p.damage == 0 && accepted > acked+uint64(c.unsure):
		reg.Contradiction = fmt.Sprintf("%s: the register counted %d writes, clients sent %d", where, accepted, acked+uint64(c.unsure))
	}
	if accepted > final.Value {
		reg.LostUpdates = int64(accepted - final.Value)
		p.lostUpdates(c, reg.LostUpdates)
	}
}

// add adds another key's counts to r.
func (r *Register) add(x Register) {
	r.Accepted += x.Accepted
	r.Acknowledged += x.Acknowledged
	r.Uncertain += x.Uncertain
	r.Final += x.Final
	r.LostUpdates += x.LostUpdates
	r.StaleWrites += x.StaleWrites
	r.Rejected += x.Rejected
	r.Known = r.Known && x.Known
	if r.Contradiction == "" {
		r.Contradiction = x.Contradiction
	}
}

// cellsOf collects the register calls, the unfenced register first.
func (p *part) cellsOf() []*cell {
	var cells []*cell
	for _, fenced := range []bool{false, true} {
		c := &cell{fenced: fenced}
		for i := range p.guarded {
			if call := &p.guarded[i]; (call.Flags&history.FlagFenced != 0) == fenced {
				c.add(call)
				c.used = true
			}
		}
		if !c.used {
			continue
		}
		cells = append(cells, c)
		for _, list := range [][]*history.Call{c.writes, c.accepted, c.stale} {
			slices.SortFunc(list, inTime)
		}
	}
	return cells
}

func (c *cell) add(call *history.Call) {
	if call.Kind == history.KindFinal {
		if c.final == nil || c.final.Seq < call.Seq || c.final.Seq == call.Seq && inTime(call, c.final) < 0 {
			c.final = call
		}
		return
	}
	switch call.Outcome {
	case history.Accepted:
		c.accepted = append(c.accepted, call)
		if call.Kind == history.KindWrite {
			c.writes = append(c.writes, call)
			if call.Flags&history.FlagStale != 0 {
				c.stale = append(c.stale, call)
			}
		}
	case history.Rejected:
		c.rejected++
	case history.Failed:
	default:
		if call.Kind == history.KindWrite {
			c.unsure++
		}
	}
}

func (p *part) staleWrites(c *cell) {
	for _, w := range c.stale {
		cause := cmp.Or(p.causeOfWrite(w), NoKnownCause)
		p.causes[cause]++
		if p.full(StaleWrite) {
			continue
		}
		found := Witness{Class: StaleWrite, Key: p.key, From: w.Invoke, To: w.Return, Cause: cause}
		if above, ok := findTokenAbove(c.accepted, w); ok {
			found.Calls = append(found.Calls, above)
		}
		found.Calls = append(found.Calls, *w)
		p.keep(found)
	}
}

// lostUpdates assigns the loss to the cause of a write without the lock, unless
// an overlap of the key is unexplained. Its witness has two writes of one value,
// of which one must be lost.
func (p *part) lostUpdates(c *cell, lost int64) {
	cause := NoKnownCause
	if !p.unexplained {
		for _, w := range c.writes {
			cause = cmp.Or(p.causeOfWrite(w), cause)
		}
	}
	p.causes[cause] += lost
	if p.full(LostUpdate) {
		return
	}
	final := *c.final
	w := Witness{Class: LostUpdate, Key: p.key, Count: lost, Cause: cause, From: final.Invoke, To: final.Invoke}
	byValue := slices.Clone(c.writes)
	slices.SortStableFunc(byValue, func(a, b *history.Call) int { return cmp.Compare(a.Arg, b.Arg) })
	for k := 1; k < len(byValue); k++ {
		x, y := byValue[k-1], byValue[k]
		if x.Arg == y.Arg {
			w.Calls = append(w.Calls, *x, *y)
			w.From, w.To = x.Invoke, y.Return
			break
		}
	}
	w.Calls = append(w.Calls, final)
	p.keep(w)
}
