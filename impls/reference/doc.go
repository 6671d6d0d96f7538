// Package reference holds the controls: a lock that is known to be right, and
// one that is wrong on purpose. Both are served by lockbench's own controller
// over a unix socket, and go through the same workers, recording and checks as
// the real locks. A tester that accuses the right one, or misses the wrong
// one, is itself broken.
//
// The lock is the plainest that can be right: one process, one mutex, one
// monotonic clock. A hold ends at its release or exactly one TTL after the
// server granted or renewed it, and every grant of a key has a greater token
// than the one before.
//
// The package has both ends, the server and the recipes, since they share the
// words on the wire. It may import impls.
package reference
