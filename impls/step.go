package impls

import (
	"context"
	"time"
)

// Step is a named place in a recipe, between two requests or beside one. What
// a client does there is nothing; a test or a fault may hold it there, or end
// it, to show what a crash or a pause at the worst place does.
type Step string

// The steps that recipes have in common. Each recipe lists its own beside
// them, in Info.Steps.
const (
	// StepWaiting: the lock was refused, or the attempt stands in the queue;
	// what follows is waiting. A polling recipe comes here before every sleep.
	StepWaiting Step = "waiting"
	// StepWoken: the server told a waiter that something changed, and the
	// waiter is about to look. A waiter that only asks again after a time of
	// its own never comes here.
	StepWoken Step = "woken"
	// StepRenewing: a hold's lease is about to be renewed in the background. Reach
	// is called on the goroutine that renews, while the client's own may be at
	// another step; the lease goes on meanwhile.
	StepRenewing Step = "renewing"
)

// Steps is told when a client comes to a step. Production clients have none.
type Steps interface {
	// Reach is called on the goroutine that runs the client's call, with the
	// call's context; StepRenewing on the one that renews. It may take its time,
	// and it may never come back.
	Reach(ctx context.Context, s Step)
}

// Renewals is told how leases are kept alive in the background, where the
// recipe does that itself and the client has no part in it.
type Renewals interface {
	// Renewed is called, on any goroutine, when a renewal of an attempt's hold
	// has been answered, or given up: it was sent at sent, by the clock's
	// Monotonic, and err names its outcome as that of an Extend. A renewal that
	// keeps several holds alive is told once for each. It must not block, nor
	// call the client.
	Renewed(key string, a Attempt, sent time.Time, err error)
}

// Reach tells cfg.Steps, if there is one, that a call has come to s.
func (cfg *Config) Reach(ctx context.Context, s Step) {
	if cfg.Steps != nil {
		cfg.Steps.Reach(ctx, s)
	}
}

// Renewed tells cfg.Renewals, if there is one, what a renewal of a hold came to.
func (cfg *Config) Renewed(key string, a Attempt, sent time.Time, err error) {
	if cfg.Renewals != nil {
		cfg.Renewals.Renewed(key, a, sent, err)
	}
}
