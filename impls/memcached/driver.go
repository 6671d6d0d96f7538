package memcached

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lockbench/lockbench/impls"
)

// Recipes lists the recipes of this package.
func Recipes() []impls.Recipe { return []impls.Recipe{cas{}} }

// driver is one client's instance of the memcached driver, which knows no
// contexts: each of its calls ends after the timeout set at the moment, and a
// deadline is honoured by lowering that. A context cancelled in the middle of
// a request is seen when the request has ended, after cfg.Timeout at most.
type driver struct {
	mc      *memcache.Client
	timeout time.Duration
}

// open makes a driver instance for one client of the server at cfg's first
// address. It connects when the first command is sent.
func open(cfg impls.Config) (*driver, error) {
	if len(cfg.Addresses) != 1 {
		return nil, fmt.Errorf("open memcached client: want the address of one server, got %d", len(cfg.Addresses))
	}
	var servers memcache.ServerList
	if err := servers.SetServers(cfg.Addresses[0]); err != nil {
		return nil, fmt.Errorf("open memcached client: %w", err)
	}
	mc := memcache.NewFromSelector(&servers)
	mc.DialContext = impls.MarkDial(cfg.Dial)
	mc.Timeout = cfg.Timeout
	mc.MaxIdleConns = 1 // a client is one goroutine
	return &driver{mc: mc, timeout: cfg.Timeout}, nil
}

// begin makes the driver's next request end when ctx does, as far as that is
// known before; or says that ctx is over. Deadlines of contexts are of the
// machine's time, not of the client's clock, and so is this.
func (d *driver) begin(ctx context.Context, doing, key string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, impls.NotSent(err))
	}
	d.mc.Timeout = d.timeout
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("%s %s: %w", doing, key, impls.NotSent(context.DeadlineExceeded))
		}
		d.mc.Timeout = min(left, d.timeout)
	}
	return nil
}

// close frees the connections.
func (d *driver) close() error { return d.mc.Close() }

// errConflict: somebody wrote the value between the gets and the cas; the cas
// had no effect. It does not leave this package.
var errConflict = errors.New("value was written meanwhile")

// rules is the table from driver errors to outcomes, for requests with one
// verb. What it does not list is unknown: a write's timeout, broken connection,
// SERVER_ERROR, or reply that does not parse; and NOT_STORED in answer to cas,
// which no server is known to give.
func rules(verb string) impls.Rules {
	// By these nothing was sent.
	rs := append(impls.NoEffect(memcache.ErrMalformedKey, memcache.ErrNoServers), impls.NotConnected(),
		impls.Rule{Name: "connect in time", Match: impls.As[*memcache.ConnectTimeoutError], Outcome: impls.ErrFailed})
	switch verb {
	case "add":
		return append(rs, impls.Rule{Name: "NOT_STORED", Match: impls.Is(memcache.ErrNotStored), Outcome: impls.ErrBusy})
	case "gets":
		return append(rs,
			impls.Rule{Name: "nothing found", Match: impls.Is(memcache.ErrCacheMiss), Outcome: impls.ErrLost},
			// It only reads: whatever became of it, it changed nothing.
			impls.Rule{Name: "only read", Match: func(error) bool { return true }, Outcome: impls.ErrFailed})
	case "cas":
		return append(rs,
			// The driver documents ErrNotStored for a key that is gone, and
			// returns ErrCacheMiss.
			impls.Rule{Name: "NOT_FOUND", Match: impls.Is(memcache.ErrCacheMiss), Outcome: impls.ErrLost},
			impls.Rule{Name: "EXISTS", Match: impls.Is(memcache.ErrCASConflict), Outcome: errConflict})
	}
	return rs
}

// outcome gives err, of a request with verb, the name of what became of the
// call that was doing it to key, keeping err.
func outcome(verb, doing, key string, err error) error {
	return fmt.Errorf("%s %s: %s: %w", doing, key, verb, rules(verb).Outcome(err))
}
