package impls

import (
	"context"

	"github.com/lockbench/lockbench/history"
)

// Abilities that only some locks have are interfaces of their own, which a recipe's
// client implements too. Callers return errors.ErrUnsupported for a client without
// the ability.

// Reentrant is a Client whose holder may lock again: while it holds a key,
// Acquire and TryAcquire of that key succeed at once, whichever clients wait.
// Each success is a Hold with its own attempt, and the key is free when all of
// them are released, in any order.
type Reentrant interface {
	Client
	// Depth is how many holds of key this client has by its own count.
	Depth(key string) int
}

// ReadWriter is a Client with two kinds of holds: Acquire and TryAcquire lock
// the key for writing, which excludes all other clients; these lock it for
// reading, which excludes writers only. Cleanup serves both.
type ReadWriter interface {
	Client
	// AcquireRead is Acquire for reading.
	AcquireRead(ctx context.Context, key string, a Attempt) (Hold, error)
	// TryAcquireRead is TryAcquire for reading.
	TryAcquireRead(ctx context.Context, key string, a Attempt) (Hold, error)
}

// Batcher is a Client that locks several keys in one attempt, all or none. The
// Hold stands for all of them: one Extend, one Release. Its Key is the first.
// The keys must be distinct, and at least one.
type Batcher interface {
	Client
	// AcquireAll is Acquire of all keys.
	AcquireAll(ctx context.Context, keys []string, a Attempt) (Hold, error)
	// TryAcquireAll is TryAcquire of all keys: ErrBusy if one is taken, and
	// then none is acquired.
	TryAcquireAll(ctx context.Context, keys []string, a Attempt) (Hold, error)
	// CleanupAll is Cleanup of all keys: ErrLost if the attempt had none of them.
	CleanupAll(ctx context.Context, keys []string, a Attempt) error
}

// Lister is a Client that can read which attempts have something on the servers.
type Lister interface {
	Client
	// Left lists what attempts have under key, on every server, and with it the
	// errors of the servers that did not answer. What the recipe keeps on purpose is
	// not listed: counters, rows of free locks, parent nodes.
	Left(ctx context.Context, key string) ([]Entry, error)
}

// Entry is what one attempt has on a server.
type Entry struct {
	Server  string // its address; "" if the servers share the entry
	Attempt Attempt
}

// ParseEntries makes entries of the attempts among texts; other texts are no
// attempt's.
func ParseEntries(server string, texts ...string) (list []Entry) {
	for _, text := range texts {
		if a, err := history.ParseAttempt(text); err == nil {
			list = append(list, Entry{server, a})
		}
	}
	return list
}
