package checker

import "github.com/lockbench/lockbench/history"

// A key's calls arrive one by one, in any order, and are folded into attempts
// at once. On a hot key nearly all attempts are busy tries without any other
// call: these need no attempt.

// Open starts the judging of one key with about this many calls. The visitor
// must be given every call of the key: those that name it, and all calls of the
// batches that cover it. To build witnesses it returns a second visitor. A key is
// judged once.
func (j *Judge) Open(key uint32, calls int) history.KeyVisitor { return j.gather(key, calls) }

// Key judges one key, given every call of it, as for Open.
func (j *Judge) Key(key uint32, calls []history.Call) {
	for v := j.Open(key, len(calls)); v != nil; v = v.Done() {
		for i := range calls {
			v.Visit(&calls[i])
		}
	}
}

type keyVisitor struct {
	*part
	numbers
	// disposition is, by attempt number, the index of the attempt in gathered; or
	// the complement of its only call, a busy try.
	disposition chunkedList[int32]
	gathered    chunkedList[attempt]
	// waiting are the last calls, whose attempts were not looked up yet.
	waiting []waiting
	further map[history.Attempt]bool // batches that cover this key, but not as their first
	// inferred: some calls name no attempt.
	inferred bool
}

// waiting is dropped from a call once its attempt is known.
type waiting struct {
	attempt  history.Attempt
	leaseEnd int64
	hash     uint32
	key      uint32
}

// maxWaiting is the number of attempts that are looked up at once.
const maxWaiting = 64

func (j *Judge) gather(key uint32, calls int) *keyVisitor {
	p := &part{Judge: j, key: key, calls: make([]call, 0, calls), causes: map[string]int64{}, breached: map[string]int64{}, blamed: map[history.Attempt]string{}, kept: map[Class][]Witness{}, proofs: map[int32][]*history.Call{}, leases: map[int32][]stretch{}}
	p.rep.Breaches = map[Class]int64{}
	return &keyVisitor{part: p, numbers: newNumbers(calls), further: map[history.Attempt]bool{}}
}

// Visit takes the next call.
func (g *keyVisitor) Visit(c *history.Call) {
	switch {
	case ofLock(c.Kind):
		g.put(c)
	case c.Key != g.key:
	case c.Kind == history.KindAlso:
		g.further[c.Attempt] = true
	case !ofAttempt(c):
		g.guarded = append(g.guarded, *c)
	}
}

// ofLock reports whether calls of kind k were sent to the lock, or record its
// signals.
func ofLock(k history.Kind) bool {
	switch k {
	case history.KindAcquire, history.KindTry, history.KindRelease, history.KindCleanup, history.KindExtend, history.KindLost:
		return true
	}
	return false // a place in a queue grants nothing
}

func (g *keyVisitor) put(c *history.Call) {
	g.calls = append(g.calls, call{
		Invoke: c.Invoke, Return: c.Return, Fence: c.Fence, Client: c.Client, Seq: c.Seq,
		Kind: c.Kind, Outcome: c.Outcome, Flags: c.Flags,
	})
	g.inferred = g.inferred || c.Flags&history.FlagInferred != 0
	g.waiting = append(g.waiting, waiting{c.Attempt, c.LeaseEnd, g.hash(c.Attempt), c.Key})
	if len(g.waiting) == maxWaiting {
		g.settle()
	}
}

// settle adds the waiting calls to their attempts.
func (g *keyVisitor) settle() {
	g.fetch(g.waiting)
	first := len(g.calls) - len(g.waiting)
	for k := range g.waiting {
		g.assign(int32(first+k), &g.waiting[k])
	}
	g.waiting = g.waiting[:0]
}

