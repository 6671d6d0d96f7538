package run

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

const (
	// probedKeys bounds how many keys a probe asks for.
	probedKeys = 64
	// probeSlack is how long a probe waits beyond the recipe's own bound.
	probeSlack = 2 * time.Second
	// probeAnswer is how long a probe of a key may take when other keys have used
	// up that time: a free lock is granted at once.
	probeAnswer = 500 * time.Millisecond
	// listPatience limits how long the servers are read for what attempts left.
	listPatience = 5 * time.Second
)

// probe tries to acquire each key once all clients have left, for as long as the
// recipe may take to pass on the lock of a dead client: a lock that cannot be
// acquired then has no holder and never becomes free. Nil: the probe did not run,
// or the servers did not answer.
func (r *runner) probe(ctx context.Context, sc scenario.Scenario, recipe impls.Recipe, s servers, keys []string) *scenario.Probe {
	if sc.Workload.Kind == scenario.Uncontended || ctx.Err() != nil {
		return nil
	}
	info := recipe.Info()
	bound := 2 * sc.TTL.D()
	if info.Takeover != nil {
		bound = info.Takeover(sc.TTL.D()) + sc.LockDelay.D()
	}
	keys = keys[:min(len(keys), probedKeys)]
	p := &scenario.Probe{Keys: len(keys)}
	var dialer net.Dialer
	opening, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	c, err := recipe.Open(opening, s.config(sc, dialer.DialContext))
	if err != nil {
		r.Progress.Note(fmt.Sprintf("%s: the search for locks left behind failed: %v", sc.Name, err))
		return p
	}
	defer c.Close()
	list(ctx, c, keys, p)
	deadline := time.Now().Add(bound + sc.Poll.Max + probeSlack)
	for k, key := range keys {
		asked := time.Now()
		one, cancel := context.WithDeadline(ctx, latest(deadline, asked.Add(probeAnswer)))
		err := acquireOnce(one, c, key, sc.Timeout.D())
		cancel()
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil:
			p.Free++
		case notGranted(one, err):
			p.Orphans = append(p.Orphans, scenario.Orphan{Key: uint32(k), WaitedNS: int64(time.Since(asked)), Why: err.Error()})
		default:
			r.Progress.Note(fmt.Sprintf("%s: it is unknown whether k%d was left free: %v", sc.Name, k, err))
		}
	}
	return p
}

// list reads what attempts have on the servers. It comes before the probe's own
// attempts, and soon after the load: most entries end with their leases.
func list(ctx context.Context, c impls.Client, keys []string, p *scenario.Probe) {
	lister, ok := c.(impls.Lister)
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	p.Listed = new(int)
	for k, key := range keys {
		entries, err := lister.Left(ctx, key)
		for _, e := range entries {
			p.Left = append(p.Left, scenario.Left{Key: uint32(k), Server: e.Server, Attempt: e.Attempt.String()})
		}
		if err == nil {
			*p.Listed++
		}
	}
}

// notGranted reports that the lock could not be acquired in the given time; other
// errors do not show whether it could.
func notGranted(asking context.Context, err error) bool {
	return asking.Err() != nil || errors.Is(err, impls.ErrBusy)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// acquireOnce acquires and releases a key, and leaves nothing behind. The error
// is that of the acquire.
func acquireOnce(ctx context.Context, c impls.Client, key string, limit time.Duration) error {
	var a impls.Attempt
	rand.Read(a[:]) // never fails
	hold, err := c.Acquire(ctx, key, a)
	after, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*limit)
	defer cancel()
	if err != nil {
		if impls.Outcome(history.KindAcquire, err) == history.Unknown {
			_ = c.Cleanup(after, key, a) // no client follows
		}
		return err
	}
	_ = hold.Release(after) // no client follows
	return nil
}
