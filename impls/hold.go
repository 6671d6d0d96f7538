package impls

import (
	"context"
	"errors"
	"fmt"
)

// Grant is what all Holds have in common: what was granted to which attempt, and
// that an answer settles a release for good. A recipe's hold embeds it, and adds
// until when it may be trusted.
type Grant struct {
	key     string
	attempt Attempt
	fence   uint64
	free    func(context.Context) error
	over    bool // an answer has said so, definitely
}

// NewGrant is a grant of key to a; fence is 0 if the recipe has none. Free sends
// the recipe's release and names its outcome.
func NewGrant(key string, a Attempt, fence uint64, free func(context.Context) error) Grant {
	return Grant{key: key, attempt: a, fence: fence, free: free}
}

// Key is what is locked.
func (g *Grant) Key() string { return g.key }

// Attempt is the owner.
func (g *Grant) Attempt() Attempt { return g.attempt }

// Fence is the token of the grant, or 0.
func (g *Grant) Fence() uint64 { return g.fence }

// Extend is not supported: the lock is renewed by itself, or not at all.
func (g *Grant) Extend(context.Context) error {
	return fmt.Errorf("extend %s: this lock is not renewed on demand: %w", g.key, errors.ErrUnsupported)
}

// Release frees the lock. After a doubt, or where nothing was sent, it may be
// called again.
func (g *Grant) Release(ctx context.Context) error {
	if g.over {
		return ErrLost
	}
	err := g.free(ctx)
	g.over = Definite(err)
	return err
}
