package checker

import (
	"math/rand/v2"

	"github.com/lockbench/lockbench/history"
)

// world is a simulated lock server with its clients, tick by tick. Every answer
// is true, and some get lost; unless a defect is planted.
type world struct {
	clients, ticks int
	// ttl 0 makes it a mutex; otherwise a lease of exactly ttl ticks, or one
	// that ends at any moment if ttl is negative.
	ttl       int64
	tries     int // of 4 acquires, how many only try
	reads     int // of 4 acquires, how many share
	reentrant bool
	tokens    bool
	lossy     int // one answer in so many is lost; 0 for none
	eager     int // requests and answers travel for about so many ticks
	hold      int // holds last about so many ticks
	defect    defect
	odds      int // one chance in so many for the defect to show

	rng      *rand.Rand
	b        *builder
	holders  []holding
	cleaned  map[int]bool
	token    uint64
	attempts int
	// watch, if set, looks at all clients at the end of each tick.
	watch func(t int64, users []user)
}

// defect is something that a lock does wrong.
type defect int

const (
	sound          defect = iota
	doubleGrant           // grants although another holds
	lostRelease           // returns released, and keeps the lock
	staleToken            // gives a token anew
	earlyExpiry           // ends a lease at a third of its time
	resurrection          // renews a lease that has ended
	foreignRelease        // a release by a client without the lock frees the holder
	forgotten             // loses the lock of a live holder
	spuriousBusy          // refuses a try although it is free
	phantomGrant          // takes the lock, and returns that it failed
	innerFrees            // the inner release of a re-entrant lock frees it
	readersIntrude        // a reader gets in beside a writer
)

// holding is one entry on the server.
type holding struct {
	n, client int
	shared    bool
	expires   int64
}

// user is one client of a world.
type user struct {
	phase   int // 0 idle, 1 request under way, 2 answered, 3 holding, 4 must clean up
	kind    history.Kind
	outcome history.Outcome
	invoke  int64
	n       int
	shared  bool
	nest    []int // outer attempts
	doomed  bool  // the answer will be lost
	token   uint64
	since   int64 // its last return: it goes on later than that
}

func (w *world) chance(n int) bool { return n > 0 && w.rng.IntN(n) == 0 }

// run plays the world and returns what its clients recorded.
func (w *world) run(rng *rand.Rand) *builder {
	w.rng, w.b, w.cleaned = rng, newBuilder(), map[int]bool{}
	users := make([]user, w.clients)
	for c := range users {
		w.b.seqs[uint32(c)], users[c].since = 0, -1
	}
	for t := int64(0); t < int64(w.ticks); t++ {
		for range 2 * w.clients {
			w.expire(t)
			c := rng.IntN(w.clients)
			w.step(c, &users[c], t)
		}
		if w.watch != nil {
			w.watch(t, users)
		}
	}
	for c := range users {
		if u := &users[c]; u.phase == 1 || u.phase == 2 {
			w.note(c, u, history.Open, 0)
		}
	}
	w.b.seal(2 * int64(w.ticks))
	return w.b
}

func (w *world) note(c int, u *user, o history.Outcome, ret int64) {
	call := w.b.add(uint32(c), u.n, u.kind, o, u.invoke, ret)
	if u.shared {
		call.Flags = history.FlagShared
	}
	if o == history.Held {
		call.Fence = u.token
	}
}

func (w *world) step(c int, u *user, t int64) {
	slow := w.rng.IntN(max(w.eager, 1)+1) > 0
	if t <= u.since && u.phase != 1 && u.phase != 2 {
		return
	}
	switch u.phase {
	case 0:
		if w.rng.IntN(3) == 0 {
			w.ask(u, t)
		}
	case 1:
		if !slow {
			w.serve(c, u, t)
		}
	case 2:
		if !slow {
			w.answer(c, u, t)
		}
	case 3:
		if w.rng.IntN(max(w.hold, 1)) != 0 {
			return
		}
		if w.reentrant && len(u.nest) < 2 && w.rng.IntN(2) == 0 {
			u.nest = append(u.nest, u.n)
			w.ask(u, t)
			return
		}
		u.phase, u.invoke, u.doomed, u.kind = 1, t, w.chance(w.lossy), history.KindRelease
		if w.ttl != 0 && w.rng.IntN(3) == 0 {
			u.kind, u.doomed = history.KindExtend, false
		}
	case 4:
		u.phase, u.invoke, u.doomed, u.kind = 1, t, w.chance(w.lossy), history.KindCleanup
	}
}

