package checker

import (
	"slices"

	"github.com/lockbench/lockbench/history"
)

// A register shows lost updates before its last value is read. Each accepted
// write stores a read value + 1, so a value is reached only through all smaller
// ones. A write of a value that was reached before, by a write that had
// returned or by another write of the same value, therefore adds nothing: the
// last value is less than the number of accepted writes.

// registerOf identifies one key of a register.
type registerOf struct {
	key    uint32
	fenced bool
}

// watchedRegister is the recent accepted calls of a register.
type watchedRegister struct {
	fresh    []*history.Call // not judged yet
	recent   []*history.Call // the newest judged calls, by their invoke
	top      *history.Call   // the write of the highest value
	reported map[Class]int
}

// maxRecent bounds the remembered calls on a register; writes that lose one
// another are close together.
const maxRecent = 64

// register adds a call that a register accepted.
func (w *Watch) register(c *history.Call) {
	of := registerOf{c.Key, c.Flags&history.FlagFenced != 0}
	r := w.registers[of]
	if r == nil {
		r = &watchedRegister{reported: map[Class]int{}}
		w.registers[of] = r
	}
	call := *c
	r.fresh = append(r.fresh, &call)
}

// account judges the new accepted calls.
func (w *Watch) account() []Witness {
	var found []Witness
	for _, r := range w.registers {
		if len(r.fresh) == 0 {
			continue
		}
		slices.SortFunc(r.fresh, inTime)
		n := 0
		for ; n < len(r.fresh) && r.fresh[n].Invoke <= w.now.through; n++ {
			for _, x := range r.take(r.fresh[n]) {
				if r.reported[x.Class] < w.opt.maxWitnesses() {
					r.reported[x.Class]++
					found = append(found, x)
				}
			}
		}
		r.fresh = slices.Delete(r.fresh, 0, n)
	}
	slices.SortFunc(found, func(a, b Witness) int { return inTime(&a.Calls[len(a.Calls)-1], &b.Calls[len(b.Calls)-1]) })
	return found
}

// take judges the next accepted call.
func (r *watchedRegister) take(c *history.Call) (found []Witness) {
	if c.Kind == history.KindWrite {
		if c.Flags&history.FlagStale != 0 {
			x := Witness{Class: StaleWrite, Key: c.Key, From: c.Invoke, To: c.Return}
			if above, ok := findTokenAbove(r.recent, c); ok {
				x.Calls = append(x.Calls, above)
			}
			x.Calls = append(x.Calls, *c)
			found = append(found, x)
		}
		if before := r.reached(c); before != nil {
			found = append(found, Witness{Class: LostUpdate, Key: c.Key, Count: 1, Calls: []history.Call{*before, *c}, From: before.Invoke, To: c.Return})
		}
		if r.top == nil || c.Arg > r.top.Arg {
			r.top = c
		}
	}
	r.recent = append(r.recent, c)
	if len(r.recent) > maxRecent {
		r.recent = slices.Delete(r.recent, 0, maxRecent/2)
	}
	return found
}

// reached returns another write that reached c's value before, or nil.
func (r *watchedRegister) reached(c *history.Call) *history.Call {
	for _, x := range r.recent {
		if x.Kind == history.KindWrite && x.Arg == c.Arg {
			return x
		}
	}
	if r.top != nil && r.top.Return < c.Invoke && c.Arg <= r.top.Arg {
		return r.top
	}
	return nil
}
