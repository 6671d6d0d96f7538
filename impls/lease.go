package impls

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Lease is the Hold of a recipe bound by a TTL, whose server says nothing of
// its own accord. It counts the lease from before each request, so that it
// ends here no later than on the server, and sends nothing more once an answer
// has said that the hold is over.
type Lease struct {
	key     string
	attempt Attempt
	fence   uint64
	end     time.Time
	over    bool // an answer has said so, definitely
	how     Leaser
}

// Leaser is how a recipe keeps one hold: each function sends one request and
// names its outcome. Extend is nil if nothing renews the lease.
type Leaser struct {
	Clock  Clock
	TTL    time.Duration
	Extend func(context.Context) error
	Free   func(context.Context) error
}

// NewLease is a hold that was asked for at the time sent, on the clock of how;
// fence is 0 if the recipe has none.
func NewLease(key string, a Attempt, fence uint64, sent time.Time, how Leaser) *Lease {
	return &Lease{key: key, attempt: a, fence: fence, end: sent.Add(how.TTL), how: how}
}

// Key is what is locked.
func (l *Lease) Key() string { return l.key }

// Attempt is the owner.
func (l *Lease) Attempt() Attempt { return l.attempt }

// Fence is the token of the grant, or 0.
func (l *Lease) Fence() uint64 { return l.fence }

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
		return fmt.Errorf("extend %s: this lock is not renewed: %w", l.key, errors.ErrUnsupported)
	}
	sent := l.how.Clock.Now()
	err := l.how.Extend(ctx)
	if err == nil {
		l.end = sent.Add(l.how.TTL)
		return nil
	}
	l.over = Definite(err)
	return err
}

// Release frees the lock. After a doubt, or where nothing was sent, it may be
// called again.
func (l *Lease) Release(ctx context.Context) error {
	if l.over {
		return ErrLost
	}
	err := l.how.Free(ctx)
	l.over = Definite(err)
	return err
}
