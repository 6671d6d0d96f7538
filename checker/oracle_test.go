package checker

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/lockbench/lockbench/history"
)

// builder makes histories for tests.
type builder struct {
	h    history.History
	seqs map[uint32]uint32
}

func newBuilder() *builder { return &builder{seqs: map[uint32]uint32{}} }

func id(n int) history.Attempt {
	var a history.Attempt
	binary.BigEndian.PutUint64(a[:], uint64(n)+1)
	return a
}

// add appends a call of attempt n; client is who makes it.
func (b *builder) add(client uint32, n int, kind history.Kind, o history.Outcome, invoke, ret int64) *history.Call {
	c := history.Call{Client: client, Seq: b.seqs[client], Kind: kind, Outcome: o, Attempt: id(n), Intended: invoke, Invoke: invoke, Return: ret}
	b.seqs[client]++
	b.h.Calls = append(b.h.Calls, c)
	return &b.h.Calls[len(b.h.Calls)-1]
}

// seal ends the streams of all clients at t.
func (b *builder) seal(t int64) *history.History {
	b.h.Streams = nil
	for c, n := range b.seqs {
		b.h.Streams = append(b.h.Streams, history.Stream{Client: c, Worker: c, Records: int(n), Sealed: true, SealedAt: t})
	}
	return &b.h
}

// simulate runs clients against a simulated lock, tick by tick, and returns
// what they would record. ttl 0 makes it a mutex; otherwise a lease of exactly
// ttl ticks, or of any length if ttl is negative. Every answer is true; some
// get lost.
func simulate(rng *rand.Rand, clients, ticks int, ttl int64, tries bool) *builder {
	type state struct {
		phase   int // 0 idle, 1 request under way, 2 answered, 3 holding, 4 must clean up
		kind    history.Kind
		outcome history.Outcome
		invoke  int64
		n       int
		doomed  bool // the answer will be lost
	}
	b := newBuilder()
	all := make([]state, clients)
	holder, expires, attempts := -1, int64(0), 0
	b.seqs = map[uint32]uint32{}
	for c := range clients {
		b.seqs[uint32(c)] = 0
	}
	for t := int64(0); t < int64(ticks); t++ {
		for range 2 * clients {
			c := rng.IntN(clients)
			s := &all[c]
			if holder >= 0 && (ttl > 0 && t >= expires || ttl < 0 && rng.IntN(12) == 0) {
				holder = -1
			}
			switch s.phase {
			case 0:
				if rng.IntN(3) == 0 {
					*s = state{phase: 1, kind: history.KindAcquire, invoke: t, n: attempts, doomed: rng.IntN(8) == 0}
					attempts++
					if tries && rng.IntN(2) == 0 {
						s.kind = history.KindTry
					}
				}
			case 1:
				mine := holder == s.n
				if rng.IntN(3) == 0 {
					break
				}
				s.phase = 2
				switch s.kind {
				case history.KindAcquire, history.KindTry:
					switch {
					case holder < 0:
						holder, expires, s.outcome = s.n, t+ttl, history.Held
					case s.kind == history.KindTry:
						s.outcome = history.Busy
					case s.doomed: // gives up waiting
						s.outcome = history.Unknown
					default:
						s.phase = 1
					}
				case history.KindExtend:
					s.outcome = history.Lost
					if mine {
						expires, s.outcome = t+ttl, history.Extended
					}
				default:
					s.outcome = history.Lost
					if mine {
						holder, s.outcome = -1, history.Released
					}
				}
			case 2:
				if rng.IntN(3) == 0 {
					break
				}
				o, ret := s.outcome, t
				if s.doomed {
					o = history.Unknown
				}
				b.add(uint32(c), s.n, s.kind, o, s.invoke, ret)
				switch {
				case o == history.Held || o == history.Extended:
					s.phase = 3
				case o == history.Unknown:
					s.phase = 4
				default:
					s.phase = 0
				}
			case 3:
				if rng.IntN(3) != 0 {
					break
				}
				s.phase, s.invoke, s.doomed, s.kind = 1, t, rng.IntN(8) == 0, history.KindRelease
				if ttl != 0 && rng.IntN(3) == 0 {
					s.kind, s.doomed = history.KindExtend, false
				}
			case 4:
				s.phase, s.invoke, s.doomed, s.kind = 1, t, rng.IntN(8) == 0, history.KindCleanup
			}
		}
	}
	for c := range all {
		if s := &all[c]; s.phase == 1 || s.phase == 2 {
			b.add(uint32(c), s.n, s.kind, history.Open, s.invoke, 0)
		}
	}
	b.seal(2 * int64(ticks))
	return b
}

