package checker

import (
	"bytes"

	"github.com/lockbench/lockbench/history"
)

// watchedKey is a key with the attempts that still matter and the reported
// violations.
type watchedKey struct {
	number         uint32
	attempts       []*watchedAttempt // in order of arrival
	newest         int64             // the newest stamp
	judged         int64             // busy tries that had returned by then were judged
	changed        bool              // there are new calls since
	free           int64             // all dropped holds had ended by then
	unfit          bool              // grants contradicted one another, so their order is not known any more
	blind          bool              // too much is unknown to judge busy tries
	countUncertain bool              // and for a re-entrant lock how often a client holds
	sharing        bool              // there were readers
	top            *watchedAttempt   // the grant with the highest token
	reported       []reportedFinding
}

// finding identifies a violation.
type finding struct {
	family Class // the class, or the one that represents it
	a, b   history.Attempt
	token  uint64 // the token that was not greater; which of several equal ones is wrong is not certain
	to     int64  // for a stuck key, the end of the reported period
}

// reportedFinding is a finding with the class it was reported as.
type reportedFinding struct {
	finding
	class Class
}

// judgeKey judges a key.
func (w *Watch) judgeKey(k *watchedKey) []Witness {
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
		// Why a try was busy is not certain any more.
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
	k.changed = false
	return found
}

// show passes v the calls of a key as of now. It leaves out judged tries, since
// the attempts that explained them may have been dropped.
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

// refused reports whether it is a try that was busy by then, and no answer
// contradicts that.
func (a *watchedAttempt) refused(by int64) bool { return a.busy != 0 && a.busy <= by && !a.proved }

// heldByDead is when the key was not free, as far as p does not know: dropped
// holds, and those of clients that died some time after their last record.
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

// isNew reports whether to report x: it was not reported before, and the limit
// of its class is not reached.
func (k *watchedKey) isNew(x Witness, most int) bool {
	f, n := x.finding(), 0
	for i := range k.reported {
		switch old := &k.reported[i]; {
		case x.Class == StuckKey && old.class == StuckKey && x.From <= old.to:
			old.to = f.to // it continues
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
	k.reported = append(k.reported, reportedFinding{f, x.Class})
	return true
}

// finding identifies x, also if it gets another class after later answers.
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
