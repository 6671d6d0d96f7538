package checker

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Report sums up the judged keys.
func (j *Judge) Report() Report {
	r := Report{Breaches: map[Class]int64{}}
	causes, breached := map[string]int64{}, map[string]int64{}
	kept := map[Class][]Witness{}
	registers := [2]*Register{} // unfenced and fenced
	for _, key := range j.keys() {
		p := j.parts[key]
		r.add(&p.rep)
		for _, reg := range p.rep.Registers {
			sum := &registers[0]
			if reg.Fenced {
				sum = &registers[1]
			}
			if *sum == nil {
				*sum = &Register{Fenced: reg.Fenced, Known: true}
			}
			(*sum).add(reg)
		}
		for cause, n := range p.causes {
			causes[cause] += n
		}
		for cause, n := range p.breached {
			breached[cause] += n
		}
		for class, list := range p.kept {
			if longest, ok := map[Class]uint32{StuckKey: r.Stuck.Key, SlowHandoff: r.Handoff.Key, ShutOut: r.ShutOut.Key}[class]; ok {
				if longest == key { // of the longest period only
					kept[class] = list
				}
				continue
			}
			room := j.opt.maxWitnesses() - len(kept[class])
			kept[class] = append(kept[class], list[:min(len(list), room)]...)
		}
	}
	for _, reg := range registers {
		if reg != nil {
			r.Registers = append(r.Registers, *reg)
		}
	}
	for cause := range breached {
		causes[cause] += 0 // list it also when it explains breaches only
	}
	for cause, n := range causes {
		r.Causes = append(r.Causes, Cause{Cause: cause, Count: n, Breaches: breached[cause]})
	}
	slices.SortFunc(r.Causes, func(a, b Cause) int { return cmp.Compare(a.Cause, b.Cause) })
	r.Verdict, r.Promise, r.Liveness = j.verdict(&r), j.promise(&r), j.liveness(&r)
	if r.Liveness.Value != Stuck {
		delete(kept, StuckKey)
		delete(kept, SlowHandoff)
		delete(kept, ShutOut)
	}
	for _, class := range classes {
		r.Witnesses = append(r.Witnesses, kept[class]...)
	}
	return r
}

// add puts another key's counts to r's.
func (r *Report) add(x *Report) {
	r.Grants += x.Grants
	r.ContendedGrants += x.ContendedGrants
	r.Overlaps += x.Overlaps
	r.UncertainOverlaps += x.UncertainOverlaps
	r.Incidents += x.Incidents
	r.OverlapNS += x.OverlapNS
	r.TokenRegressions += x.TokenRegressions
	r.Malformed += x.Malformed
	r.Unended += x.Unended
	r.NoToken += x.NoToken
	if r.Disordered == nil {
		r.Disordered = x.Disordered
	}
	r.Undecided += x.Undecided
	if r.UndecidedWhy == "" {
		r.UndecidedWhy = x.UndecidedWhy
	}
	for class, n := range x.Breaches {
		r.Breaches[class] += n
	}
	if x.Stuck.Length() > r.Stuck.Length() {
		r.Stuck = x.Stuck
	}
	if x.ShutOut.Length() > r.ShutOut.Length() {
		r.ShutOut = x.ShutOut
	}
	if x.Handoff.Length() > r.Handoff.Length() {
		r.Handoff = x.Handoff
	}
	if x.EndlessHold.Length() > r.EndlessHold.Length() {
		r.EndlessHold = x.EndlessHold
	}
	if x.UnservedWait.Length() > r.UnservedWait.Length() {
		r.UnservedWait = x.UnservedWait
	}
}

// verdict is unsafe if any violation is certain, and safe only with evidence.
func (j *Judge) verdict(r *Report) Answer {
	var lost, stale int64
	for _, reg := range r.Registers {
		lost += reg.LostUpdates
		stale += reg.StaleWrites
	}
	switch {
	case r.Overlaps > 0 && lost+stale > 0:
		return Answer{Unsafe, fmt.Sprintf("%s held a key at once, and the guarded register shows %s", count(r.Overlaps, "pair of holds", "pairs of holds"), harm(lost, stale))}
	case r.Overlaps > 0:
		return Answer{Unsafe, fmt.Sprintf("%s held a key at once", count(r.Overlaps, "pair of holds", "pairs of holds"))}
	case lost+stale > 0:
		return Answer{Unsafe, "the guarded register shows " + harm(lost, stale)}
	case j.damage > 0:
		return Answer{Unknown, fmt.Sprintf("the history is damaged in %s: a violation may be missing from it", count(int64(j.damage), "place", "places"))}
	case len(j.opt.FaultMissed) > 0:
		return Answer{Unknown, "a planned fault missed: " + j.opt.FaultMissed[0]}
	case j.opt.Incomplete != "":
		return Answer{Unknown, "the history is incomplete: " + j.opt.Incomplete}
	case r.Malformed > 0:
		return Answer{Unknown, r.contradiction()}
	case r.Unended > 0:
		return Answer{Unknown, r.unended()}
	case r.UncertainOverlaps > 0:
		return Answer{Unknown, fmt.Sprintf("%s may have held a key at once: the clocks are not exact enough to decide", count(r.UncertainOverlaps, "pair of holds", "pairs of holds"))}
	}
	for _, reg := range r.Registers {
		if reg.Contradiction != "" {
			return Answer{Unknown, "the guarded register's counts cannot be true, " + reg.Contradiction}
		}
		if !reg.Known {
			return Answer{Unknown, "the final value of the guarded register was not recorded"}
		}
	}
	switch {
	case r.Grants == 0:
		return Answer{Unknown, "no client got the lock"}
	case r.ContendedGrants == 0:
		return Answer{Unknown, "the lock was never contended: no grant came while another client wanted or held the key"}
	}
	return Answer{Safe, fmt.Sprintf("no two of %s overlapped, %d of them contended", count(r.Grants, "hold", "holds"), r.ContendedGrants)}
}

