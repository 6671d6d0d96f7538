package faultnet

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// direction is one of the two of a connection, as its client sees them.
type direction int

const (
	in direction = iota
	out
)

// force is a rule in force, and what it has done.
type force struct {
	id        string
	addresses map[string]bool // nil: all
	rule      Rule

	held, lost, late, dials, broken atomic.Int64

	mu    sync.Mutex
	free  [2]time.Time       // when the rate lets the next byte pass
	wrote map[*line]struct{} // who may lose a reply
	used  bool               // a reply was lost
}

func newForce(id string, addresses []string, r Rule) *force {
	f := &force{id: id, rule: r}
	if len(addresses) > 0 {
		f.addresses = make(map[string]bool, len(addresses))
		for _, a := range addresses {
			f.addresses[a] = true
		}
	}
	return f
}

func (f *force) reaches(address string) bool { return f.addresses == nil || f.addresses[address] }

func (f *force) holds(d direction) bool {
	return f.rule.Stall || d == in && f.rule.CutIn || d == out && f.rule.CutOut
}

func (f *force) effect() Effect {
	return Effect{
		HeldBytes: f.held.Load(), LostBytes: f.lost.Load(), LateBytes: f.late.Load(),
		Dials: f.dials.Load(), Broken: f.broken.Load(),
	}
}

// lateness is how late the rule makes the n-th piece of a stream. It depends
// on nothing else, so that a run can be repeated.
func (f *force) lateness(stream, n uint64) time.Duration {
	late := f.rule.Delay
	if j := int64(f.rule.Jitter); j > 0 {
		late += time.Duration(rand.New(rand.NewPCG(f.rule.Seed^stream, n)).Int64N(j + 1))
	}
	return late
}

// reserve tells when n bytes have passed that the rate lets pass one after the
// other, whichever connection they are of.
func (f *force) reserve(d direction, n int, now time.Time) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.free[d].Before(now) {
		f.free[d] = now
	}
	f.free[d] = f.free[d].Add(time.Duration(float64(n) / float64(f.rule.Rate) * float64(time.Second)))
	return f.free[d]
}

// noteWrite keeps that the client has written to l, whose next reply can be
// lost.
func (f *force) noteWrite(l *line) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.wrote == nil {
		f.wrote = make(map[*line]struct{})
	}
	f.wrote[l] = struct{}{}
}

// catches tells whether what comes to l now is the reply to lose. It is so
// once only.
func (f *force) catches(l *line) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, wrote := f.wrote[l]; !wrote || f.used {
		return false
	}
	f.used, f.wrote = true, nil
	return true
}

func (f *force) usedUp() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used
}

// wire is what the rules in force come to for one connection. It is never
// changed, but replaced.
type wire struct {
	forces []*force // those that have something to do with a connection that is there
	cut    bool     // in any direction: nothing connects
	held   [2]bool  // by a cut or a stall
	late   bool
	rate   int64 // the lowest
	loses  []*force
}

// plain tells that nothing is wrong.
func (w *wire) plain() bool { return len(w.forces) == 0 }

func (w *wire) add(f *force) {
	r := f.rule
	if !r.lasts() {
		return
	}
	if r.LoseReply {
		if f.usedUp() {
			r.LoseReply = false
			if !r.lasts() {
				return
			}
		} else {
			w.loses = append(w.loses, f)
		}
	}
	w.forces = append(w.forces, f)
	w.cut = w.cut || r.CutIn || r.CutOut
	for _, d := range []direction{in, out} {
		w.held[d] = w.held[d] || f.holds(d)
	}
	w.late = w.late || r.Delay > 0 || r.Jitter > 0
	if r.Rate > 0 && (w.rate == 0 || r.Rate < w.rate) {
		w.rate = r.Rate
	}
}

// hidesEnd tells whether the client must not see that the server has gone.
func (w *wire) hidesEnd() bool { return w.held[in] }

// lateness is the sum for the n-th piece of a stream.
func (w *wire) lateness(stream, n uint64) time.Duration {
	var sum time.Duration
	for _, f := range w.forces {
		sum += f.lateness(stream, n)
	}
	return sum
}

// reserve tells when n bytes have passed all rates.
func (w *wire) reserve(d direction, n int, now time.Time) time.Time {
	at := now
	for _, f := range w.forces {
		if f.rule.Rate > 0 {
			if t := f.reserve(d, n, now); t.After(at) {
				at = t
			}
		}
	}
	return at
}

// count puts n bytes that come now to whatever keeps them.
func (w *wire) count(d direction, n int) {
	for _, f := range w.forces {
		if f.holds(d) {
			f.held.Add(int64(n))
		}
		if f.rule.Delay > 0 || f.rule.Jitter > 0 || f.rule.Rate > 0 {
			f.late.Add(int64(n))
		}
	}
}
