package redis

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/lockbench/lockbench/impls"
)

// Recipes lists the recipes of this package.
func Recipes() []impls.Recipe { return []impls.Recipe{token{}} }

// bufferSize of the driver's reader and writer, each. Commands and replies of
// a lock are a few hundred bytes; the driver's default of 32 KiB would cost a
// process with a thousand clients 64 MiB for nothing.
const bufferSize = 4 << 10

// open makes a driver instance for one client of the server at cfg's first
// address. It connects when the first command is sent.
//
// The driver lets a context's deadline cut a request under way, but looks at a
// cancellation only before one: then a call may outlast its context by up to
// cfg.Timeout.
func open(cfg impls.Config) (*redis.Client, error) {
	if len(cfg.Addresses) != 1 {
		return nil, fmt.Errorf("open redis client: want the address of one server, got %d", len(cfg.Addresses))
	}
	return redis.NewClient(&redis.Options{
		Addr: cfg.Addresses[0],
		Dialer: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := cfg.Dial(ctx, network, address)
			if err != nil {
				return nil, &dialError{err}
			}
			return conn, nil
		},

		// One send for one call: a command sent twice by the driver could be
		// carried out twice, and the first reply would be lost on the way.
		MaxRetries:    -1,
		DialerRetries: 1,

		// Without ContextTimeoutEnabled a deadline would not cut a read.
		ContextTimeoutEnabled: true,
		DialTimeout:           cfg.Timeout,
		ReadTimeout:           cfg.Timeout,
		WriteTimeout:          cfg.Timeout,
		PoolTimeout:           cfg.Timeout,

		// A client is one goroutine, so one connection serves it. There is
		// room for a second, since the driver may dial before it has let go
		// of one that broke.
		PoolSize:        2,
		ReadBufferSize:  bufferSize,
		WriteBufferSize: bufferSize,

		// Nothing but the recipe's own commands: no push messages to look
		// for, no client names, no notices of maintenance.
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}), nil
}

// dialError marks an error of the dialer: nothing was sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return "connect: " + e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// rule gives the outcome of the driver's errors that match.
type rule struct {
	name    string
	match   func(error) bool
	outcome error
}

// rules is the table from driver errors to outcomes. What it does not list is
// unknown: a timeout, a broken connection, a generic "ERR", a reply that does
// not parse.
func rules() []rule {
	is := func(target error) func(error) bool {
		return func(err error) bool { return errors.Is(err, target) }
	}
	rs := []rule{
		// Nothing was sent.
		{"dial", func(err error) bool { var d *dialError; return errors.As(err, &d) }, impls.ErrFailed},
		{"pool timeout", is(redis.ErrPoolTimeout), impls.ErrFailed},
		{"pool exhausted", is(redis.ErrPoolExhausted), impls.ErrFailed},
		{"client closed", is(redis.ErrClosed), impls.ErrFailed},
	}
	for _, prefix := range refusals() {
		rs = append(rs, rule{prefix, func(err error) bool { return redis.HasErrorPrefix(err, prefix) }, impls.ErrFailed})
	}
	return rs
}

// refusals are the first words of replies by which a server says that it did
// not begin the command. (Every command of these recipes, and every script,
// writes at most once, as its last step, so that a script refused half-way has
// not written either.)
func refusals() []string {
	return []string{
		"NOSCRIPT",    // the script is not loaded
		"READONLY",    // a replica
		"LOADING",     // still reading its data from disk
		"MASTERDOWN",  // a replica without its master
		"NOREPLICAS",  // fewer replicas than min-replicas-to-write
		"CLUSTERDOWN", // the cluster does not serve
		"MOVED ",      // another node has the key
		"ASK ",        // another node is getting the key
		"TRYAGAIN",    // the key is being moved
		"CROSSSLOT",   // keys of several nodes
		"NOAUTH",      // not logged in
		"WRONGPASS",   // no such user or password
		"NOPERM",      // the user may not
		"OOM ",        // out of memory: refused before it runs
		"MISCONF",     // snapshots fail and stop-writes-on-bgsave-error is set
		"BUSY ",       // another script runs for too long
		"WRONGTYPE",   // the key is not a string
		// The driver takes "ERR " off before it compares.
		"max number of clients",     // the connection was turned away
		"invalid expire time",       // refused with its arguments
		"wrong number of arguments", // refused with its arguments
		"unknown command",           // so old a server, or a renamed command
	}
}

// outcome gives err the name of what became of the call that was doing it to
// key, keeping err.
func outcome(doing, key string, err error) error {
	for _, r := range rules() {
		if r.match(err) {
			return fmt.Errorf("%s %s: %w: %w", doing, key, r.outcome, err)
		}
	}
	return fmt.Errorf("%s %s: %w: %w", doing, key, impls.ErrUnknown, err)
}

// ended tells that ctx was over before anything was sent.
func ended(doing, key string, err error) error {
	return fmt.Errorf("%s %s: %w: %w", doing, key, impls.ErrFailed, err)
}

// isDial reports whether err is the dialer's.
func isDial(err error) bool {
	var d *dialError
	return errors.As(err, &d)
}
