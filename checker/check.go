package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench/history"
)

// Check judges h, whose calls may come in any order; it changes nothing in h.
// It may be called from several goroutines.
func Check(h *history.History, o Options) Report {
	j := &judgement{
		record:      newRecord(h, o),
		opt:         o,
		suspects:    map[history.Attempt]Suspect{},
		causes:      map[string]int64{},
		kept:        map[Class][]Witness{},
		unexplained: map[uint32]bool{},
		pauses:      map[uint32][]stretch{},
	}
	j.rep.Breaches = map[Class]int64{}
	for _, s := range o.Suspects {
		j.suspects[s.Attempt] = s
	}
	for _, p := range o.Paused {
		j.pauses[p.Client] = append(j.pauses[p.Client], stretch{p.From, p.To})
	}
	for c, p := range j.pauses {
		j.pauses[c] = union(p)
	}

	for first := int32(0); int(first) < len(j.attempts); {
		last := first + 1
		for int(last) < len(j.attempts) && j.attempts[last].key == j.attempts[first].key {
			last++
		}
		j.key(j.attempts[first].key, first, last)
		first = last
	}
	j.damage()

	for cause, n := range j.causes {
		j.rep.Causes = append(j.rep.Causes, Cause{cause, n})
	}
	slices.SortFunc(j.rep.Causes, func(a, b Cause) int { return cmp.Compare(a.Cause, b.Cause) })
	j.rep.Verdict = j.verdict(h)
	j.rep.Promise = j.promise()
	j.rep.Liveness = j.liveness()
	for _, class := range []Class{Overlap, LostUpdate, StaleWrite, DoubleHold, ZombieSuccess, EarlyExpiry, LostLock, TokenRegression, MissingToken, StuckKey} {
		j.rep.Witnesses = append(j.rep.Witnesses, j.kept[class]...)
	}
	return j.rep
}

// key judges the attempts [first, last), all of one key.
func (j *judgement) key(key uint32, first, last int32) {
	var holds []span
	var held []stretch
	for i := first; i < last; i++ {
		a := &j.attempts[i]
		if a.malformed {
			if !a.also {
				j.rep.Malformed++
			}
			continue
		}
		if !a.held(j.calls) {
			continue
		}
		h := j.hold(a)
		cl := j.clients[a.client]
		holds = append(holds, span{s: h.Start, e: h.End, u: cl.stream.ClockUncertainty, worker: cl.stream.Worker, shared: a.shared, at: i})
		held = append(held, stretch{h.Start, h.End})
	}
	j.overlaps(key, holds)
	j.breaches(key, first, last)
	j.tokens(key, first, last)
	j.contended(first, last)
	j.stuck(key, first, last, held)
}

// verdict: unsafe if anything certain happened; safe only with evidence.
func (j *judgement) verdict(h *history.History) Answer {
	r := &j.rep
	var lost, stale int64
	for _, reg := range r.Registers {
		lost += reg.LostUpdates
		stale += reg.StaleWrites
	}
	switch {
	case r.Overlaps > 0 && lost+stale > 0:
		return Answer{Unsafe, fmt.Sprintf("%s held a key at once, and the guarded register suffered %s", count(r.Overlaps, "pair of holds", "pairs of holds"), harm(lost, stale))}
	case r.Overlaps > 0:
		return Answer{Unsafe, fmt.Sprintf("%s held a key at once", count(r.Overlaps, "pair of holds", "pairs of holds"))}
	case lost+stale > 0:
		return Answer{Unsafe, "the guarded register suffered " + harm(lost, stale)}
	case j.damaged:
		return Answer{Unknown, fmt.Sprintf("the history is damaged in %s: what is missing may be a violation", count(int64(len(h.Damage)), "place", "places"))}
	case len(j.opt.FaultMissed) > 0:
		return Answer{Unknown, "a planned fault hit nothing: " + j.opt.FaultMissed[0]}
	case j.opt.Incomplete != "":
		return Answer{Unknown, "the record is not whole: " + j.opt.Incomplete}
	case r.Malformed > 0:
		return Answer{Unknown, fmt.Sprintf("the records of %s contradict one another", count(r.Malformed, "attempt", "attempts"))}
	case r.UncertainOverlaps > 0:
		return Answer{Unknown, fmt.Sprintf("%s may have held a key at once: the clocks are not exact enough to tell", count(r.UncertainOverlaps, "pair of holds", "pairs of holds"))}
	}
	for _, reg := range r.Registers {
		if reg.Contradiction != "" {
			return Answer{Unknown, "the guarded register's account cannot be true, " + reg.Contradiction}
		}
		if !reg.Known {
			return Answer{Unknown, "what the guarded register held in the end was not recorded"}
		}
	}
	switch {
	case r.Grants == 0:
		return Answer{Unknown, "nobody ever got the lock"}
	case r.ContendedGrants == 0:
		return Answer{Unknown, "the lock was never contended: no grant came while another client wanted or held the key"}
	}
	return Answer{Safe, fmt.Sprintf("no two of %s overlapped, %d of them contended", count(r.Grants, "hold", "holds"), r.ContendedGrants)}
}

