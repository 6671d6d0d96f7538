package checker

import (
	"maps"
	"slices"
	"sync"

	"github.com/lockbench/lockbench/history"
)

// Judge judges a surveyed history key by key. Key may be called by several
// goroutines; Report once they are done.
type Judge struct {
	clients  map[uint32]*client
	batches  map[history.Attempt]bool
	damage   int
	end      int64
	opt      Options
	suspects map[history.Attempt]Suspect
	pauses   map[uint32][]stretch

	mu    sync.Mutex
	parts map[uint32]*part
}

// Judge ends the survey: its keys can be judged now.
func (s *Survey) Judge(o Options) *Judge {
	j := &Judge{
		clients: s.clients, batches: s.batches, damage: s.damage, end: s.end, opt: o,
		suspects: make(map[history.Attempt]Suspect, len(o.Suspects)),
		pauses:   map[uint32][]stretch{},
		parts:    map[uint32]*part{},
	}
	for _, d := range o.Died {
		// A client that sealed its record had left before.
		if cl := j.clients[d.Client]; cl != nil && !cl.sealed {
			cl.last = max(cl.last, d.At)
		}
	}
	for _, cl := range j.clients {
		cl.joinRuns()
	}
	for _, x := range o.Suspects {
		j.suspects[x.Attempt] = x
	}
	for _, p := range o.Paused {
		j.pauses[p.Client] = append(j.pauses[p.Client], stretch{p.From, p.To})
	}
	for c, p := range j.pauses {
		j.pauses[c] = union(p)
	}
	return j
}

// Key judges one key, given every call about it in any order: those that name
// it, and all calls of the batches of which it is a further key. A key is
// judged once.
func (j *Judge) Key(key uint32, calls []history.Call) {
	of := make([]int32, len(calls))
	for i := range of {
		of[i] = int32(i)
	}
	j.judge(key, calls, of)
}

// judge is Key of those calls that of names.
func (j *Judge) judge(key uint32, calls []history.Call, of []int32) {
	p := j.open(key, calls, of)
	p.judge()
	p.surround(of)
	p.calls, p.attempts = nil, nil
	j.mu.Lock()
	defer j.mu.Unlock()
	j.parts[key] = p
}

// part is the work on one key.
type part struct {
	*Judge
	key      uint32
	calls    []history.Call
	attempts []attempt // by the acquire's invoke
	guarded  []int32   // the register's calls
	rep      Report    // what adds up over keys
	causes   map[string]int64
	kept     map[Class][]Witness
	// unexplained: there is an overlap that no suspect explains.
	unexplained bool
}

func (j *Judge) open(key uint32, calls []history.Call, of []int32) *part {
	p := &part{Judge: j, key: key, calls: calls, causes: map[string]int64{}, kept: map[Class][]Witness{}}
	p.rep.Breaches = map[Class]int64{}
	byTime := func(a, b int32) int { return inTime(&calls[a], &calls[b]) }
	if !slices.IsSortedFunc(of, byTime) {
		slices.SortFunc(of, byTime)
	}
	p.fold(of)
	if j.opt.Reentrant {
		p.nest()
	}
	return p
}

func (p *part) judge() {
	var holds []span
	var held []stretch
	for i := range p.attempts {
		a := &p.attempts[i]
		if a.malformed {
			if !a.also {
				p.rep.Malformed++
			}
			continue
		}
		if !a.held(p.calls) {
			continue
		}
		h := p.hold(a)
		holds = append(holds, p.span(int32(i), h.Start, h.End))
		held = append(held, stretch{h.Start, h.End})
	}
	p.overlaps(holds)
	p.breaches()
	p.contended()
	p.stuck(held)
	p.damaged()
}

// surround adds to each witness all calls of the attempts that it shows.
func (p *part) surround(of []int32) {
	involved := map[history.Attempt][]*Witness{}
	for _, class := range classes {
		for i := range p.kept[class] {
			w := &p.kept[class][i]
			for _, c := range w.Calls {
				if list := involved[c.Attempt]; len(list) == 0 || list[len(list)-1] != w {
					involved[c.Attempt] = append(list, w)
				}
			}
		}
	}
	if len(involved) == 0 {
		return
	}
	for _, i := range of {
		for _, w := range involved[p.calls[i].Attempt] {
			w.Around = append(w.Around, p.calls[i])
		}
	}
	for _, list := range p.kept {
		for i := range list {
			slices.SortFunc(list[i].Around, func(a, b history.Call) int { return inTime(&a, &b) })
		}
	}
}

// keys returns the keys that were judged, in order.
func (j *Judge) keys() []uint32 { return slices.Sorted(maps.Keys(j.parts)) }
