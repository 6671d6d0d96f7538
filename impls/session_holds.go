package impls

import (
	"context"
	"sync"
	"time"
)

// SessionHolds are the holds that one session renews. It is safe for concurrent
// use; the zero value has none.
type SessionHolds struct {
	mu    sync.Mutex
	holds map[Attempt]string // their keys
}

// Add adds a hold.
func (k *SessionHolds) Add(key string, a Attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.holds == nil {
		k.holds = map[Attempt]string{}
	}
	k.holds[a] = key
}

// Drop removes a hold whose release is about to be sent, so that no renewal is
// reported for it.
func (k *SessionHolds) Drop(a Attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.holds, a)
}

// Renewing reaches StepRenewing before a renewal of the session, unless the
// session has no holds.
func (k *SessionHolds) Renewing(ctx context.Context, cfg *Config) {
	k.mu.Lock()
	n := len(k.holds)
	k.mu.Unlock()
	if n > 0 {
		cfg.Reach(ctx, StepRenewing)
	}
}

// Renewed reports to cfg.Renewals, for each hold, the outcome of a renewal that
// was sent at sent.
func (k *SessionHolds) Renewed(cfg *Config, sent time.Time, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for a, key := range k.holds {
		cfg.Renewed(key, a, sent, err)
	}
}
