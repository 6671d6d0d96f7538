package checker

import (
	"bytes"

	"github.com/lockbench/lockbench/history"
)

// watchedKey is one key's attempts that still matter, and what was found.
type watchedKey struct {
	number         uint32
	attempts       []*watchedAttempt // in the order in which they were met
	newest         int64             // the last stamp that was met
	judged         int64             // refused tries that had returned by then were judged
	stirred        bool              // something came since
	free           int64             // all holds that were forgotten had ended by then
	unfit          bool              // grants contradicted one another: what orders they had is not known any more
	blind          bool              // so much is unknown that refused tries are not judged
	countUncertain bool              // and of a re-entrant lock how often a client holds
	sharing        bool              // there were readers
	top            *watchedAttempt   // the grant with the highest token
	told           []telling
}

// finding tells violations apart.
type finding struct {
	family Class // the class, or the one that stands for it
	a, b   history.Attempt
	token  uint64 // that was not greater: which of several equal ones is wrong is not plain
	to     int64  // of a stuck key, up to when it was told to be
}

// telling is a finding that was told, as being of a class.
type telling struct {
	finding
	class Class
}

// look judges a key.
func (w *Watch) look(k *watchedKey) []Witness {
	g := w.judge.gather(k.number, 2*len(k.attempts))
	w.show(k, g)
	p := g.fold()
	p.unfinished, p.unfit = true, k.unfit
	p.sharing = p.sharing || k.sharing
	k.sharing = p.sharing
	holds, held := p.holds()
	p.overlaps(holds)
	p.breaches()
	p.stuck(append(held, w.heldByDead(k, p)...))

	contradict := p.rep.Breaches[DoubleHold]+p.rep.Breaches[EarlyExpiry]+p.rep.Breaches[ZombieSuccess] > 0
	if contradict {
		// Why a try was refused is not plain any more.
		delete(p.kept, UnexplainedBusy)
	}
	if k.countUncertain {
		delete(p.kept, LostLock)
	}
	var found []Witness
	if len(p.kept) > 0 {
		s := p.show()
		w.show(k, s)
		s.Done()
		for _, class := range classes {
			for _, x := range p.kept[class] {
				if k.isNew(x, w.opt.maxWitnesses()) {
					found = append(found, x)
				}
			}
		}
	}
	k.unfit = k.unfit || contradict
	w.forget(k, p)
	k.stirred = false
	return found
}

// show lets v see a key's calls as they were now. Tries that were judged are not
// shown again: whoever explained them may be forgotten.
func (w *Watch) show(k *watchedKey, v history.KeyVisitor) {
	for _, a := range k.attempts {
		if a.refused(k.judged) || (k.unfit || k.blind) && a.refused(w.now.tries) {
			continue
		}
		for i := range a.calls {
			if a.calls[i].Invoke > w.now.through {
				continue
			}
			c := &w.scratch
			*c = a.calls[i]
			if c.Return > w.now.through || c.Outcome == history.Busy && c.Return > w.now.tries {
				c.Outcome, c.Return = history.Open, 0
			}
			v.Visit(c)
		}
	}
}

// refused: it is a try that was refused by then, and nothing belies that.
func (a *watchedAttempt) refused(by int64) bool { return a.busy != 0 && a.busy <= by && !a.proved }

// heldByDead is when the key was not free, as far as p does not know: holds that
// were forgotten, and those of clients that died some time after their last
// record.
func (w *Watch) heldByDead(k *watchedKey, p *part) []stretch {
	held := []stretch{{-forever, k.free}}
	for i := range p.attempts {
		a := &p.attempts[i]
		if cl := w.clients[a.client]; cl.dead && a.held(p.calls) {
			if h := p.hold(a); h.Ended == StreamEnd {
				held = append(held, stretch{h.Start, cl.died})
			}
		}
	}
	return held
}

// isNew reports whether x is to be told: whether it was not, and no more of its
// class than most were.
func (k *watchedKey) isNew(x Witness, most int) bool {
	f, n := x.finding(), 0
	for i := range k.told {
		switch old := &k.told[i]; {
		case x.Class == StuckKey && old.class == StuckKey && x.From <= old.to:
			old.to = f.to // it goes on
			return false
		case x.Class != StuckKey && old.finding == f:
			return false
		case old.class == x.Class:
			n++
		}
	}
	if n >= most {
		return false
	}
	k.told = append(k.told, telling{f, x.Class})
	return true
}

// finding tells x apart, also from what is known of it when it may have another
// class.
func (w Witness) finding() finding {
	f := finding{family: w.Class}
	f.a = w.Calls[0].Attempt
	switch w.Class {
	case EarlyExpiry, ZombieSuccess, LostLock:
		f.family = DoubleHold
		fallthrough
	case Overlap, DoubleHold:
		f.b = w.Calls[1].Attempt
		if bytes.Compare(f.a[:], f.b[:]) > 0 {
			f.a, f.b = f.b, f.a
		}
	case TokenRegression:
		f.a, f.token = history.Attempt{}, w.Calls[len(w.Calls)-1].Fence
	case StuckKey:
		f.a, f.to = history.Attempt{}, w.To
	}
	return f
}
