package faultnet

import (
	"context"
	"fmt"
	"net"
	"slices"
	"sync"
	"syscall"
)

// hub puts rules in force on connections, present and future. The zero value
// is ready. It is locked before a connection is, never after.
type hub struct {
	mu      sync.Mutex
	forces  []*force        // in the order they came
	members map[member]bool // false: its user has left it, but not all of it has passed
	serial  uint64          // connections so far
	changed chan struct{}   // closed at the next change of rules; nil while nobody waits
}

// member is a connection under rules.
type member interface {
	address() string
	// follow puts it under the rules of w, which hold when it returns.
	follow(w *wire)
	// sever breaks it, unless it is over already, and tells whether it did and
	// whether nothing of it is left.
	sever() (broke, gone bool)
}

// apply puts a rule in force.
func (h *hub) apply(id string, addresses []string, r Rule) error {
	if err := r.check(); err != nil {
		return fmt.Errorf("apply rule %s: %w", id, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.find(id) >= 0 {
		return fmt.Errorf("apply rule %s: it is in force already: lift it first", id)
	}
	f := newForce(id, addresses, r)
	h.forces = append(h.forces, f)
	h.spread(f)
	if r.breaks() {
		for m, used := range h.members {
			if used && f.reaches(m.address()) {
				h.sever(m, f)
			}
		}
	}
	return nil
}

// lift takes a rule away, and tells what it did.
func (h *hub) lift(id string) Effect {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := h.find(id)
	if i < 0 {
		return Effect{}
	}
	f := h.forces[i]
	h.forces = slices.Delete(h.forces, i, i+1)
	h.spread(f)
	return f.effect()
}

func (h *hub) find(id string) int {
	return slices.IndexFunc(h.forces, func(f *force) bool { return f.id == id })
}

// spread lets all follow whom f reaches, which came or went. h.mu is held.
func (h *hub) spread(f *force) {
	for m := range h.members {
		if f.reaches(m.address()) {
			m.follow(h.wire(m.address()))
		}
	}
	if h.changed != nil {
		close(h.changed)
		h.changed = nil
	}
}

// sever breaks m, on f's account. h.mu is held.
func (h *hub) sever(m member, f *force) {
	if !h.members[m] {
		return // its user has left it
	}
	broke, gone := m.sever()
	if broke {
		f.broken.Add(1)
	}
	if gone {
		delete(h.members, m)
	} else {
		h.members[m] = false
	}
}

// robbed is called when m has lost the reply that f was there to lose: m
// breaks, and f has nothing more to do with the others.
func (h *hub) robbed(m member, f *force) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sever(m, f)
	h.spread(f)
}

// wire is what the rules come to for an address. h.mu is held.
func (h *hub) wire(address string) *wire {
	w := &wire{}
	for _, f := range h.forces {
		if f.reaches(address) {
			w.add(f)
		}
	}
	return w
}

// refuses is the first rule that refuses connections to an address, or nil.
// h.mu is held.
func (h *hub) refuses(address string) *force {
	for _, f := range h.forces {
		if f.rule.Refuse && f.reaches(address) {
			return f
		}
	}
	return nil
}

// join takes a new connection in. It is false for one that is refused.
func (h *hub) join(m member) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f := h.refuses(m.address()); f != nil {
		f.dials.Add(1)
		return false
	}
	if h.members == nil {
		h.members = make(map[member]bool)
	}
	h.members[m] = true
	m.follow(h.wire(m.address()))
	return true
}

// quit says that m's user has left it; leave that nothing of it is left.
func (h *hub) quit(m member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.members[m]; ok {
		h.members[m] = false
	}
}

func (h *hub) leave(m member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.members, m)
}

// number counts connections; it tells their streams apart.
func (h *hub) number() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serial++
	return h.serial
}

// admit waits out what cuts an address off, and refuses what is to be refused.
// It answers the rules that the new connection meets.
func (h *hub) admit(ctx context.Context, network, address string) (*wire, error) {
	var seen callers
	for {
		h.mu.Lock()
		if f := h.refuses(address); f != nil {
			h.mu.Unlock()
			f.dials.Add(1)
			return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
		}
		w := h.wire(address)
		if h.changed == nil {
			h.changed = make(chan struct{})
		}
		changed := h.changed
		h.mu.Unlock()
		if !w.cut {
			return w, nil
		}
		seen.count(w)
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
		}
	}
}

// callers are the rules that have counted one new connection as held up.
type callers map[*force]bool

func (c *callers) count(w *wire) {
	if *c == nil {
		*c = make(callers)
	}
	for _, f := range w.forces {
		if (f.rule.CutIn || f.rule.CutOut) && !(*c)[f] {
			(*c)[f] = true
			f.dials.Add(1)
		}
	}
}
