package measure

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// hit returns why the history and the log do not show that a fault hit its
// intended target, or "".
func (d *derivation) hit(f fault) string {
	if why := chaos.Unnoticed(f.what, f.effect); why != "" {
		return why
	}
	if !f.what.OnClient() {
		if f.what.Target == scenario.TargetLeader && !f.nodes[0].Leader {
			return fmt.Sprintf("%s did not lead when it fired", f.nodes[0].Name)
		}
		return cmp.Or(d.idle(f), chaos.Missed(f.what, evidence{d, f}))
	}
	if why := chaos.Missed(f.what, evidence{d, f}); why != "" {
		return why
	}
	switch {
	case f.what.Target == scenario.TargetNonholder:
		return d.heldNothing(f)
	case f.step == stepReleasing, f.what.Target == scenario.TargetWaiter, f.what.Target == scenario.TargetStep && f.step != stepHeld:
		return d.stood(f) // a client at releasing has its release on record, so its hold is over
	}
	return d.held(f)
}

// The places of a workload at which a client has the lock.
const (
	stepHeld      = "held"
	stepReleasing = "releasing"
)

// evidence is what the history shows of one fault.
type evidence struct {
	*derivation
	fault fault
}

func (e evidence) Neighbour() (uint32, bool) { return e.neighbour(e.fault.client) }

func (e evidence) Alive() string { return e.lives(e.fault) }

func (e evidence) Rejected() bool { return e.rejected(e.fault) }

func (e evidence) Servers() scenario.ServerFacts { return e.guarantees() }

// heldNothing returns which lock a client of the control group held when the
// fault hit it, or "".
func (d *derivation) heldNothing(f fault) string {
	for _, h := range d.holds {
		if h.Client == f.client && h.Start <= f.injected && h.End > f.injected {
			return fmt.Sprintf("client %d was to hold nothing, and held k%d when it was hit", f.client, h.Key)
		}
	}
	return ""
}

// held returns why a fault's client did not hold the lock when the fault hit it;
// and, where it cannot act meanwhile, until the fault was lifted or it died.
func (d *derivation) held(f fault) string {
	// Stamps of two processes are no more exact than their clocks.
	doubt := 2 * d.samples.ClockUncertaintyNS
	i := slices.IndexFunc(d.holds, func(h checker.Hold) bool {
		return h.Attempt == f.attempt && h.Key == f.key && h.Client == f.client
	})
	if i < 0 {
		return fmt.Sprintf("the history shows no hold of client %d under that attempt", f.client)
	}
	h := d.holds[i]
	until := f.healing
	if !f.what.About().Freezes {
		// The client goes on, and may release the lock while the fault keeps its
		// requests from the servers.
		until = max(f.injected, f.confirmed)
	}
	switch {
	case h.Start >= f.injected:
		return fmt.Sprintf("client %d had not got the lock yet: the grant came %s after the fault", f.client, length(h.Start-f.injected))
	case h.Start+doubt >= f.injected:
		return fmt.Sprintf("the clocks leave open whether client %d had got the lock before the fault", f.client)
	case f.kills() && h.Ended != checker.StreamEnd:
		return fmt.Sprintf("client %d had let go of the lock, or lost it, %s before it died", f.client, length(f.end()-h.End))
	case f.kills():
		return ""
	case h.End > until && h.End-doubt <= until:
		return fmt.Sprintf("the clocks leave open whether client %d still held the lock when the fault was lifted", f.client)
	case h.End <= until && until == f.healing:
		return fmt.Sprintf("client %d held the lock until %s before the fault was lifted, not through it", f.client, length(until-h.End))
	case h.End <= until:
		return fmt.Sprintf("client %d had let go of the lock %s before the fault was in force", f.client, length(until-h.End))
	}
	return ""
}

// stood returns why a fault's client did not stand in the middle of a call of
// its attempt from before the fault until it was in force; and, where it cannot
// act meanwhile, until the fault was lifted or it died.
func (d *derivation) stood(f fault) string {
	calls := d.history.Calls
	until := f.healing
	if !f.what.About().Freezes {
		until = max(f.injected, f.confirmed) // what follows is up to the client
	}
	for i := range calls {
		c := &calls[i]
		if c.Client != f.client || c.Attempt != f.attempt || isPoint(c.Kind) || c.Invoke >= f.injected {
			continue
		}
		if c.Outcome == history.Open || !f.kills() && c.Return > until {
			return ""
		}
	}
	return fmt.Sprintf("the history shows no call of client %d under that attempt that was under way at the step %s all the time", f.client, f.step)
}

// isPoint reports whether a kind is a moment and no call.
func isPoint(k history.Kind) bool {
	return k == history.KindLost || k == history.KindAlso || k == history.KindEnqueued || k == history.KindFinal
}

// lives describes what the client of a kill did after its death, or "".
func (d *derivation) lives(f fault) string {
	if i := d.stream(f.client); i >= 0 && d.history.Streams[i].Sealed {
		return fmt.Sprintf("client %d ended its record itself, so it did not die", f.client)
	}
	if late := d.last[f.client] - f.end(); late > 2*d.samples.ClockUncertaintyNS {
		return fmt.Sprintf("client %d was still at work %s after it was killed", f.client, length(late))
	}
	return ""
}

// stream is the index of a client's stream, or -1.
func (d *derivation) stream(client uint32) int {
	return slices.IndexFunc(d.history.Streams, func(s history.Stream) bool { return s.Client == client })
}

// neighbours lists the other clients in the process of a client.
func (d *derivation) neighbours(client uint32) []uint32 {
	i := d.stream(client)
	if i < 0 {
		return nil
	}
	var others []uint32
	for _, s := range d.history.Streams {
		if s.Client != client && s.Client != history.Controller && s.Worker == d.history.Streams[i].Worker {
			others = append(others, s.Client)
		}
	}
	return others
}

// neighbour finds another client in the process of a client.
func (d *derivation) neighbour(client uint32) (uint32, bool) {
	others := d.neighbours(client)
	if len(others) == 0 {
		return 0, false
	}
	return others[0], true
}
