package faultnet

import (
	"fmt"
	"slices"
	"sync"
)

// hub puts rules in force on the connections of a proxy, present and future.
// The zero value is ready. It is locked before a connection is, never after.
type hub struct {
	mu     sync.Mutex
	rules  []*activeRule // in the order they came
	pairs  map[*pair]pairState
	serial uint64 // connections so far
}

// pairState determines whether a reset counts a connection as broken.
type pairState int

const (
	connecting  pairState = iota
	established           // the client uses it
	severed               // a rule broke it, but the reset is held back
)

// apply puts a rule in force.
func (h *hub) apply(id string, addresses []string, r Rule) error {
	if err := r.check(); err != nil {
		return fmt.Errorf("apply rule %s: %w", id, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.find(id) >= 0 {
		return fmt.Errorf("apply rule %s: a rule with this id is in force: lift it first", id)
	}
	a := newActiveRule(id, addresses, r)
	h.rules = append(h.rules, a)
	h.update(a)
	if r.breaks() {
		for p := range h.pairs {
			if a.reaches(p.upstream) {
				h.sever(p, a)
			}
		}
	}
	return nil
}

// lift removes a rule and returns what it did.
func (h *hub) lift(id string) Effect {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.find(id)
	if i < 0 {
		return Effect{}
	}
	a := h.rules[i]
	h.rules = slices.Delete(h.rules, i, i+1)
	h.update(a)
	return a.effect()
}

// effect is what a rule in force has done so far.
func (h *hub) effect(id string) Effect {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := h.find(id); i >= 0 {
		return h.rules[i].effect()
	}
	return Effect{}
}

func (h *hub) find(id string) int {
	return slices.IndexFunc(h.rules, func(a *activeRule) bool { return a.id == id })
}

// update gives the connections that a reaches their rules anew. h.mu is held.
func (h *hub) update(a *activeRule) {
	for p := range h.pairs {
		if a.reaches(p.upstream) {
			p.follow(h.rulesFor(p.upstream))
		}
	}
}

// sever breaks a connection because of a. h.mu is held.
func (h *hub) sever(p *pair, a *activeRule) {
	if h.pairs[p] == established && p.sever() {
		h.pairs[p] = severed
		a.broken.Add(1)
	}
}

// oneLost is called when p has lost the request or reply that a was there to lose: p
// breaks, and a no longer concerns the other connections.
func (h *hub) oneLost(p *pair, a *activeRule) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sever(p, a)
	h.update(a)
}

// rulesFor combines the rules for an address. h.mu is held.
func (h *hub) rulesFor(address string) *ruleSet {
	s := &ruleSet{}
	for _, a := range h.rules {
		if a.reaches(address) {
			s.add(a)
		}
	}
	return s
}

// refuses reports whether a rule refuses a new connection, and counts it. h.mu
// is held.
func (h *hub) refuses(p *pair) bool {
	for _, a := range h.rules {
		if a.rule.Refuse && a.reaches(p.upstream) {
			a.dials.Add(1)
			return true
		}
	}
	return false
}

// join takes in a new connection, unless a rule refuses it.
func (h *hub) join(p *pair, state pairState) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuses(p) {
		return false
	}
	if h.pairs == nil {
		h.pairs = make(map[*pair]pairState)
	}
	h.pairs[p] = state
	p.follow(h.rulesFor(p.upstream))
	return true
}

// establish records that the client is about to use p, unless a rule refuses it by
// now.
func (h *hub) establish(p *pair) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuses(p) {
		return false
	}
	h.pairs[p] = established
	return true
}

func (h *hub) leave(p *pair) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.pairs, p)
}

// nextSerial numbers connections, so that their streams differ.
func (h *hub) nextSerial() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serial++
	return h.serial
}
