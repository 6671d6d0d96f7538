package impls

import "context"

// What only some locks can do is an interface of its own, which the Client of
// such a recipe implements besides. Whoever asks a client for an ability that
// it lacks answers errors.ErrUnsupported.

// Reentrant is a Client whose lock its holder may take again: while it holds a
// key, Acquire and TryAcquire of that key succeed at once, whoever waits. Each
// success is a Hold with an attempt of its own, and the key is free when as
// many have been released as were granted, in whatever order.
type Reentrant interface {
	Client
	// Depth is how often this client holds key by its own count.
	Depth(key string) int
}

// ReadWriter is a Client with two kinds of holds: Acquire and TryAcquire take
// the key for writing, which excludes everybody; these take it for reading,
// which excludes writers only. Cleanup serves both.
type ReadWriter interface {
	Client
	// AcquireRead is Acquire for reading.
	AcquireRead(ctx context.Context, key string, a Attempt) (Hold, error)
	// TryAcquireRead is TryAcquire for reading.
	TryAcquireRead(ctx context.Context, key string, a Attempt) (Hold, error)
}

// Batcher is a Client that takes several keys in one attempt, all or none. The
// Hold stands for all of them: one Extend, one Release. Its Key is the first.
// The keys must be distinct, and at least one.
type Batcher interface {
	Client
	// AcquireAll is Acquire of all keys.
	AcquireAll(ctx context.Context, keys []string, a Attempt) (Hold, error)
	// TryAcquireAll is TryAcquire of all keys; ErrBusy if one is taken, and
	// then none is.
	TryAcquireAll(ctx context.Context, keys []string, a Attempt) (Hold, error)
	// CleanupAll is Cleanup of all keys: ErrLost if nothing of the attempt was
	// there on any.
	CleanupAll(ctx context.Context, keys []string, a Attempt) error
}
