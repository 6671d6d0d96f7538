package impls

import (
	"context"
	"time"
)

// Lease is the Hold of a recipe bound by a TTL, whose server says nothing of
// its own accord. It counts the lease from before each request, so that it
// ends here no later than on the server, and sends nothing more once an answer
// has said that the hold is over.
type Lease struct {
	Grant
	end time.Time
	how Leaser
}

// Leaser is how a recipe keeps one hold: each function sends one request and
// names its outcome. Extend is nil if nothing renews the lease.
type Leaser struct {
	Clock  Clock
	TTL    time.Duration
	Extend func(context.Context) error
	Free   func(context.Context) error
}

// NewLease is a hold that was asked for at the time sent, by the Monotonic time
// of how's clock; fence is 0 if the recipe has none.
func NewLease(key string, a Attempt, fence uint64, sent time.Time, how Leaser) *Lease {
	return &Lease{Grant: NewGrant(key, a, fence, how.Free), end: sent.Add(how.TTL), how: how}
}

// LeaseEnd is one TTL after the newest request that was answered was sent.
func (l *Lease) LeaseEnd() time.Time { return l.end }

// Lost is nil: nobody tells.
func (l *Lease) Lost() <-chan struct{} { return nil }

// Extend renews the lease by a TTL from now, or is not supported. After a doubt
// the end stays where it was.
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
