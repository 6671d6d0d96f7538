package impls

import (
	"context"
	"errors"
)

// Claims is a client's record of its attempts that may have something on the
// servers, for servers that do not store the owner. It is for the client's own
// goroutine.
type Claims[T any] map[Attempt]T

// Took records what an attempt may have after a request that takes a lock and
// returned err: nothing, unless that succeeded or its outcome is unknown. It
// returns err.
func (c Claims[T]) Took(a Attempt, what T, err error) error {
	if err == nil || errors.Is(err, ErrUnknown) {
		c[a] = what
	}
	return err
}

// Finish ends what an attempt may have with end, which sends the request, and
// forgets the attempt if the answer is definite. For an attempt without a
// record it returns ErrLost and sends nothing.
func (c Claims[T]) Finish(ctx context.Context, a Attempt, end func(context.Context, T) error) error {
	what, ok := c[a]
	if !ok {
		return ErrLost
	}
	return c.Settle(a, end(ctx, what))
}

// Settle forgets an attempt if err, of its release or clean-up, is definite. It
// returns err.
func (c Claims[T]) Settle(a Attempt, err error) error {
	if Definite(err) {
		delete(c, a)
	}
	return err
}
