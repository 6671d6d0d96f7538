package checker

import "slices"

// pass passes the lock from w's holder to x at the moment now, and adds the
// ways that follow.
func (f *frontier) pass(w way, x *item, t turn, now int64) bool {
	if w.until > now {
		return true // x would take it from its holder
	}
	if t.firm {
		w.next++
	}
	var may []int // slots of the items that may come first
	for _, o := range f.open {
		y := &f.loose[o.i]
		switch {
		case !t.firm && o.i == t.i:
			w.done.add(o.slot)
		case y.optional || w.done.has(o.slot):
		case y.ar < x.rc:
			if y.rc > now {
				return true
			}
			w.done.add(o.slot)
		case y.rc <= now && y.rr < x.rr:
			may = append(may, o.slot)
		}
	}
	w.until, w.reach = max(x.rc, now), max(x.rr, now)
	return f.branch(w, may)
}

// branch adds w with each choice of the items that may have come before.
func (f *frontier) branch(w way, may []int) bool {
	if len(may) == 0 {
		return f.keep(w)
	}
	first := w
	first.done.add(may[0])
	return f.branch(w, may[1:]) && f.branch(first, may[1:])
}

// keep adds w to the next ways, unless one of them is as good.
func (f *frontier) keep(w way) bool {
	f.effort += len(f.next)
	for i := 0; i < len(f.next); i++ {
		x := &f.next[i]
		if x.next != w.next || x.done != w.done {
			continue
		}
		if x.until <= w.until && x.reach >= w.reach && x.used <= w.used {
			return true
		}
		if w.until <= x.until && w.reach >= x.reach && w.used <= x.used {
			f.next[i] = f.next[len(f.next)-1]
			f.next = f.next[:len(f.next)-1]
			i--
		}
	}
	f.next = append(f.next, w)
	return len(f.next) <= maxWays && f.effort <= maxEffort
}

// explain keeps the ways on which some item had the lock during r, and makes
// an item take it on the others, where possible. If no way is left it
// keeps all as they were, and returns that r is not explained. ok is false if
// there are too many ways.
func (f *frontier) explain(r refusal) (explained, ok bool) {
	covered := func(w way) bool { return w.reach >= r.from }
	if !slices.ContainsFunc(f.ways, func(w way) bool { return !covered(w) }) {
		return true, true
	}
	if !f.advance(r.to) {
		return false, false
	}
	f.next = f.next[:0]
	for _, w := range f.ways {
		if covered(w) {
			ok = f.keep(w)
		} else {
			ok = f.fill(w, r)
		}
		if !ok {
			return false, false
		}
	}
	if len(f.next) == 0 {
		return false, true
	}
	f.ways, f.next = f.next, f.ways
	return true, true
}

// fill adds the ways on which an item takes the lock after w, in time for r.
func (f *frontier) fill(w way, r refusal) bool {
	first, second := f.dueNext(&w)
	fits := func(x *item, t turn, now int64) bool {
		deadline := first
		if deadline.ok && deadline.turn == t {
			deadline = second
		}
		return w.until <= now && (!deadline.ok || x.rc <= deadline.ar)
	}
	if w.next < len(f.firm) {
		x, t := &f.firm[w.next], turn{true, w.next}
		if x.ac <= r.to && fits(x, t, r.to) && !f.pass(w, x, t, r.to) {
			return false
		}
	}
	for _, o := range f.open {
		x, t := &f.loose[o.i], turn{false, o.i}
		now := min(r.to, x.rr)
		if w.done.has(o.slot) || now < max(r.from, x.ac) || !fits(x, t, now) || f.beaten(&w, o, r.to) {
			continue
		}
		if !f.pass(w, x, t, now) {
			return false
		}
	}
	// Free ones have no turn of their own.
	none := turn{false, -1}
	if w.used < f.ready {
		x := item{rc: -forever, rr: forever}
		w := w
		w.used++
		if fits(&x, none, r.to) && !f.pass(w, &x, none, r.to) {
			return false
		}
	}
	if len(f.later) > 0 {
		x := item{rc: f.later[0], rr: forever}
		w := w
		w.used++
		if fits(&x, none, r.to) && !f.pass(w, &x, none, r.to) {
			return false
		}
	}
	return true
}

// beaten reports whether another loose item would serve as well as o does now,
// and be needed less later: one that is due earlier and may last just as long.
func (f *frontier) beaten(w *way, o opened, now int64) bool {
	x := &f.loose[o.i]
	if x.optional {
		return false
	}
	for _, other := range f.open {
		y := &f.loose[other.i]
		if other == o || y.optional || w.done.has(other.slot) || y.rr != x.rr || y.rc > max(x.rc, now) {
			continue
		}
		if y.ar < x.ar || y.ar == x.ar && other.i < o.i && y.rc <= now {
			return true
		}
	}
	return false
}

// deadline is when a certain item must have had its turn.
type deadline struct {
	turn turn
	ar   int64
	ok   bool
}

// dueNext finds the next two certain items that had no turn on w.
func (f *frontier) dueNext(w *way) (first, second deadline) {
	for _, t := range f.due[f.passed:] {
		if f.had(w, t) {
			continue
		}
		d := deadline{t, f.item(t).ar, true}
		if !first.ok {
			first = d
			continue
		}
		return first, d
	}
	return first, second
}
