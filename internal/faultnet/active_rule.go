package faultnet

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// direction is one of the two directions of a connection, as its client sees
// them.
type direction int

const (
	in direction = iota
	out
)

// activeRule is a rule in force, and what it has done.
type activeRule struct {
	id        string
	addresses map[string]bool // nil: all
	rule      Rule

	held, lost, late, dials, broken atomic.Int64

	mu    sync.Mutex
	free  [2]time.Time       // when the rate lets the next byte pass
	wrote map[*line]struct{} // connections whose next reply can be lost
	used  bool               // a reply, or a request, was lost
}

func newActiveRule(id string, addresses []string, r Rule) *activeRule {
	a := &activeRule{id: id, rule: r}
	if len(addresses) > 0 {
		a.addresses = make(map[string]bool, len(addresses))
		for _, address := range addresses {
			a.addresses[address] = true
		}
	}
	return a
}

func (a *activeRule) reaches(address string) bool { return a.addresses == nil || a.addresses[address] }

func (a *activeRule) holds(d direction) bool {
	return a.rule.Stall || d == in && (a.rule.CutIn || a.rule.Mute) || d == out && a.rule.CutOut
}

func (a *activeRule) effect() Effect {
	return Effect{
		HeldBytes: a.held.Load(), LostBytes: a.lost.Load(), LateBytes: a.late.Load(),
		Dials: a.dials.Load(), Broken: a.broken.Load(),
	}
}

// lateness is how late the rule makes the nth piece of a stream. It depends on
// nothing else, so that a run can be repeated.
func (a *activeRule) lateness(stream, n uint64) time.Duration {
	late := a.rule.Delay
	if j := int64(a.rule.Jitter); j > 0 {
		late += time.Duration(rand.New(rand.NewPCG(a.rule.Seed^stream, n)).Int64N(j + 1))
	}
	return late
}

// reserve returns when n bytes have passed at the rule's rate, which all
// connections share.
func (a *activeRule) reserve(d direction, n int, now time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.free[d].Before(now) {
		a.free[d] = now
	}
	a.free[d] = a.free[d].Add(time.Duration(float64(n) / float64(a.rule.Rate) * float64(time.Second)))
	return a.free[d]
}

// noteWrite notes that the client has written to l: its next reply can be lost.
func (a *activeRule) noteWrite(l *line) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.wrote == nil {
		a.wrote = make(map[*line]struct{})
	}
	a.wrote[l] = struct{}{}
}

// takes reports whether the bytes that come to l now are the request or the
// reply to lose. It is true once only.
func (a *activeRule) takes(l *line, d direction) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	loses := a.rule.LoseRequest
	if d == in {
		_, loses = a.wrote[l]
		loses = loses && a.rule.LoseReply
	}
	if a.used || !loses {
		return false
	}
	a.used, a.wrote = true, nil
	return true
}

func (a *activeRule) usedUp() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used
}

// ruleSet combines the rules in force for one connection. It is never changed,
// but replaced.
type ruleSet struct {
	list  []*activeRule // without those that only concern new connections
	cut   bool          // in any direction: no connection is made
	held  [2]bool       // by a cut or a stall
	late  bool
	rate  int64 // the lowest
	loses []*activeRule
}

// empty reports whether no rule concerns the connection.
func (s *ruleSet) empty() bool { return len(s.list) == 0 }

func (s *ruleSet) add(a *activeRule) {
	r := a.rule
	if r.loses() && a.usedUp() {
		r.LoseReply, r.LoseRequest = false, false
	}
	if !r.lasts() {
		return
	}
	if r.loses() {
		s.loses = append(s.loses, a)
	}
	s.list = append(s.list, a)
	s.cut = s.cut || r.CutIn || r.CutOut
	for _, d := range []direction{in, out} {
		s.held[d] = s.held[d] || a.holds(d)
	}
	s.late = s.late || r.Delay > 0 || r.Jitter > 0
	if r.Rate > 0 && (s.rate == 0 || r.Rate < s.rate) {
		s.rate = r.Rate
	}
}

// lateness is the sum of the rules' delays for the nth piece of a stream.
func (s *ruleSet) lateness(stream, n uint64) time.Duration {
	var sum time.Duration
	for _, a := range s.list {
		sum += a.lateness(stream, n)
	}
	return sum
}

// reserve returns when n bytes have passed at all rates.
func (s *ruleSet) reserve(d direction, n int, now time.Time) time.Time {
	at := now
	for _, a := range s.list {
		if a.rule.Rate > 0 {
			if t := a.reserve(d, n, now); t.After(at) {
				at = t
			}
		}
	}
	return at
}

// count adds n bytes that come now to the effects of the rules.
func (s *ruleSet) count(d direction, n int) {
	for _, a := range s.list {
		if a.holds(d) {
			a.held.Add(int64(n))
		}
		if a.rule.Delay > 0 || a.rule.Jitter > 0 || a.rule.Rate > 0 {
			a.late.Add(int64(n))
		}
	}
}
