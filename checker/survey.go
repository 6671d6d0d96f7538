package checker

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/history"
)

// Survey is a first look at all calls of a history, in any order: it learns of
// each client how long it lived and where its record has holes, and which
// attempts are at several keys: what the judging of a single key cannot know. A history that is larger than memory is
// read twice: once through a Survey, and once key by key through its Judge.
//
// It must not be used by several goroutines at once.
type Survey struct {
	clients roster
	batches map[history.Attempt]bool // attempts at several keys
	damage  int
	end     int64 // the last stamp
}

type client struct {
	stream history.Stream
	sealed bool
	last   int64 // its last stamp, or its death
	runs   []run // of unbroken sequence numbers; only if the history is damaged
}

// roster holds the clients. It is asked for one at every step, so that those with
// small numbers, which are nearly all, are found without a map.
type roster struct {
	all   []*client
	small []*client
	large map[uint32]*client
}

// small numbers are less than that.
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

// of returns a client by its number, nil if it is not known.
func (c *roster) of(number uint32) *client {
	if int(number) < len(c.small) {
		return c.small[number]
	}
	return c.large[number]
}

// run is a stretch of a client's records in which none is missing.
type run struct {
	first, last uint32 // sequence numbers
	end         int64  // the last stamp in it
}

// NewSurvey begins a survey of a history with these streams and damage.
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

// Add takes note of c.
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

// joinRuns puts the pieces of runs that were met out of order together.
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

// runAt is the run that holds the record seq, as every record lies in one.
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
