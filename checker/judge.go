package checker

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/lockbench/lockbench/history"
)

// Judge judges a surveyed history key by key. Open and Key may be called by
// several goroutines; call Report after they are done.
type Judge struct {
	clients    roster
	batches    map[history.Attempt]bool
	damage     int
	end        int64
	opt        Options
	suspects   map[history.Attempt]Suspect
	general    []Suspect // those of all clients
	pauses     map[uint32][]stretch
	disturbed  []stretch
	exceptions []stretch // joined
	stalled    []stretch // joined: the exceptions, and when some client could not run

	forReading atomic.Bool // some attempts are for reading

	mu    sync.Mutex
	parts map[uint32]*part
}

// Judge ends the survey and makes its keys ready to be judged.
func (s *Survey) Judge(o Options) *Judge {
	j := &Judge{
		clients: s.clients, batches: s.batches, damage: s.damage, end: s.end, opt: o,
		suspects: make(map[history.Attempt]Suspect, len(o.Suspects)),
		pauses:   map[uint32][]stretch{},
		parts:    map[uint32]*part{},
	}
	for _, d := range o.Died {
		// A client with a sealed record had left before.
		if cl := j.clients.of(d.Client); cl != nil && !cl.sealed {
			cl.last, cl.died = max(cl.last, d.At), true
		}
	}
	for _, cl := range j.clients.all {
		cl.joinRuns()
	}
	for _, x := range o.Suspects {
		if x.AllClients {
			j.general = append(j.general, x)
		} else {
			j.suspects[x.Attempt] = x
		}
	}
	for _, p := range o.Paused {
		j.pauses[p.Client] = append(j.pauses[p.Client], stretch{p.From, p.To})
	}
	for c, p := range j.pauses {
		j.pauses[c] = union(p)
	}
	for _, x := range o.Exceptions {
		j.exceptions = append(j.exceptions, stretch{x.From, x.To})
	}
	j.exceptions = union(j.exceptions)
	j.stalled = slices.Clone(j.exceptions)
	for _, p := range o.Paused {
		j.stalled = append(j.stalled, stretch{p.From, p.To})
	}
	j.stalled = union(j.stalled)
	for _, x := range o.Disturbed {
		j.disturbed = append(j.disturbed, stretch{x.From, x.To})
	}
	return j
}

// part is the work on one key.
type part struct {
	*Judge
	key         uint32
	calls       []call
	ids         chunkedList[history.Attempt] // by the attempt's number in calls
	attempts    []attempt                    // by the acquire's invoke, without malformed ones
	alone       []int32                      // busy tries without any other call, not in attempts
	sharing     bool                         // some attempts are for reading
	guarded     []history.Call               // the register's calls
	rep         Report                       // the counts that add up over keys
	releaseList []release                    // see foreign
	causes      map[string]int64             // of overlaps, lost updates and stale writes
	breached    map[string]int64             // of breaches
	// blamed is, by attempt, the cause of an overlap that it took part in.
	blamed map[history.Attempt]string
	kept   map[Class][]Witness
	proofs map[int32][]*history.Call // by call number: where witnesses contain it
	leases map[int32][]stretch       // by attempt number: answers that gave a lease, and its end
	// unexplained: no suspect explains one of the overlaps.
	unexplained bool
}

func (p *part) judge() {
	if p.sharing {
		p.forReading.Store(true)
	}
	holds, held, least := p.holds()
	// It is independent of the rest, and takes as long as one of the other rules.
	var counted sync.WaitGroup
	counted.Go(p.contended)
	p.overlaps(holds)
	counted.Wait()
	p.breaches()
	p.stuck(held, least)
	p.shutOut(holds)
	p.damaged()
}

// holds lists the holds in the clients' view, and when the key was held: with holds
// whose end is missing lasting up to the next one, and at the least.
func (p *part) holds() (holds []span, held, least []stretch) {
	holds, held = make([]span, 0, len(p.attempts)), make([]stretch, 0, len(p.attempts))
	var endless []int32 // attempts
	for i := range p.attempts {
		a := &p.attempts[i]
		if !a.holding(p.calls) {
			continue
		}
		h := p.hold(a)
		if p.endMissing(&h) {
			endless = append(endless, int32(i))
		}
		holds = append(holds, p.span(int32(i), h.Start, h.End))
		held = append(held, stretch{h.Start, h.End})
	}
	if len(endless) == 0 {
		return holds, held, held
	}
	least = slices.Clone(held)
	byStart := slices.Clone(holds)
	sortSpans(byStart, observed)
	for _, i := range endless {
		h := p.hold(&p.attempts[i])
		until := int64(forever)
		after, _ := slices.BinarySearchFunc(byStart, h.Start+1, func(x span, t int64) int { return cmp.Compare(x.s, t) })
		if after < len(byStart) {
			until = byStart[after].s
		}
		held = append(held, stretch{h.Start, until})
		readers := func(x span) bool { return x.shared && p.attempts[i].shared }
		if k := slices.IndexFunc(byStart[after:], func(x span) bool { return !readers(x) }); k >= 0 && !p.lapsed(&p.attempts[i], byStart[after+k].s) {
			p.rep.Unended++
		}
	}
	return holds, held, least
}

func sortAround(list []Witness) {
	for i := range list {
		slices.SortFunc(list[i].Around, func(a, b history.Call) int { return inTime(&a, &b) })
	}
}

// keys returns the keys that were judged, in order.
func (j *Judge) keys() []uint32 { return slices.Sorted(maps.Keys(j.parts)) }
