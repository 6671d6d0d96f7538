package recipetest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// Renewal is a reported renewal of a hold.
type Renewal struct {
	Key     string
	Attempt impls.Attempt
	Sent    time.Time
	Err     error
}

// Renewals is an impls.Renewals that stores its calls. It is safe for
// concurrent use.
type Renewals struct {
	mu      sync.Mutex
	calls   []Renewal
	changed chan struct{} // closed, and replaced, at each call
}

// NewRenewals has no calls yet.
func NewRenewals() *Renewals { return &Renewals{changed: make(chan struct{})} }

// Renewed implements impls.Renewals.
func (r *Renewals) Renewed(key string, a impls.Attempt, sent time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, Renewal{key, a, sent, err})
	close(r.changed)
	r.changed = make(chan struct{})
}

// Of lists the renewals of an attempt.
func (r *Renewals) Of(a impls.Attempt) (list []Renewal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.calls {
		if one.Attempt == a {
			list = append(list, one)
		}
	}
	return list
}

// Await returns the first renewal of a hold with the outcome want, nil for
// success, after the first `before` ones.
func (r *Renewals) Await(t testing.TB, h impls.Hold, before int, want error) Renewal {
	t.Helper()
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		list := r.Of(h.Attempt())
		for _, one := range list[min(before, len(list)):] {
			if one.Key != h.Key() {
				t.Fatalf("a renewal of %s was reported for a hold of %s", one.Key, h.Key())
			}
			if want == nil && one.Err == nil || want != nil && errors.Is(one.Err, want) {
				return one
			}
		}
		select {
		case <-changed:
		case <-t.Context().Done():
			t.Fatalf("the test ended before a renewal with outcome %v", want)
		}
	}
}

// ReportingTo makes a client report its renewals to r.
func ReportingTo(r *Renewals) func(*impls.Config) {
	return func(cfg *impls.Config) { cfg.Renewals = r }
}