func (j *Judge) promise(r *Report) Answer {
	model := j.model()
	switch {
	case r.BreachTotal() > 0:
		why := ""
		for _, class := range classes {
			if n := r.Breaches[class]; n > 0 {
				if why != "" {
					why += ", "
				}
				why += fmt.Sprintf("%d %s", n, class)
			}
		}
		return Answer{Broken, "its answers do not fit " + model + ": " + why}
	case j.damage > 0:
		return Answer{Unknown, "the history is damaged: a breach may be missing from it"}
	case j.opt.Incomplete != "":
		return Answer{Unknown, "the history is incomplete: " + j.opt.Incomplete}
	case r.Malformed > 0:
		return Answer{Unknown, r.contradiction()}
	case r.Unended > 0 && !j.opt.Leased:
		return Answer{Unknown, r.unended()}
	case r.Grants == 0:
		return Answer{Unknown, "no client got the lock"}
	case r.NoToken > 0:
		return Answer{Unknown, count(r.NoToken, "grant has", "grants have") + " no fencing token in the record, and the others have one"}
	case r.Undecided > 0:
		return Answer{Unknown, fmt.Sprintf("%s left undecided: %s", count(r.Undecided, "busy answer", "busy answers"), r.UndecidedWhy)}
	}
	return Answer{Kept, fmt.Sprintf("all answers about %s fit %s", count(r.Grants, "grant", "grants"), model)}
}

// model names the model that the answers were judged by.
func (j *Judge) model() string {
	kind := "mutex"
	switch {
	case j.opt.Reentrant:
		kind = "re-entrant mutex"
	case j.forReading.Load():
		kind = "read-write lock"
	}
	switch {
	case j.opt.Leased && j.opt.TTL > 0:
		return fmt.Sprintf("a %s with a lease of %v", kind, j.opt.TTL)
	case j.opt.Leased:
		return fmt.Sprintf("a %s with a lease that may end once it is not renewed", kind)
	}
	return "a " + kind
}

func (j *Judge) liveness(r *Report) Answer {
	longest := time.Duration(r.Stuck.Length())
	switch {
	case j.opt.Takeover <= 0:
		return Answer{Unknown, "the lock declares no takeover bound"}
	case j.damage > 0:
		return Answer{Unknown, "the history is damaged: a grant may be missing from it"}
	case r.Malformed > 0:
		return Answer{Unknown, r.contradiction()}
	case longest > j.opt.Takeover:
		return Answer{Stuck, fmt.Sprintf("key %d stayed free and wanted for %v, its bound is %v", r.Stuck.Key, r.Stuck, j.opt.Takeover)}
	case j.opt.Handoff > 0 && r.Handoff.Length() > int64(j.opt.Handoff):
		return Answer{Stuck, fmt.Sprintf("key %d stayed free and wanted for %v after a confirmed release, the bound of a handoff is %v", r.Handoff.Key, r.Handoff, j.opt.Handoff)}
	case r.ShutOut.Granted > 0:
		s := r.ShutOut
		return Answer{Stuck, fmt.Sprintf("client %d was shut out from key %d for %v, the bound is %v: %s without success, and others were granted it %d times meanwhile",
			s.Client, s.Key, time.Duration(s.Length()), j.opt.Takeover, count(int64(s.Acquires), "acquire was", "acquires in a row were"), s.Granted)}
	case j.opt.Incomplete != "":
		return Answer{Unknown, "the history is incomplete: " + j.opt.Incomplete}
	case r.Grants == 0:
		return Answer{Unknown, "no client got the lock, and no client waited for it longer than its bound"}
	case time.Duration(r.EndlessHold.Length()) > j.opt.Takeover:
		return Answer{Unknown, fmt.Sprintf("the record has no end of a hold of key %d, after which clients waited for %v, its bound is %v", r.EndlessHold.Key, time.Duration(r.EndlessHold.Length()), j.opt.Takeover)}
	case time.Duration(r.UnservedWait.Length()) > j.opt.Takeover:
		return Answer{Unknown, fmt.Sprintf("key %d stayed free for %v while clients repeatedly gave up waiting for it, its bound is %v", r.UnservedWait.Key, time.Duration(r.UnservedWait.Length()), j.opt.Takeover)}
	}
	why := fmt.Sprintf("no key stayed free and wanted for longer than %v, the bound is %v", r.Stuck, j.opt.Takeover)
	if j.opt.Handoff > 0 {
		why += fmt.Sprintf("; after a confirmed release for no longer than %v, the bound is %v", r.Handoff, j.opt.Handoff)
	}
	return Answer{Live, why}
}

func (r *Report) contradiction() string {
	why := fmt.Sprintf("the records of %s contradict one another", count(r.Malformed, "attempt", "attempts"))
	if d := r.Disordered; d != nil {
		why += fmt.Sprintf(": the calls of client %d on key %d overlap, stand twice or release it twice; give each thread a client of its own, or each call its attempt", d.Client, d.Key)
	}
	return why
}

func (r *Report) unended() string {
	return fmt.Sprintf("%s no end in the record, and another client was granted the key after it", count(r.Unended, "hold has", "holds have"))
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
