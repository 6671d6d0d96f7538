package impls

import (
	"context"
	"time"
)

// Step is a named place in a recipe, between two requests or beside one. A test
// or a fault may stop or end a client there, to show the effect of a pause or
// crash at the worst place.
type Step string

// The steps of all recipes. Each recipe lists its own in Info.Steps.
const (
	// StepWaiting: the lock is busy, or the attempt has a place in the queue,
	// and the client waits next. A polling recipe reaches it before every
	// sleep.
	StepWaiting Step = "waiting"
	// StepWoken: the server has sent the waiter an event, and the waiter looks
	// next. A polling recipe never reaches it.
	StepWoken Step = "woken"
	// StepRenewing: the lease of a hold is about to be renewed in the
	// background. Reach is called on the renewing goroutine, while the client's
	// own may be at another step; the lease runs on meanwhile.
	StepRenewing Step = "renewing"
)

// Steps is called when a client reaches a step. Production clients have none.
type Steps interface {
	// Reach is called on the goroutine of the client's call, with the call's
	// context; for StepRenewing on the renewing goroutine. It may block, and
	// need not return.
	Reach(ctx context.Context, s Step)
}

// Renewals receives the results of background renewals, of recipes that renew by
// themselves.
type Renewals interface {
	// Renewed is called on any goroutine when a renewal of an attempt's hold
	// was answered or abandoned: it was sent at sent, by the clock's Monotonic,
	// and err names its outcome as for an Extend. A renewal of several holds is
	// reported for each. It must not block, nor call the client.
	Renewed(key string, a Attempt, sent time.Time, err error)
}

// Reach calls cfg.Steps, if set, for s.
func (cfg *Config) Reach(ctx context.Context, s Step) {
	if cfg.Steps != nil {
		cfg.Steps.Reach(ctx, s)
	}
}

// Renewed calls cfg.Renewals, if set, with the outcome of a renewal.
func (cfg *Config) Renewed(key string, a Attempt, sent time.Time, err error) {
	if cfg.Renewals != nil {
		cfg.Renewals.Renewed(key, a, sent, err)
	}
}
