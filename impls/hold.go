package impls

import (
	"context"
	"errors"
	"fmt"
)

// Grant is the common part of all Holds: what was granted to which attempt, and
// that a definite answer ends it. A recipe's hold embeds it, and adds its
// lease.
type Grant struct {
	key     string
	attempt Attempt
	fence   uint64
	free    func(context.Context) error
	over    bool // an answer was definite
}

// NewGrant is a grant of key to a; fence is 0 if the recipe has none. Free
// sends the recipe's release and returns its outcome.
func NewGrant(key string, a Attempt, fence uint64, free func(context.Context) error) Grant {
	return Grant{key: key, attempt: a, fence: fence, free: free}
}

// Key is the locked key.
func (g *Grant) Key() string { return g.key }

// Attempt is the owner.
func (g *Grant) Attempt() Attempt { return g.attempt }

// Fence is the fencing token of the grant, or 0.
func (g *Grant) Fence() uint64 { return g.fence }

// Extend is not supported: the recipe renews by itself, or not at all.
func (g *Grant) Extend(context.Context) error {
	return fmt.Errorf("extend %s: this recipe does not renew on demand: %w", g.key, errors.ErrUnsupported)
}

// Release frees the lock. It may be repeated after an unknown outcome, or if
// nothing was sent.
func (g *Grant) Release(ctx context.Context) error {
	if g.over {
		return ErrLost
	}
	err := g.free(ctx)
	g.over = Definite(err)
	return err
}
