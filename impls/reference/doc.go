// Package reference holds the controls: a lock that is known to be right, and
// one for each thing that a lock can do wrong, which does it on purpose. All
// are served by lockbench's own controller over a unix socket, and go through
// the same workers, recording and checks as the real locks. A tester that
// accuses the right one, or misses a wrong one, is itself broken.
//
// The lock is the plainest that can be right: one process, one mutex, one
// monotonic clock. A hold ends at its release or exactly one TTL after the
// server granted or renewed it, and every grant of a key has a greater token
// than the one before.
//
// The package has both ends, the server and the recipes, since they share the
// words on the wire. It may import impls.
package reference