func (w *world) ask(u *user, t int64) {
	nest := u.nest
	*u = user{phase: 1, kind: history.KindAcquire, invoke: t, n: w.attempts, doomed: w.chance(w.lossy), nest: nest, since: u.since}
	w.attempts++
	u.shared = w.rng.IntN(4) < w.reads
	if w.rng.IntN(4) < w.tries {
		u.kind = history.KindTry
	}
}

// done brings the client back to what it was about before this attempt.
func (u *user) done() {
	u.phase = 0
	if k := len(u.nest); k > 0 {
		u.n, u.nest, u.phase = u.nest[k-1], u.nest[:k-1], 3
	}
}

func (w *world) answer(c int, u *user, t int64) {
	o := u.outcome
	if u.doomed {
		o = history.Unknown
	}
	w.note(c, u, o, t)
	u.since = t
	switch o {
	case history.Held, history.Extended:
		u.phase = 3
	case history.Unknown:
		u.phase = 4
	default:
		u.done()
	}
}

func (w *world) expire(t int64) {
	kept := w.holders[:0]
	for _, h := range w.holders {
		over := w.ttl > 0 && t >= h.expires || w.ttl < 0 && w.rng.IntN(12) == 0
		if w.defect == earlyExpiry && w.ttl > 0 && t >= h.expires-2*w.ttl/3 || w.defect == forgotten && w.chance(w.odds) {
			over = true
		}
		if !over {
			kept = append(kept, h)
		}
	}
	w.holders = kept
}

// find is the place of attempt n among the holders, -1 if it has none.
func (w *world) find(n int) int {
	for i, h := range w.holders {
		if h.n == n {
			return i
		}
	}
	return -1
}

func (w *world) remove(i int) { w.holders = append(w.holders[:i:i], w.holders[i+1:]...) }

// free reports whether c may be granted the lock.
func (w *world) free(c int, shared bool) bool {
	for _, h := range w.holders {
		if w.reentrant && h.client == c || shared && h.shared {
			continue
		}
		return false
	}
	return true
}

// serve is what the server does with the request.
func (w *world) serve(c int, u *user, t int64) {
	u.phase = 2
	switch u.kind {
	case history.KindAcquire, history.KindTry:
		w.serveAcquire(c, u, t)
	case history.KindExtend:
		u.outcome = history.Lost
		i := w.find(u.n)
		if i < 0 && w.defect == resurrection && w.chance(w.odds) {
			w.holders = append(w.holders, holding{n: u.n, client: c, expires: t + w.ttl})
			i = len(w.holders) - 1
		}
		if i >= 0 {
			w.holders[i].expires, u.outcome = t+w.ttl, history.Extended
		}
	default:
		w.serveRelease(u, t)
	}
}

func (w *world) serveAcquire(c int, u *user, t int64) {
	free := w.free(c, u.shared)
	intrude := w.defect == doubleGrant || w.defect == readersIntrude && u.shared
	switch {
	case w.cleaned[u.n]: // too late
		u.outcome = history.Unknown
		return
	case free && w.defect == spuriousBusy && u.kind == history.KindTry && w.chance(w.odds):
		u.outcome = history.Busy
		return
	case !free && intrude && w.chance(w.odds):
	case !free && u.kind == history.KindTry:
		u.outcome = history.Busy
		return
	case !free && u.doomed: // gives up waiting
		u.outcome = history.Unknown
		return
	case !free:
		u.phase = 1
		return
	}
	w.holders = append(w.holders, holding{n: u.n, client: c, shared: u.shared, expires: t + w.ttl})
	u.outcome = history.Held
	if w.tokens {
		if w.token > 0 && w.defect == staleToken && w.chance(w.odds) {
		} else {
			w.token++
		}
		u.token = w.token
	}
	if w.defect == phantomGrant && w.chance(w.odds) {
		u.outcome, u.doomed = history.Failed, false
	}
}

func (w *world) serveRelease(u *user, t int64) {
	i := w.find(u.n)
	switch {
	case i < 0 && w.defect == foreignRelease && len(w.holders) > 0:
		w.holders, u.outcome = nil, history.Released
	case i < 0:
		u.outcome = history.Lost
	case w.defect == lostRelease && w.chance(w.odds):
		u.outcome = history.Released
	default:
		w.remove(i)
		u.outcome = history.Released
		if w.defect == innerFrees && len(w.holders) > 0 {
			w.holders = nil
		}
	}
	if u.kind == history.KindCleanup && u.outcome == history.Released {
		w.cleaned[u.n] = true
	}
}
