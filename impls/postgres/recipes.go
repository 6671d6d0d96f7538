package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// The topologies. A replicated one has a primary and a streaming replica that
// may be promoted; in a pooled one clients connect through PgBouncer, which
// gives them another server connection for each transaction.
const (
	single     = "single"
	replicated = "replicated"
	pooled     = "pooled"
)

// Recipes lists the recipes of this package.
func Recipes() []impls.Recipe { return []impls.Recipe{leaseRow{}, advisory{}} }

// started returns why a call whose context is over sends nothing, or nil.
func started(ctx context.Context, doing, key string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, impls.NotSent(err))
	}
	return nil
}

// onDisconnect is the takeover bound of locks that end with a connection: the
// server ends a session as soon as it sees the end of its connection.
func onDisconnect(time.Duration) time.Duration { return time.Second }
