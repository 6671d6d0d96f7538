package impls

import (
	"context"
	"time"
)

// Lease is the Hold of a recipe bound by a TTL, whose server sends no signals.
// It counts the lease from before each request, so that it ends here no later
// than on the server, and sends nothing more after a definite answer that the
// hold is over.
type Lease struct {
	Grant
	end time.Time
	how Leaser
}

// Leaser has the requests of one hold: each function sends one and returns its
// outcome. Extend is nil if the lease cannot be renewed.
type Leaser struct {
	Clock  Clock
	TTL    time.Duration
	Extend func(context.Context) error
	Free   func(context.Context) error
}

// NewLease is a hold that was requested at the time sent, by the Monotonic time
// of how's clock; fence is 0 if the recipe has none.
func NewLease(key string, a Attempt, fence uint64, sent time.Time, how Leaser) *Lease {
	return &Lease{Grant: NewGrant(key, a, fence, how.Free), end: sent.Add(how.TTL), how: how}
}

// LeaseEnd is one TTL after the newest answered request was sent.
func (l *Lease) LeaseEnd() time.Time { return l.end }

// Lost is nil: the server sends no signal.
func (l *Lease) Lost() <-chan struct{} { return nil }

// Extend renews the lease by a TTL from now, or is not supported. An unknown
// outcome leaves the end unchanged.
func (l *Lease) Extend(ctx context.Context) error {
	if l.over {
		return ErrLost
	}
	if l.how.Extend == nil {
		return l.Grant.Extend(ctx)
	}
	sent := Monotonic(l.how.Clock)
	err := l.how.Extend(ctx)
	if err == nil {
		l.end = sent.Add(l.how.TTL)
		return nil
	}
	l.over = Definite(err)
	return err
}
