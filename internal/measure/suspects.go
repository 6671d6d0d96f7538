package measure

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/internal/scenario"
)

// topologyReplicated is where servers choose another leader by themselves, or a
// keeper does, and what the old one had not passed on is lost.
const topologyReplicated = "replicated"

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
			if s.Cause = d.blame(f); s.Cause == "" || !f.keyed && f.what.Action != scenario.ActClock {
				continue
			}
			s.Attempt = f.attempt
			if f.what.Action == scenario.ActClock {
				// Every attempt that the client makes meanwhile goes by it, and what
				// it writes misleads the others for a lease.
				s.AllClients, s.To = true, f.end()+int64(d.scenario.TTL)
			}
		} else {
			if s.Cause = d.loss(f); s.Cause == "" {
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
		return cmp.Compare(strings.Count(a.Cause, outOfReach), strings.Count(b.Cause, outOfReach))
	})
	if slices.Contains(d.info.GrantsPerServer, d.scenario.Topology) {
		// That needs no fault, and explains what none does.
		list = append(list, checker.Suspect{Cause: apart, AllClients: true, From: math.MinInt64, To: math.MaxInt64})
	}
	return list
}

// apart is why a lock has a holder at each server.
const apart = "each server grants the lock by itself"

const outOfReach = "lease outlived by a holder that could not reach "

// blame names what a fault on a client makes of the lock that it holds or wants;
// "" if nothing.
func (d *derivation) blame(f fault) string {
	outlived := func(who string) string {
		if !d.info.Bound.Leased() {
			return ""
		}
		return "lease outlived by a " + who + " holder"
	}
	if f.what.Target == scenario.TargetStep && f.what.Action == scenario.ActPause && f.step != stepHeld {
		return fmt.Sprintf("a client paused at its step %s", f.step)
	}
	switch f.what.Action {
	case scenario.ActPause:
		return outlived("paused")
	case scenario.ActStarve:
		return outlived("starved")
	case scenario.ActCut, scenario.ActCutIn, scenario.ActCutOut, scenario.ActStall, scenario.ActDelay, scenario.ActThrottle:
		if !d.info.Bound.Leased() { // the server, or nobody, ended it with the connection
			return "the holder was cut off"
		}
		return "lease outlived by a holder that was cut off"
	case scenario.ActReset, scenario.ActRefuse:
		return "the holder's connection was broken"
	case scenario.ActReplyLost:
		return "an answer was lost on its way"
	case scenario.ActClock:
		return "the client's clock jumped"
	}
	return ""
}

// loss names what a fault on servers makes them lose; "" if nothing.
func (d *derivation) loss(f fault) string {
	where := f.target()
	switch f.what.Action {
	case scenario.ActKill, scenario.ActRestart, scenario.ActPause, scenario.ActCut, scenario.ActCutPeers, scenario.ActMove:
		if d.scenario.Topology == topologyReplicated {
			return fmt.Sprintf("the lock was lost in the failover of %s", where)
		}
		switch f.what.Action {
		case scenario.ActKill, scenario.ActRestart:
			return fmt.Sprintf("the lock was lost in the restart of %s", where)
		case scenario.ActMove:
			return ""
		}
		return fmt.Sprintf("the lease ended while %s was away", where)
	case scenario.ActCutClients, scenario.ActDelay, scenario.ActThrottle, scenario.ActSlowDisk:
		if d.info.Bound.Leased() {
			return outOfReach + where
		}
		return ""
	case scenario.ActClose, scenario.ActReset, scenario.ActRefuse:
		return fmt.Sprintf("%s lost its clients' connections", where)
	case scenario.ActClock:
		return fmt.Sprintf("the clock of %s jumped", where)
	case scenario.ActEvict:
		return fmt.Sprintf("%s evicted the lock", where)
	case scenario.ActFlush:
		return fmt.Sprintf("%s was told to forget its locks", where)
	}
	return ""
}
