package measure

import (
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/scenario"
)

// hit returns why the history does not show that a fault hit what it was meant
// to hit, or "".
func (d *derivation) hit(f fault) string {
	switch f.kind {
	case scenario.HolderPause, scenario.StepPause:
		if other, ok := d.neighbour(f.client); ok {
			return fmt.Sprintf("its process hosted client %d as well, who was stopped too", other)
		}
	case scenario.HolderKill, scenario.StepKill:
		if why := d.lives(f); why != "" {
			return why
		}
	default:
		return fmt.Sprintf("nothing is known of a fault %q", f.kind)
	}
	if f.kind == scenario.StepPause || f.kind == scenario.StepKill {
		return d.stood(f)
	}
	return d.held(f)
}

// held returns why a fault's client did not hold the lock from before the fault
// until it was lifted, or until it died.
func (d *derivation) held(f fault) string {
	// Stamps of two processes are only as good as their clocks.
	doubt := 2 * d.samples.ClockUncertaintyNS
	i := slices.IndexFunc(d.holds, func(h checker.Hold) bool {
		return h.Attempt == f.attempt && h.Key == f.key && h.Client == f.client
	})
	if i < 0 {
		return fmt.Sprintf("the history shows no hold of client %d under that attempt", f.client)
	}
	h := d.holds[i]
	switch {
	case h.Start >= f.injected:
		return fmt.Sprintf("client %d had not got the lock yet: the grant came %s after the fault", f.client, length(h.Start-f.injected))
	case h.Start+doubt >= f.injected:
		return fmt.Sprintf("the clocks leave open whether client %d had got the lock before the fault", f.client)
	case f.kills() && h.Ended != checker.StreamEnd:
		return fmt.Sprintf("client %d had let go of the lock, or lost it, %s before it died", f.client, length(f.injected-h.End))
	case f.kills():
		return ""
	case h.End > f.healing && h.End-doubt <= f.healing:
		return fmt.Sprintf("the clocks leave open whether client %d still held the lock when the fault was lifted", f.client)
	case h.End <= f.healing:
		return fmt.Sprintf("client %d held the lock until %s before the fault was lifted, not through it", f.client, length(f.healing-h.End))
	}
	return ""
}

// stood returns why a fault's client did not stand in the middle of a call of
// its attempt from before the fault until it was lifted, or until it died.
func (d *derivation) stood(f fault) string {
	calls := d.history.Calls
	for i := range calls {
		c := &calls[i]
		if c.Client != f.client || c.Attempt != f.attempt || isPoint(c.Kind) || c.Invoke >= f.injected {
			continue
		}
		if c.Outcome == history.Open || !f.kills() && c.Return > f.healing {
			return ""
		}
	}
	return fmt.Sprintf("the history shows no call of client %d under that attempt that was under way at the step %s all the time", f.client, f.step)
}

// isPoint reports whether a kind is a moment and no call.
func isPoint(k history.Kind) bool {
	return k == history.KindLost || k == history.KindAlso || k == history.KindEnqueued || k == history.KindFinal
}

// lives returns what the client of a kill did after its death, or "".
func (d *derivation) lives(f fault) string {
	if i := d.stream(f.client); i >= 0 && d.history.Streams[i].Sealed {
		return fmt.Sprintf("client %d ended its record itself, so it did not die", f.client)
	}
	if late := d.lastStamp(f.client) - f.injected; late > 2*d.samples.ClockUncertaintyNS {
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
