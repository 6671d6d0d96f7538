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

// simulate is a world of a lock without readers, tokens or defects.
func simulate(rng *rand.Rand, clients, ticks int, ttl int64, tries bool) *builder {
	w := world{clients: clients, ticks: ticks, ttl: ttl, lossy: 8, eager: 1, hold: 3}
	if tries {
		w.tries = 2
	}
	return w.run(rng)
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

// inOrder reports whether each client's calls follow one another, and those of
// an attempt its acquire: the rules rely on it.
func inOrder(h *history.History) bool {
	last := map[uint32]int64{}
	acquired := map[history.Attempt]bool{}
	for _, c := range h.Calls {
		if c.Kind == history.KindAcquire || c.Kind == history.KindTry {
			acquired[c.Attempt] = true
		} else if !acquired[c.Attempt] {
			return false
		}
		if t, ok := last[c.Client]; ok && c.Invoke <= t {
			return false
		}
		last[c.Client] = returned(&call{Invoke: c.Invoke, Return: c.Return, Outcome: c.Outcome})
	}
	return true
}
