package checker

import (
	"slices"

	"github.com/lockbench/lockbench/history"
)

// What a register lost shows before its last value is read. Each accepted write
// put one more than a value that was read, so that a value is reached only by way
// of all those below it. A write of a value that had been reached already, by a
// write that had returned or by one of that same value, therefore adds nothing:
// whatever the last value is, it is less than the number of accepted writes.

// registerOf names one key of a register.
type registerOf struct {
	key    uint32
	fenced bool
}

// watchedRegister is what it accepted lately.
type watchedRegister struct {
	fresh  []*history.Call // not looked at yet
	recent []*history.Call // the last of those that were, by their invoke
	top    *history.Call   // the write of the highest value
	told   map[Class]int
}

// maxRecent bounds the calls on a register that are remembered; those that are
// lost for one another are close together.
const maxRecent = 64

// register takes note of a call that a register accepted.
func (w *Watch) register(c *history.Call) {
	of := registerOf{c.Key, c.Flags&history.FlagFenced != 0}
	r := w.registers[of]
	if r == nil {
		r = &watchedRegister{told: map[Class]int{}}
		w.registers[of] = r
	}
	call := *c
	r.fresh = append(r.fresh, &call)
}

// account looks at what the registers accepted.
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
				if r.told[x.Class] < w.opt.maxWitnesses() {
					r.told[x.Class]++
					found = append(found, x)
				}
			}
		}
		r.fresh = slices.Delete(r.fresh, 0, n)
	}
	slices.SortFunc(found, func(a, b Witness) int { return inTime(&a.Calls[len(a.Calls)-1], &b.Calls[len(b.Calls)-1]) })
	return found
}

// take looks at the next call that was accepted.
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

// reached is another write by which c's value had been reached, nil if none is
// known.
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