// assign adds call i to its attempt.
func (g *keyVisitor) assign(i int32, w *waiting) {
	c := &g.calls[i]
	number, fresh := g.number(i, w)
	c.attempt = number
	switch {
	case fresh && g.refusedAlone(c, w):
		g.disposition.add(^i)
		return
	case fresh:
		g.disposition.add(g.begin(i, w.key))
	}
	disposition := g.disposition.at(number)
	if try := ^*disposition; try >= 0 {
		*disposition = g.begin(try, g.key)
		g.gathered.at(*disposition).add(g.calls, try, g.key)
	}
	a := g.gathered.at(*disposition)
	a.add(g.calls, i, w.key)
	a.lease(c.Outcome, w.leaseEnd)
	if g.opt.TrustLeaseEnd && (c.Outcome == history.Held || c.Outcome == history.Extended) && w.leaseEnd > 0 {
		g.leases[number] = append(g.leases[number], stretch{c.Return, w.leaseEnd})
	}
	a.malformed = a.malformed || w.attempt.IsZero()
}

// number is of, but faster if the previous call has the same attempt.
func (g *keyVisitor) number(i int32, w *waiting) (number int32, fresh bool) {
	if i > 0 {
		if last := g.calls[i-1].attempt; *g.numbers.ids.at(last) == w.attempt {
			return last, false
		}
	}
	return g.of(w.attempt, w.hash)
}

// refusedAlone reports whether the attempt of c is a busy try and nothing else,
// unless more calls follow.
func (g *keyVisitor) refusedAlone(c *call, w *waiting) bool {
	return c.Kind == history.KindTry && c.Outcome == history.Busy && w.key == g.key && !w.attempt.IsZero() &&
		!g.opt.Reentrant && !(len(g.batches) > 0 && g.batches[w.attempt])
}

// begin starts an attempt with call i.
func (g *keyVisitor) begin(i int32, key uint32) int32 {
	g.gathered.add(newAttempt(g.calls, i, key))
	return g.gathered.len() - 1
}

// fold makes a part of the gathered calls.
func (g *keyVisitor) fold() *part {
	g.settle()
	p := g.part
	p.ids, g.table = g.numbers.ids, nil
	p.alone = make([]int32, 0, g.disposition.len()-g.gathered.len())
	for number := range g.disposition.len() {
		if try := ^*g.disposition.at(number); try >= 0 {
			p.alone = append(p.alone, try)
			p.sharing = p.sharing || p.calls[try].Flags&history.FlagShared != 0
		}
	}
	if g.inferred {
		for client := range p.disordered() {
			for i := range g.gathered.len() {
				a := g.gathered.at(i)
				if a.client == client && p.calls[a.any].Flags&history.FlagInferred != 0 {
					a.malformed = true
					p.rep.Disordered = &Disorder{Key: p.key, Client: client}
				}
			}
		}
	}
	p.fold(&g.gathered, g.further)
	if p.opt.Reentrant {
		p.nest()
	}
	return p
}

// Done judges the key.
func (g *keyVisitor) Done() history.KeyVisitor {
	p := g.fold()
	*g = keyVisitor{} // free its memory before judging
	p.judge()
	p.calls, p.attempts, p.alone, p.guarded, p.ids = nil, nil, nil, nil, chunkedList[history.Attempt]{}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.parts[p.key] = p
	if len(p.kept) == 0 {
		return nil
	}
	return p.show()
}

// showing adds the complete calls to the witnesses.
type showing struct {
	*part
	next     int32 // number of the next call of the lock
	involved map[history.Attempt][]*Witness
}

func (p *part) show() *showing {
	s := &showing{part: p, involved: map[history.Attempt][]*Witness{}}
	for _, class := range classes {
		for i := range p.kept[class] {
			w := &p.kept[class][i]
			for _, c := range w.Calls {
				if list := s.involved[c.Attempt]; len(list) == 0 || list[len(list)-1] != w {
					s.involved[c.Attempt] = append(list, w)
				}
			}
		}
	}
	return s
}

// Visit takes the calls a second time, in the same order.
func (s *showing) Visit(c *history.Call) {
	for _, w := range s.involved[c.Attempt] {
		w.Around = append(w.Around, *c)
	}
	if ofLock(c.Kind) {
		for _, proof := range s.proofs[s.next] {
			*proof = *c
		}
		s.next++
	}
}

// Done sorts the calls around each witness.
func (s *showing) Done() history.KeyVisitor {
	s.proofs = nil
	for _, list := range s.kept {
		sortAround(list)
	}
	return nil
}
