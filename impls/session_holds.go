package impls

import (
	"context"
	"sync"
	"time"
)

// SessionHolds are the holds that one session keeps alive, all by the same renewals. It
// is safe for concurrent use; the zero value has none.
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

// Drop takes a hold out whose release is about to be sent: from then on nobody
// counts on it.
func (k *SessionHolds) Drop(a Attempt) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.holds, a)
}

// Renewing tells cfg.Steps that the session is about to be renewed, if a hold
// depends on it. A session without one is renewed too, and nobody is told.
func (k *SessionHolds) Renewing(ctx context.Context, cfg *Config) {
	k.mu.Lock()
	n := len(k.holds)
	k.mu.Unlock()
	if n > 0 {
		cfg.Reach(ctx, StepRenewing)
	}
}

// Renewed tells cfg.Renewals, for each of the holds, what a renewal came to that
// was sent at sent.
func (k *SessionHolds) Renewed(cfg *Config, sent time.Time, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for a, key := range k.holds {
		cfg.Renewed(key, a, sent, err)
	}
}
