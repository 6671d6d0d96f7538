// Package reference holds the controls: a lock that is known to be right, and
// one for each error that a lock can make, which makes it on purpose.
// lockbench's own controller serves them over a unix socket, and they use the
// same workers, recording and checks as the real locks. A tester that accuses
// the right one, or misses a wrong one, is broken itself.
//
// The lock is as simple as possible: one process, one mutex, one monotonic
// clock. A hold ends at its release or exactly one TTL after the server granted
// or renewed it, and every grant of a key has a greater token than the one
// before.
//
// The package has both the server and the recipes, since they share the
// protocol. It may import impls.
package reference