// mutate changes a stamp or an outcome somewhere.
func mutate(rng *rand.Rand, h *history.History, ticks int) {
	if len(h.Calls) == 0 {
		return
	}
	c := &h.Calls[rng.IntN(len(h.Calls))]
	switch rng.IntN(4) {
	case 0, 1:
		c.Invoke = max(0, min(c.Invoke+int64(rng.IntN(9)-4), int64(ticks)))
	case 2:
		if c.Return > 0 {
			c.Return += int64(rng.IntN(9) - 4)
		}
	case 3:
		switch c.Kind {
		case history.KindRelease, history.KindCleanup:
			c.Outcome = [...]history.Outcome{history.Released, history.Lost, history.Unknown}[rng.IntN(3)]
		case history.KindExtend:
			c.Outcome = [...]history.Outcome{history.Extended, history.Lost, history.Unknown}[rng.IntN(3)]
		case history.KindAcquire:
			c.Outcome = [...]history.Outcome{history.Held, history.Unknown}[rng.IntN(2)]
		}
		if c.Return == 0 {
			c.Return = int64(ticks)
		}
	}
	if c.Outcome != history.Open {
		c.Return = min(max(c.Invoke, c.Return), int64(ticks))
	}
}

// inOrder reports whether each attempt's calls follow one another, as one
// client makes them: the rules rely on it.
func inOrder(h *history.History) bool {
	last := map[history.Attempt]int64{}
	acquired := map[history.Attempt]bool{}
	for _, c := range h.Calls {
		if c.Kind == history.KindAcquire || c.Kind == history.KindTry {
			acquired[c.Attempt] = true
		} else if !acquired[c.Attempt] {
			return false
		}
		if c.Invoke < last[c.Attempt] {
			return false
		}
		last[c.Attempt] = returned(&c)
	}
	return true
}

// fits searches all orders of the calls: whether some order within their
// stamps is one that a mutex (or a lease that may end at any moment) can do.
func fits(h *history.History, leased bool) bool {
	type op struct {
		call     history.Call
		n        int
		ret      int64
		optional bool
	}
	var ops []op
	index := map[history.Attempt]int{}
	for _, c := range h.Calls {
		if c.Outcome == history.Failed {
			continue
		}
		if _, ok := index[c.Attempt]; !ok {
			index[c.Attempt] = len(index)
		}
		o := op{call: c, n: index[c.Attempt], ret: returned(&c)}
		if c.Outcome == history.Unknown || c.Outcome == history.Open {
			o.ret, o.optional = forever, true
		}
		ops = append(ops, o)
	}
	if len(ops) > 30 || len(index) > 30 {
		panic("too many calls to search")
	}
	type state struct {
		done   uint64
		holder int
	}
	seen := map[state]bool{}
	var search func(s state) bool
	search = func(s state) bool {
		if seen[s] {
			return false
		}
		seen[s] = true
		bound, left := int64(forever), false
		for i, o := range ops {
			if s.done&(1<<i) == 0 && !o.optional {
				left = true
				bound = min(bound, o.ret)
			}
		}
		if !left {
			return true
		}
		for i, o := range ops {
			if s.done&(1<<i) != 0 || o.call.Invoke > bound {
				continue
			}
			// Stamps may be equal, but a client's calls follow one another.
			early := false
			for k := range i {
				early = early || ops[k].n == o.n && !ops[k].optional && s.done&(1<<k) == 0
			}
			// What a clean-up found and removed does not come back.
			for k, x := range ops {
				early = early || (o.call.Kind == history.KindAcquire || o.call.Kind == history.KindTry) && x.n == o.n && s.done&(1<<k) != 0 && x.call.Kind == history.KindCleanup && x.call.Outcome == history.Released
			}
			if early {
				continue
			}
			next := state{s.done | 1<<i, s.holder}
			mine := s.holder == o.n
			ok := true
			switch o.call.Kind {
			case history.KindAcquire, history.KindTry:
				if o.call.Outcome == history.Busy {
					ok = s.holder >= 0
				} else {
					ok = s.holder < 0 || leased
					next.holder = o.n
				}
			case history.KindRelease, history.KindCleanup:
				switch {
				case o.optional || o.call.Outcome == history.Released && o.call.Kind == history.KindCleanup:
					if mine {
						next.holder = -1
					}
				case o.call.Outcome == history.Released:
					ok, next.holder = mine, -1
				default:
					ok = !mine || leased
					if mine {
						next.holder = -1
					}
				}
			case history.KindExtend:
				switch {
				case o.optional:
				case o.call.Outcome == history.Extended:
					ok = mine
				default:
					ok = !mine || leased
					if mine {
						next.holder = -1
					}
				}
			}
			if ok && search(next) {
				return true
			}
		}
		return false
	}
	return search(state{0, -1})
}