func (j *judgement) promise() Answer {
	r := &j.rep
	model := "a mutex"
	switch {
	case j.opt.Leased && j.opt.TTL > 0:
		model = fmt.Sprintf("a lease of %v", j.opt.TTL)
	case j.opt.Leased:
		model = "a lease that may end once it is not renewed"
	}
	switch {
	case r.BreachTotal() > 0:
		why := ""
		for _, class := range []Class{DoubleHold, ZombieSuccess, EarlyExpiry, LostLock, TokenRegression, MissingToken} {
			if n := r.Breaches[class]; n > 0 {
				if why != "" {
					why += ", "
				}
				why += fmt.Sprintf("%d %s", n, class)
			}
		}
		return Answer{Broken, "its answers do not fit " + model + ": " + why}
	case j.damaged:
		return Answer{Unknown, "the history is damaged: what is missing may be a breach"}
	case j.opt.Incomplete != "":
		return Answer{Unknown, "the record is not whole: " + j.opt.Incomplete}
	case r.Malformed > 0:
		return Answer{Unknown, fmt.Sprintf("the records of %s contradict one another", count(r.Malformed, "attempt", "attempts"))}
	case r.Grants == 0:
		return Answer{Unknown, "nobody ever got the lock"}
	case r.Undecided > 0:
		return Answer{Unknown, fmt.Sprintf("%s that no proved hold explains: the rules do not decide these yet", count(r.Undecided, "busy answer", "busy answers"))}
	}
	return Answer{Kept, fmt.Sprintf("all answers about %s fit %s", count(r.Grants, "grant", "grants"), model)}
}

func (j *judgement) liveness() Answer {
	r := &j.rep
	longest := time.Duration(r.Stuck.Length())
	switch {
	case j.opt.Takeover <= 0:
		return Answer{Unknown, "the lock declares no bound for taking over"}
	case j.damaged:
		return Answer{Unknown, "the history is damaged: a grant may be missing"}
	case r.Malformed > 0:
		return Answer{Unknown, fmt.Sprintf("the records of %s contradict one another", count(r.Malformed, "attempt", "attempts"))}
	case longest > j.opt.Takeover:
		j.keep(j.stuckWitness())
		return Answer{Stuck, fmt.Sprintf("key %d stayed free and wanted for %v, its bound is %v", r.Stuck.Key, longest, j.opt.Takeover)}
	case j.opt.Incomplete != "":
		return Answer{Unknown, "the record is not whole: " + j.opt.Incomplete}
	case r.Grants == 0:
		return Answer{Unknown, "nobody ever got the lock, and nobody waited for it longer than its bound"}
	case time.Duration(r.Vain.Length()) > j.opt.Takeover:
		return Answer{Unknown, fmt.Sprintf("key %d stayed free for %v while clients asked for it again and again in vain, its bound is %v", r.Vain.Key, time.Duration(r.Vain.Length()), j.opt.Takeover)}
	}
	return Answer{Live, fmt.Sprintf("no key stayed free and wanted for longer than %v, the bound is %v", longest, j.opt.Takeover)}
}

func harm(lost, stale int64) string {
	switch {
	case lost > 0 && stale > 0:
		return count(lost, "lost update", "lost updates") + " and " + count(stale, "stale write", "stale writes")
	case lost > 0:
		return count(lost, "lost update", "lost updates")
	}
	return count(stale, "stale write", "stale writes")
}

func count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
