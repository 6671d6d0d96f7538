package checker

import (
	"slices"

	"github.com/lockbench/lockbench/history"
)

// A key may be live and a client shut out from it for good: its handle fails since an
// answer was lost, or it waits for a wake-up that never comes. Two signs show it while
// others are granted the key:
//   - acquire after acquire fails before its client gives up, for longer than the
//     bound;
//   - one acquire waits three times as long as the bound, and over thirty grants a
//     client pass it by. A lock that chooses among its waiters by chance does that
//     once in e^30.
const (
	shutOutFailures = 3  // in a row
	shutOutGrants   = 3  // to others meanwhile
	shutOutTurns    = 30 // for each client that uses the key
	shutOutBounds   = 3
)

// ShutOutPeriod is a time in which a client asked for a key without success while others were
// granted it.
type ShutOutPeriod struct {
	StuckPeriod
	Client   uint32
	Acquires int // that failed, or 1 that waited
	Granted  int // to others
}

// failing is a row of one client's acquires that failed.
type failing struct {
	first, last int32 // calls
	n           int
}

// shutOut finds the client that was shut out longest.
func (p *part) shutOut(holds []span) {
	bound := int64(p.opt.Takeover)
	if !p.opt.JudgeClients || bound <= 0 || len(holds) == 0 {
		return
	}
	starts := make([]int64, len(holds))
	for i, x := range holds {
		starts[i] = x.s
	}
	slices.Sort(starts)
	rows, clients := map[uint32]failing{}, map[uint32]bool{}
	for i := range p.attempts {
		clients[p.client(&p.attempts[i])] = true
	}
	for i := range p.attempts {
		a := &p.attempts[i]
		c := &p.calls[a.acquire]
		if c.Kind != history.KindAcquire || a.inner {
			continue
		}
		end := p.ended(c)
		if p.opt.End > 0 {
			end = min(end, p.opt.End)
		}
		if awake, granted := p.passedBy(c.Client, c.Invoke, end, starts); awake > shutOutBounds*bound && granted > shutOutTurns*len(clients) {
			p.foundShutOut(failing{a.acquire, a.acquire, 1}, awake, granted, end)
		}
		row := rows[c.Client]
		failed := (c.Outcome == history.Failed || c.Outcome == history.Unknown) && returned(c) == end &&
			(p.opt.GivesUpAfter <= 0 || c.Return-c.Invoke < int64(p.opt.GivesUpAfter))
		switch {
		case !failed:
			delete(rows, c.Client)
			continue
		case row.n == 0 || c.Invoke-p.calls[row.last].Return > bound:
			row = failing{first: a.acquire}
		}
		row.last = a.acquire
		row.n++
		rows[c.Client] = row
		if row.n < shutOutFailures {
			continue
		}
		if awake, granted := p.passedBy(c.Client, p.calls[row.first].Invoke, end, starts); awake > bound && granted >= shutOutGrants {
			p.foundShutOut(row, awake, granted, end)
		}
	}
}

// passedBy returns how long the client could run between two moments, and how many
// grants there were meanwhile.
func (p *part) passedBy(client uint32, from, to int64, starts []int64) (awake int64, granted int) {
	for _, x := range p.undisturbed(client, from, to) {
		awake += x.to - x.from
		first, _ := slices.BinarySearch(starts, x.from)
		last, _ := slices.BinarySearch(starts, x.to)
		granted += last - first
	}
	return awake, granted
}

// undisturbed is when, between two moments, a client could run and no fault on servers
// is an excuse.
func (p *part) undisturbed(client uint32, from, to int64) []stretch {
	return without(without([]stretch{{from, max(from, to)}}, p.pauses[client]), p.exceptions)
}

func (p *part) foundShutOut(row failing, awake int64, granted int, end int64) {
	c := &p.calls[row.first]
	if awake <= p.rep.ShutOut.Length() {
		return
	}
	p.rep.ShutOut = ShutOutPeriod{StuckPeriod: StuckPeriod{Key: p.key, From: end - awake, To: end}, Client: c.Client, Acquires: row.n, Granted: granted}
	p.kept[ShutOut] = nil // of the longest only
	calls := []int32{row.first}
	if row.last != row.first {
		calls = append(calls, row.last)
	}
	p.keep(Witness{Class: ShutOut, Key: p.key, From: c.Invoke, To: end, Count: int64(row.n)}, calls...)
}
