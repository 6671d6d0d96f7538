package measure

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/checker"
)

// suspects are what may explain violations: attempts whose clients a fault
// stopped, cut off or misled, and times in which servers may have lost what they
// knew. A holder of a lock without a lease has no such excuse for being slow.
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
				// Every attempt that the client makes meanwhile goes by it, and what
				// it writes misleads the others for a lease.
				s.AllClients, s.To = true, f.end()+int64(d.scenario.TTL)
			}
		} else {
			if s.Cause = d.cause(f); s.Cause == "" {
				continue
			}
			// What clients sent before the end may be answered a request's time
			// after it.
			s.AllClients, s.To = true, f.end()+int64(d.scenario.Timeout)
		}
		list = append(list, s)
	}
	// Who could not reach a server may have lost the lock for it; a server that
	// lost what it knew did so whoever reached it.
	slices.SortStableFunc(list, func(a, b checker.Suspect) int {
		return cmp.Compare(strings.Count(a.Cause, chaos.OutOfReach), strings.Count(b.Cause, chaos.OutOfReach))
	})
	if slices.Contains(d.info.GrantsPerServer, d.scenario.Topology) {
		// That needs no fault, and explains what none does.
		list = append(list, checker.Suspect{Cause: apart, AllClients: true, From: math.MinInt64, To: math.MaxInt64})
	}
	return list
}

// apart is why a lock has a holder at each server.
const apart = "each server grants the lock by itself"

// cause names what a fault makes of a lock, or "".
func (d *derivation) cause(f fault) string {
	return chaos.Cause(chaos.Suspicion{
		Kind: f.what, Step: f.step, Where: f.target(), Leased: d.info.Bound.Leased(), Servers: d.guarantees(),
	})
}
