package conformance

import (
	"slices"

	"github.com/lockbench/lockbench/impls"
)

// Check is something that a lock with certain properties must also do, in
// detail: the exact outcomes of calls, tokens, what lost answers leave.
type Check struct {
	Name string
	// Property says in a sentence what must hold.
	Property string
	// needs are the properties without which it cannot hold.
	needs []impls.Property
	// applies, if not nil, says which recipes it is also meant for.
	applies func(impls.Info) bool
	run     func(T, Subject)
	// leases says that it waits for leases to end, or to be renewed.
	leases bool
}

// Checks lists all checks that are meant for a recipe: those of which it
// promises all that they need.
func Checks(info impls.Info) []Check {
	return slices.DeleteFunc(checks(), func(c Check) bool {
		return slices.ContainsFunc(c.needs, func(p impls.Property) bool { return !info.Promises(p) }) ||
			c.applies != nil && !c.applies(info)
	})
}

func checks() []Check {
	ttl := func(i impls.Info) bool { return i.Bound == impls.BoundTTL }
	session := func(i impls.Info) bool { return i.Bound == impls.BoundSession }
	fences := func(i impls.Info) bool { return i.Fencing }
	tries := about(impls.NonBlocking)
	careful := about(impls.NonBlocking, impls.Symmetric, impls.ReportsLost)
	return []Check{
		{"exclusive", "of many clients that contend, one at a time holds the lock", about(impls.Exclusive), nil, exclusive, false},
		{"busy", "a try is refused while another, or the client itself, holds the lock, and granted when it is free", tries, nil, busy, false},
		{"symmetric", "only the attempt that holds the lock frees it", about(impls.NonBlocking, impls.Symmetric), nil, symmetric, false},
		{"once", "a hold can be released once, and not at a successor's cost", about(impls.NonBlocking, impls.Once), nil, once, false},
		{"hand-over", "a waiter is not granted a held lock, and is granted a freed one", about(impls.Blocking), nil, handOver, false},
		{"cancelled waiter", "a waiter that gave up leaves nothing behind", about(impls.NonBlocking, impls.Symmetric, impls.Blocking, impls.CleansUp), nil, cancelledWaiter, false},
		{"context over", "a call whose context is over has no effect and says so", tries, nil, contextOver, false},
		{"fencing", "the tokens of a key grow with every grant", about(impls.Exclusive), fences, fencing, false},
		{"no fencing", "a recipe without tokens gives none", nil, func(i impls.Info) bool { return !i.Fencing }, noFencing, false},
		{"lost answer to an acquire", "after the answer was lost, the clean-up's answer is definite and the lock free", careful, nil, acquireAnswerLost, false},
		{"lost answer to a release", "after the answer was lost, the clean-up's answer is definite and the lock free", careful, nil, releaseAnswerLost, false},
		{"unreachable", "where no server can be reached a call has no effect and soon fails, and afterwards the client works again", tries, nil, unreachable, false},
		{"lease's end", "the lease's end is counted from before the request was sent, by the client's clock, and not moved by setting that", nil, func(i impls.Info) bool { return i.Bound.Leased() }, leaseEnd, false},
		{"expiry", "a lease that ended passes to a waiter, not before its end, and its holder learns it on the next call", append(about(impls.Expiry), careful...), ttl, expiry, true},
		{"extend", "a lease that is extended lives on", about(impls.NonBlocking, impls.Extends), ttl, extend, true},
		{"kept session", "a session outlives its TTL while its client lives", tries, session, keptSession, true},
		{"lost session", "a client that was cut off learns of the loss, and no other is granted the lock before its lease's end", append(about(impls.SignalsLoss), careful...), session, lostSession, true},
	}
}

// Run runs one check. With *testing.T it is a test; anything else that
// implements T may be used to look at what it reports.
func (c Check) Run(t T, s Subject) {
	t.Helper()
	if s.CalmTTL > 0 && !c.leases {
		s.Config.TTL = s.CalmTTL
	}
	c.run(t, s.withDefaults())
}
