package checker

import (
	"maps"
	"slices"
	"sync"

	"github.com/lockbench/lockbench/history"
)

// Judge judges a surveyed history key by key. Open and Key may be called by
// several goroutines; call Report after they are done.
type Judge struct {
	clients  roster
	batches  map[history.Attempt]bool
	damage   int
	end      int64
	opt      Options
	suspects map[history.Attempt]Suspect
	general  []Suspect // those of all clients
	pauses   map[uint32][]stretch

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
			cl.last = max(cl.last, d.At)
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
	// unexplained: no suspect explains one of the overlaps.
	unexplained bool
}

func (p *part) judge() {
	holds, held := p.holds()
	// It is independent of the rest, and takes as long as one of the other rules.
	var counted sync.WaitGroup
	counted.Go(p.contended)
	p.overlaps(holds)
	counted.Wait()
	p.breaches()
	p.stuck(held)
	p.damaged()
}

// holds lists the holds in the clients' view.
func (p *part) holds() (holds []span, held []stretch) {
	holds, held = make([]span, 0, len(p.attempts)), make([]stretch, 0, len(p.attempts))
	for i := range p.attempts {
		a := &p.attempts[i]
		if !a.held(p.calls) {
			continue
		}
		h := p.hold(a)
		holds = append(holds, p.span(int32(i), h.Start, h.End))
		held = append(held, stretch{h.Start, h.End})
	}
	return holds, held
}

func sortAround(list []Witness) {
	for i := range list {
		slices.SortFunc(list[i].Around, func(a, b history.Call) int { return inTime(&a, &b) })
	}
}

// keys returns the keys that were judged, in order.
func (j *Judge) keys() []uint32 { return slices.Sorted(maps.Keys(j.parts)) }
