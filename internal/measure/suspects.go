package measure

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/checker"
)

// suspects are possible explanations of violations: attempts whose clients a
// fault stopped, cut off or misled, and times in which servers may have lost
// their state. A slow holder of a lock without a lease is not one.
func (d *derivation) suspects() []checker.Suspect {
	var list []checker.Suspect
	for _, f := range d.faults {
		if !f.effective {
			continue
		}
		s := checker.Suspect{From: f.injected}
		if f.what.OnClient() {
			misleads := f.what.About().Misleads
			if s.Cause = d.cause(f); s.Cause == "" || !f.keyed && !misleads {
				continue
			}
			s.Attempt = f.attempt
			if misleads {
				// Every attempt of the client in that time uses the wrong clock, and the
				// times it writes mislead other clients for a lease.
				s.AllClients, s.To = true, f.end()+int64(d.scenario.TTL)
			}
		} else {
			if s.Cause = d.cause(f); s.Cause == "" {
				continue
			}
			// Requests that were sent before the end may be answered up to a
			// request's time later.
			s.AllClients, s.To = true, f.end()+int64(d.scenario.Timeout)
		}
		list = append(list, s)
	}
	// A client that could not reach a server may have lost the lock because of
	// that; a server that lost its state did so for all clients.
	slices.SortStableFunc(list, func(a, b checker.Suspect) int {
		return cmp.Compare(strings.Count(a.Cause, chaos.OutOfReach), strings.Count(b.Cause, chaos.OutOfReach))
	})
	if slices.Contains(d.info.GrantsPerServer, d.scenario.Topology) {
		// This cause needs no fault, and explains violations without one.
		list = append(list, checker.Suspect{Cause: apart, AllClients: true, From: math.MinInt64, To: math.MaxInt64})
	}
	return list
}

// apart is why a lock has a holder at each server.
const apart = "each server grants the lock by itself"

// cause describes how a fault can break a lock, or "".
func (d *derivation) cause(f fault) string {
	return chaos.Cause(chaos.Suspicion{
		Kind: f.what, Step: f.step, Where: f.target(), Leased: d.info.Bound.Leased(), Servers: d.guarantees(),
	})
}
