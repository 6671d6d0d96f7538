package impls

import (
	"context"
	"errors"
)

// Claims is what a client remembers of those of its attempts that may have
// something on the servers, where these do not tell whose it is. It is for the
// client's own goroutine.
type Claims[T any] map[Attempt]T

// Took notes what an attempt may have after a request that takes a lock and
// came to err: nothing, unless that succeeded or is in doubt. It returns err.
func (c Claims[T]) Took(a Attempt, what T, err error) error {
	if err == nil || errors.Is(err, ErrUnknown) {
		c[a] = what
	}
	return err
}

// Finish ends what an attempt may have by end, which sends the request, and
// forgets the attempt once the answer is definite. One that may have nothing is
// ErrLost, and nothing is sent.
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
