package memcached

import (
	"context"
	"errors"
	"fmt"
	"net"
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
	mc.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := cfg.Dial(ctx, network, address)
		if err != nil {
			return nil, &dialError{err}
		}
		return conn, nil
	}
	mc.Timeout = cfg.Timeout
	mc.MaxIdleConns = 1 // a client is one goroutine
	return &driver{mc: mc, timeout: cfg.Timeout}, nil
}

// begin makes the driver's next request end when ctx does, as far as that is
// known before; or says that ctx is over. Deadlines of contexts are of the
// machine's time, not of the client's clock, and so is this.
func (d *driver) begin(ctx context.Context, doing, key string) error {
	if err := ctx.Err(); err != nil {
		return ended(doing, key, err)
	}
	d.mc.Timeout = d.timeout
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		if left <= 0 {
			return ended(doing, key, context.DeadlineExceeded)
		}
		d.mc.Timeout = min(left, d.timeout)
	}
	return nil
}

// close frees the connections.
func (d *driver) close() error { return d.mc.Close() }

// dialError marks an error of the dialer: nothing was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return "connect: " + e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// rule gives the outcome of the errors that match, of requests with one verb;
// no verb means all.
type rule struct {
	name    string
	verb    string
	match   func(error) bool
	outcome error
}

// rules is the table from driver errors to outcomes. What it does not list is
// unknown: a write's timeout, broken connection, SERVER_ERROR, or reply that
// does not parse; and NOT_STORED in answer to cas, which no server is known to
// give. The first rule that matches counts.
func rules() []rule {
	is := func(target error) func(error) bool {
		return func(err error) bool { return errors.Is(err, target) }
	}
	return []rule{
		// Answers. The driver returns ErrCacheMiss for a cas of a key that
		// is gone, although it documents ErrNotStored.
		{"NOT_STORED", "add", is(memcache.ErrNotStored), impls.ErrBusy},
		{"nothing found", "gets", is(memcache.ErrCacheMiss), impls.ErrLost},
		{"NOT_FOUND", "cas", is(memcache.ErrCacheMiss), impls.ErrLost},
		{"EXISTS", "cas", is(memcache.ErrCASConflict), errConflict},

		// Nothing was sent.
		{"malformed key", "", is(memcache.ErrMalformedKey), impls.ErrFailed},
		{"no servers", "", is(memcache.ErrNoServers), impls.ErrFailed},
		{"dial", "", func(err error) bool { var d *dialError; return errors.As(err, &d) }, impls.ErrFailed},
		{"dial timeout", "", func(err error) bool { var t *memcache.ConnectTimeoutError; return errors.As(err, &t) }, impls.ErrFailed},

		// A gets only reads: whatever became of it, it changed nothing.
		{"only read", "gets", func(error) bool { return true }, impls.ErrFailed},
	}
}

// errConflict: somebody wrote the value between the gets and the cas; the cas
// had no effect. It does not leave this package.
var errConflict = errors.New("value was written meanwhile")

// outcome gives err, of a request with verb, the name of what became of the
// call that was doing it to key, keeping err.
func outcome(verb, doing, key string, err error) error {
	for _, r := range rules() {
		if (r.verb == "" || r.verb == verb) && r.match(err) {
			return fmt.Errorf("%s %s: %w: %s: %w", doing, key, r.outcome, verb, err)
		}
	}
	return fmt.Errorf("%s %s: %w: %s: %w", doing, key, impls.ErrUnknown, verb, err)
}

// ended tells that ctx was over before anything was sent.
func ended(doing, key string, err error) error {
	return fmt.Errorf("%s %s: %w: %w", doing, key, impls.ErrFailed, err)
}
