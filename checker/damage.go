package checker

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// cell is one key of one guarded register.
type cell struct {
	key      uint32
	fenced   bool
	writes   []int32 // writes that clients know to be accepted
	accepted []int32 // those and the reads
	unsure   int64
	stale    []int32
	rejected int64
	final    int32
}

// damage judges the registers: each accepted write put one more than it had
// read, so the last value tells how many of the writes still count.
func (j *judgement) damage() {
	for _, c := range j.cells() {
		reg := j.register(c.fenced)
		reg.Acknowledged += int64(len(c.writes))
		reg.Uncertain += c.unsure
		reg.StaleWrites += int64(len(c.stale))
		reg.Rejected += c.rejected
		j.staleWrites(c)
		if c.final == none {
			if len(c.writes) > 0 || c.unsure > 0 {
				reg.Known = false
			}
			continue
		}
		final := &j.calls[c.final]
		acked, accepted := uint64(len(c.writes)), final.Arg
		reg.Accepted += int64(accepted)
		reg.Final += int64(final.Value)
		where := fmt.Sprintf("key %d", c.key)
		switch {
		case acked > accepted:
			reg.Contradiction = fmt.Sprintf("%s: clients know of %d accepted writes, the register counted %d", where, acked, accepted)
		case final.Value > accepted:
			reg.Contradiction = fmt.Sprintf("%s: it shows %d after %d accepted writes of one more each", where, final.Value, accepted)
		case !j.damaged && accepted > acked+uint64(c.unsure):
			reg.Contradiction = fmt.Sprintf("%s: the register counted %d writes, clients sent %d", where, accepted, acked+uint64(c.unsure))
		}
		if accepted > final.Value {
			lost := int64(accepted - final.Value)
			reg.LostUpdates += lost
			j.lostUpdates(c, lost)
		}
	}
}

// register returns the account to add to; the plain one comes first.
func (j *judgement) register(fenced bool) *Register {
	for i := range j.rep.Registers {
		if j.rep.Registers[i].Fenced == fenced {
			return &j.rep.Registers[i]
		}
	}
	j.rep.Registers = append(j.rep.Registers, Register{Fenced: fenced, Known: true})
	return &j.rep.Registers[len(j.rep.Registers)-1]
}

// cells gathers the register calls by (register, key).
func (j *judgement) cells() []*cell {
	type place struct {
		key    uint32
		fenced bool
	}
	index := map[place]*cell{}
	var cells []*cell
	for i := range j.calls {
		call := &j.calls[i]
		switch call.Kind {
		case history.KindRead, history.KindWrite, history.KindFinal:
		default:
			continue
		}
		at := place{call.Key, call.Flags&history.FlagFenced != 0}
		c := index[at]
		if c == nil {
			c = &cell{key: at.key, fenced: at.fenced, final: none}
			index[at] = c
			cells = append(cells, c)
		}
		c.add(j.calls, int32(i))
	}
	slices.SortFunc(cells, func(a, b *cell) int {
		return cmp.Or(boolCompare(a.fenced, b.fenced), cmp.Compare(a.key, b.key))
	})
	for _, c := range cells {
		for _, list := range [][]int32{c.writes, c.accepted, c.stale} {
			slices.SortFunc(list, func(a, b int32) int {
				x, y := &j.calls[a], &j.calls[b]
				return cmp.Or(cmp.Compare(x.Invoke, y.Invoke), cmp.Compare(x.Client, y.Client), cmp.Compare(x.Seq, y.Seq))
			})
		}
	}
	return cells
}

func (c *cell) add(calls []history.Call, i int32) {
	call := &calls[i]
	if call.Kind == history.KindFinal {
		if c.final == none || calls[c.final].Seq < call.Seq {
			c.final = i
		}
		return
	}
	switch call.Outcome {
	case history.Accepted:
		c.accepted = append(c.accepted, i)
		if call.Kind == history.KindWrite {
			c.writes = append(c.writes, i)
			if call.Flags&history.FlagStale != 0 {
				c.stale = append(c.stale, i)
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

func (j *judgement) staleWrites(c *cell) {
	for _, i := range c.stale {
		w := &j.calls[i]
		cause := NoKnownCause
		if s, ok := j.suspects[w.Attempt]; ok && w.Return > s.From {
			cause = s.Cause
		}
		j.causes[cause]++
		if j.full(StaleWrite) {
			continue
		}
		found := Witness{Class: StaleWrite, Key: c.key, From: w.Invoke, To: w.Return, Cause: cause}
		if above, ok := findTokenAbove(j.calls, c.accepted, w); ok {
			found.Calls = append(found.Calls, above)
		}
		found.Calls = append(found.Calls, *w)
		j.keep(found)
	}
}

// lostUpdates lays the loss to a suspect if that attempt wrote after it came
// under suspicion and no overlap of the key is unexplained; and shows two
// writes of one value, of which one must be lost.
func (j *judgement) lostUpdates(c *cell, lost int64) {
	cause := NoKnownCause
	if !j.unexplained[c.key] {
		for _, i := range c.writes {
			w := &j.calls[i]
			if s, ok := j.suspects[w.Attempt]; ok && w.Return > s.From {
				cause = s.Cause
			}
		}
	}
	j.causes[cause] += lost
	if j.full(LostUpdate) {
		return
	}
	final := j.calls[c.final]
	w := Witness{Class: LostUpdate, Key: c.key, Count: lost, Cause: cause, From: final.Invoke, To: final.Invoke}
	byValue := slices.Clone(c.writes)
	slices.SortStableFunc(byValue, func(a, b int32) int { return cmp.Compare(j.calls[a].Arg, j.calls[b].Arg) })
	for k := 1; k < len(byValue); k++ {
		x, y := &j.calls[byValue[k-1]], &j.calls[byValue[k]]
		if x.Arg == y.Arg {
			w.Calls = append(w.Calls, *x, *y)
			w.From, w.To = x.Invoke, y.Return
			break
		}
	}
	w.Calls = append(w.Calls, final)
	j.keep(w)
}
