package chaos

import (
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Evidence is what the records of a run show of one fault; package measure reads
// them.
type Evidence interface {
	// Neighbour is another client in the process of the one that was hit.
	Neighbour() (client uint32, ok bool)
	// Alive describes what the client that was hit did after its death, or "".
	Alive() string
	// Rejected reports whether a request failed, or its outcome is unknown, while
	// the fault was in force.
	Rejected() bool
	// Servers is what the servers guarantee.
	Servers() scenario.ServerFacts
}

// evidenced is an action whose effect the records must show, besides its target.
type evidenced interface {
	// missed returns why they do not, or "".
	missed(Evidence) string
}

// noticed is an action on connections whose effect is not just any.
type noticed interface {
	noticed(scenario.WireEffect) bool
}

// Unnoticed returns why no client or server can have noticed a fault on
// connections, or "". A nil effect is not on record.
func Unnoticed(k scenario.FaultKind, effect *scenario.WireEffect) string {
	about := k.About()
	if !about.Wire && !about.Links {
		return ""
	}
	if effect == nil {
		return "the fault log does not say what it did to the connections"
	}
	did := *effect != scenario.WireEffect{}
	if a, ok := k.Action.(noticed); ok {
		did = a.noticed(*effect)
	}
	if !did {
		return "no client can have noticed it: " + EffectText(*effect)
	}
	return ""
}

// Missed returns why the records do not show the effect of a fault's action, or
// "". Whether it hit the right target is another question.
func Missed(k scenario.FaultKind, e Evidence) string {
	if a, ok := k.Action.(evidenced); ok {
		return a.missed(e)
	}
	return ""
}

// ownProcess names the other clients that were stopped with a client, or "".
func ownProcess(e Evidence) string {
	if other, ok := e.Neighbour(); ok {
		return fmt.Sprintf("its process hosted client %d as well, which was stopped too", other)
	}
	return ""
}

// EffectText is an effect on connections in words.
func EffectText(e scenario.WireEffect) string {
	var list []string
	for _, x := range []struct {
		n         int64
		one, many string
	}{
		{e.HeldBytes, "held back 1 byte", "held back %d bytes"},
		{e.LostBytes, "swallowed 1 byte", "swallowed %d bytes"},
		{e.LateBytes, "1 byte came late", "%d bytes came late"},
		{e.Dials, "1 new connection was stopped", "%d new connections were stopped"},
		{e.Broken, "1 connection was broken", "%d connections were broken"},
		{e.Packets, "1 packet was dropped", "%d packets were dropped"},
	} {
		switch {
		case x.n == 1:
			list = append(list, x.one)
		case x.n > 1:
			list = append(list, fmt.Sprintf(x.many, x.n))
		}
	}
	if len(list) == 0 {
		return "nothing passed there meanwhile"
	}
	return strings.Join(list, ", ")
}

// Suspicion is an effective fault that may explain a violation.
type Suspicion struct {
	Kind    scenario.FaultKind
	Step    string               // at which it hit a client
	Where   string               // the servers that it hit
	Leased  bool                 // a hold may end while its owner lives
	Servers scenario.ServerFacts // what they guarantee
}

// suspected is an action that may explain a violation.
type suspected interface {
	// cause names what the fault makes of a lock, or "".
	cause(Suspicion) string
}

// Cause names what a fault makes of a lock, so that a violation may follow from
// it, or "".
func Cause(s Suspicion) string {
	if a, ok := s.Kind.Action.(suspected); ok {
		return a.cause(s)
	}
	return ""
}

// OutOfReach begins the cause of a holder that could not reach a server.
const OutOfReach = "lease outlived by a holder that could not reach "

// outlived is the cause where a holder did nothing for a while.
func outlived(s Suspicion, who string) string {
	if !s.Leased {
		return ""
	}
	return "lease outlived by a " + who + " holder"
}

// cutOff is the cause where a holder's requests or their answers did not arrive.
func cutOff(s Suspicion) string {
	if !s.Leased { // the server, or nothing, ended it with the connection
		return "the holder was cut off"
	}
	return "lease outlived by a holder that was cut off"
}

// unreachable is the cause where servers could not be reached.
func unreachable(s Suspicion) string {
	if !s.Leased {
		return ""
	}
	return OutOfReach + s.Where
}

// away is the cause where servers were silent.
func away(s Suspicion) string {
	if s.Servers.Failover {
		return "the lock was lost in the failover of " + s.Where
	}
	return fmt.Sprintf("the lease ended while %s was away", s.Where)
}

// restarted is the cause where servers were killed.
func restarted(s Suspicion) string {
	if s.Servers.Failover {
		return "the lock was lost in the failover of " + s.Where
	}
	return "the lock was lost in the restart of " + s.Where
}

// broken is the cause where connections were broken.
func broken(s Suspicion) string {
	if s.Kind.OnClient() {
		return "the holder's connection was broken"
	}
	return s.Where + " lost its clients' connections"
}

// Absence is what a fault takes away of servers of which most are left, as far
// as their clients have to recover from it.
type Absence struct {
	// Silent: the connections of the servers' clients stay, and nothing comes on
	// them.
	Silent bool
	// Unseats: the servers may have to agree on another leader, or to notice that
	// one of them has none.
	Unseats bool
	// HandsOver: the leader goes when another is ready, and the fault is confirmed when
	// that one leads.
	HandsOver bool
}

// absent is an action that takes servers away, in a manner that the others can
// make good.
type absent interface {
	absence(scenario.FaultKind, scenario.ServerFacts) (Absence, bool)
}

// Absent returns which servers a fault takes away, and whether the others can
// replace them.
func Absent(k scenario.FaultKind, s scenario.ServerFacts) (Absence, bool) {
	a, ok := k.Action.(absent)
	if !ok {
		return Absence{}, false
	}
	x, ok := a.absence(k, s)
	x.Unseats = x.Unseats && !s.Leaderless
	return x, ok
}
