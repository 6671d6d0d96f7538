package checker

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// Survey is the first pass over all calls of a history, in any order. It collects
// what the judging of a single key needs to know of the others: how long each
// client lived, where its record has holes, and which attempts cover several
// keys. A history larger than memory is read twice: through a Survey, and then key
// by key through its Judge.
//
// It is not safe for concurrent use.
type Survey struct {
	clients roster
	batches map[history.Attempt]bool // attempts at several keys
	damage  int
	end     int64 // the last stamp
}

type client struct {
	stream history.Stream
	sealed bool
	died   bool
	last   int64 // its last stamp, or its death
	runs   []run // of unbroken sequence numbers; only if the history is damaged
}

// roster finds clients by number. Nearly all numbers are small, and are looked up
// without a map, since every step of the rules asks for a client.
type roster struct {
	all   []*client
	small []*client
	large map[uint32]*client
}

// small bounds the numbers that are looked up without a map.
const small = 1 << 12

func (c *roster) add(number uint32, cl *client) {
	c.all = append(c.all, cl)
	if number >= small {
		if c.large == nil {
			c.large = map[uint32]*client{}
		}
		c.large[number] = cl
		return
	}
	if n := int(number) + 1; n > len(c.small) {
		c.small = append(c.small, make([]*client, n-len(c.small))...)
	}
	c.small[number] = cl
}

// of returns a client by its number, or nil.
func (c *roster) of(number uint32) *client {
	if int(number) < len(c.small) {
		return c.small[number]
	}
	return c.large[number]
}

// run is a part of a client's records in which none is missing.
type run struct {
	first, last uint32 // sequence numbers
	end         int64  // the last stamp in it
}

// NewSurvey starts a survey of a history with these streams and damage.
func NewSurvey(streams []history.Stream, damage []history.Damage) *Survey {
	s := &Survey{batches: map[history.Attempt]bool{}, damage: len(damage)}
	for _, x := range streams {
		cl := &client{stream: x, sealed: x.Sealed && s.damage == 0}
		if cl.sealed {
			cl.last = x.SealedAt
			s.end = max(s.end, cl.last)
		}
		s.clients.add(x.Client, cl)
	}
	return s
}

// Add adds a call.
func (s *Survey) Add(c *history.Call) {
	cl := s.clients.of(c.Client)
	if cl == nil {
		cl = &client{stream: history.Stream{Client: c.Client, Worker: c.Client}}
		s.clients.add(c.Client, cl)
	}
	stamp := max(c.Invoke, c.Return)
	cl.last = max(cl.last, stamp)
	s.end = max(s.end, stamp)
	if c.Kind == history.KindAlso {
		s.batches[c.Attempt] = true
	}
	if s.damage == 0 {
		return
	}
	if n := len(cl.runs); n > 0 && c.Seq == cl.runs[n-1].last+1 {
		cl.runs[n-1].last = c.Seq
		cl.runs[n-1].end = max(cl.runs[n-1].end, stamp)
		return
	}
	cl.runs = append(cl.runs, run{first: c.Seq, last: c.Seq, end: stamp})
}

// joinRuns joins the runs that were added out of order.
func (cl *client) joinRuns() {
	slices.SortFunc(cl.runs, func(a, b run) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last)) })
	joined := cl.runs[:0]
	for _, r := range cl.runs {
		if n := len(joined); n > 0 && int64(r.first) <= int64(joined[n-1].last)+1 {
			joined[n-1].last = max(joined[n-1].last, r.last)
			joined[n-1].end = max(joined[n-1].end, r.end)
			continue
		}
		joined = append(joined, r)
	}
	cl.runs = joined
}

// runAt returns the run that contains the record seq; every record is in one.
func (cl *client) runAt(seq uint32) run {
	i, _ := slices.BinarySearchFunc(cl.runs, seq, func(x run, seq uint32) int {
		switch {
		case x.last < seq:
			return -1
		case x.first > seq:
			return 1
		}
		return 0
	})
	return cl.runs[i]
}
