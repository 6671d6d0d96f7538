package recipetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// Renewal is what a client was told of one renewal of a hold.
type Renewal struct {
	Key     string
	Attempt impls.Attempt
	Sent    time.Time
	Err     error
}

// Renewals is an impls.Renewals that keeps what it is told. It is safe for
// concurrent use.
type Renewals struct {
	mu      sync.Mutex
	told    []Renewal
	changed chan struct{} // closed, and made anew, when it is told
}

// NewRenewals has been told of nothing.
func NewRenewals() *Renewals { return &Renewals{changed: make(chan struct{})} }

// Renewed implements impls.Renewals.
func (r *Renewals) Renewed(key string, a impls.Attempt, sent time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told = append(r.told, Renewal{key, a, sent, err})
	close(r.changed)
	r.changed = make(chan struct{})
}

// Of lists what it was told of an attempt.
func (r *Renewals) Of(a impls.Attempt) (list []Renewal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.told {
		if one.Attempt == a {
			list = append(list, one)
		}
	}
	return list
}

// Await returns the newest renewal of a hold that came to want, nil for a
// success, once it was told of one after those before.
func (r *Renewals) Await(t testing.TB, h impls.Hold, before int, want error) Renewal {
	t.Helper()
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		list := r.Of(h.Attempt())
		for _, one := range list[min(before, len(list)):] {
			if one.Key != h.Key() {
				t.Fatalf("told of a renewal of %s, which is a hold of %s", one.Key, h.Key())
			}
			if want == nil && one.Err == nil || want != nil && errors.Is(one.Err, want) {
				return one
			}
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("the test ended before a renewal came to %v", want)
		}
	}
}

// Telling has a client tell r of its renewals.
func Telling(r *Renewals) func(*impls.Config) {
	return func(cfg *impls.Config) { cfg.Renewals = r }
}
