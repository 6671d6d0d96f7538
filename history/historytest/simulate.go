// Package historytest generates histories of any size and shape, for tests and
// measurements of their readers.
package historytest

import (
	"container/heap"
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// Load is a history to be made for the checker: that of a right lock which
// clients try to get again and again, on a clock of its own.
type Load struct {
	Calls   int
	Keys    int
	Clients int
	// Unknown is the share of calls whose answers are lost; their clients
	// clean up until they get an answer.
	Unknown float64
	// Hot makes clients ask again at once; otherwise they pause for a while.
	Hot bool
	// Invalid plants one double grant in the middle, which its clients see.
	Invalid bool
}

// The times of the simulation, in ns: a request travels that long on average,
// a client holds for a few round trips.
const (
	travel = 50_000
	hold   = 300_000
	pause  = 500_000
)

// Simulate generates the history of l, the same for the same seed. It has l.Calls
// calls, and a stream for each client.
func Simulate(l Load, seed uint64) *history.History {
	s := simulation{
		Load: l, rng: rand.New(rand.NewPCG(seed, 1)), holders: make([]int, l.Keys),
		h: &history.History{Calls: make([]history.Call, 0, l.Calls+l.Clients)},
	}
	for c := range l.Clients {
		s.clients = append(s.clients, simulated{id: uint32(c), now: 1 + s.rng.Int64N(travel)})
		s.next(&s.clients[c])
	}
	for k := range s.holders {
		s.holders[k] = noHolder
	}
	heap.Init(&s)
	for len(s.h.Calls) < l.Calls {
		s.step(&s.clients[0])
		heap.Fix(&s, 0)
	}
	end := int64(0)
	for i := range s.h.Calls {
		end = max(end, s.h.Calls[i].Return)
	}
	var seqs = make([]uint32, l.Clients)
	for i := range s.h.Calls {
		c := &s.h.Calls[i]
		c.Seq = seqs[c.Client]
		seqs[c.Client]++
	}
	for c, n := range seqs {
		s.h.Streams = append(s.h.Streams, history.Stream{Client: uint32(c), Records: int(n), Sealed: true, SealedAt: end + 1})
	}
	return s.h
}

const noHolder = -1

type simulation struct {
	Load
	rng     *rand.Rand
	clients []simulated // a heap by now
	holders []int       // by key: the client that holds it, or noHolder
	h       *history.History
	planted bool
}

// simulated is one client, always with one call under way, which the server
// carries out at the time now.
type simulated struct {
	id      uint32
	now     int64
	call    history.Call
	tries   uint32
	attempt history.Attempt
	holding bool
	doubt   bool // its last answer was lost
}

func (s *simulation) Len() int           { return len(s.clients) }
func (s *simulation) Less(i, j int) bool { return s.clients[i].now < s.clients[j].now }
func (s *simulation) Swap(i, j int)      { s.clients[i], s.clients[j] = s.clients[j], s.clients[i] }
func (s *simulation) Push(any)           {}
func (s *simulation) Pop() any           { return nil }

func (s *simulation) trip() int64 { return 1 + s.rng.Int64N(2*travel) }

// next lets c begin its next call: a clean-up after a doubt, a release if it
// holds, else a new try.
func (s *simulation) next(c *simulated) {
	c.call.Client = c.id
	switch {
	case c.doubt:
		c.call.Kind = history.KindCleanup
	case c.holding:
		c.call.Kind = history.KindRelease
		c.now += s.rng.Int64N(2 * hold)
	default:
		c.call.Kind = history.KindTry
		c.call.Key = uint32(s.rng.IntN(s.Keys))
		c.tries++
		binary.BigEndian.PutUint32(c.attempt[0:], c.id+1)
		binary.BigEndian.PutUint32(c.attempt[4:], c.tries)
		if s.Hot {
			c.now += s.rng.Int64N(travel / 5)
		} else {
			c.now += s.rng.Int64N(2 * pause)
		}
	}
	c.call.Attempt = c.attempt
	c.call.Invoke, c.call.Intended = c.now, c.now
	c.now += s.trip()
}

// step lets the server carry out c's call, records it, and begins the next.
func (s *simulation) step(c *simulated) {
	key, mine := c.call.Key, int(c.id)
	c.call.Return = c.now + s.trip()
	var double bool
	switch c.call.Kind {
	case history.KindTry:
		double = s.Invalid && !s.planted && len(s.h.Calls) > s.Calls/2 && s.holdsAt(c.call.Return, key)
		c.call.Outcome = history.Busy
		if s.holders[key] == noHolder || double {
			s.planted = s.planted || double
			c.call.Outcome, c.holding = history.Held, true
			if !double {
				s.holders[key] = mine
			}
		}
	default:
		c.call.Outcome = history.Released
		if !c.holding {
			c.call.Outcome = history.Lost // nothing of the attempt was there
		}
		if s.holders[key] == mine {
			s.holders[key] = noHolder
		}
		c.holding = false
	}
	if c.doubt = s.rng.Float64() < s.Unknown && !double; c.doubt {
		c.call.Outcome = history.Unknown
	}
	s.h.Calls = append(s.h.Calls, c.call)
	c.now = c.call.Return
	s.next(c)
}

// holdsAt reports whether at a future time a client will hold the key and know
// it: a grant to another client at that time would contradict it.
func (s *simulation) holdsAt(at int64, key uint32) bool {
	return slices.ContainsFunc(s.clients, func(c simulated) bool {
		return int(c.id) == s.holders[key] && c.call.Kind == history.KindRelease && c.call.Invoke > at
	})
}
