package memcached

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"github.com/lockbench/lockbench/impls"
)

// Recipes lists the recipes of this package: a new recipe is a file and a line
// here.
func Recipes() []impls.Recipe {
	return []impls.Recipe{
		cas{},
		addDelete{},
		timestamp{},
	}
}

const (
	// maxExptime is the longest time to live; memcached takes a larger number
	// as a date, long past.
	maxExptime = 30 * 24 * time.Hour
	// spare is the time that an item may lose by memcached's coarse clock.
	spare = 2 * time.Second
)

// expiring is the common part of recipes whose items expire and need no
// preparation.
type expiring struct{}

// CheckTTL takes whole seconds.
func (expiring) CheckTTL(ttl time.Duration, _ impls.Limits) error {
	if ttl < time.Second || ttl%time.Second != 0 || ttl+spare > maxExptime {
		return fmt.Errorf("cannot serve a TTL of %s: memcached expires items by whole seconds; choose from 1s to %s", ttl, maxExptime-spare)
	}
	return nil
}

// Prepare does nothing: a lock is an item that an acquire adds.
func (expiring) Prepare(context.Context, impls.Config, []string) error { return nil }

// exptime is the time to live, in seconds, of an item that must live for ttl.
func exptime(ttl time.Duration) int32 { return int32((ttl + spare) / time.Second) }

// describe adds to a recipe's description the facts of all recipes here.
func describe(i impls.Info) impls.Info {
	i.Backend = "memcached"
	i.Bound = impls.BoundTTL
	i.Topologies = anywhere()
	i.Polls = true
	i.Takeover = func(ttl time.Duration) time.Duration { return ttl + spare }
	return i
}

// driver is one client's instance of the memcached driver, which has no
// contexts: each call ends after the current timeout, so a deadline lowers
// that. A context cancelled during a request takes effect when the request
// ends, after cfg.Timeout at most.
type driver struct {
	cfg impls.Config
	mc  *memcache.Client
}

// connect makes a driver instance that has reached all its servers. It checks
// the TTL.
func connect(ctx context.Context, cfg impls.Config) (*driver, error) {
	if err := (expiring{}).CheckTTL(cfg.TTL, impls.Limits{}); err != nil {
		return nil, err
	}
	d, err := open(cfg)
	if err != nil {
		return nil, err
	}
	all := strings.Join(cfg.Addresses, ",")
	if err := d.begin(ctx, "connect to", all); err != nil {
		return nil, err
	}
	if err := d.mc.Ping(); err != nil {
		return nil, fmt.Errorf("connect to memcached at %s: %w", all, err)
	}
	return d, nil
}

// sharded is the topology of several independent servers.
const sharded = "sharded"

// anywhere lists the topologies of all recipes here. Each key is on one server.
func anywhere() []string { return []string{"single", sharded} }

// open makes the driver instance of one client. It connects at the first
// command.
//
// A hash of the key and the order of the addresses, which is the same for all
// clients, select the server of a key. A silent server is not left out, so a
// key never has two servers. A restarted server has lost its keys, the others
// keep theirs.
func open(cfg impls.Config) (*driver, error) {
	if n := len(cfg.Addresses); n == 0 || n > 1 && cfg.Topology != sharded {
		return nil, fmt.Errorf("open memcached client: want the address of one server, got %d", n)
	}
	var servers memcache.ServerList
	if err := servers.SetServers(cfg.Addresses...); err != nil {
		return nil, fmt.Errorf("open memcached client: %w", err)
	}
	mc := memcache.NewFromSelector(&servers)
	mc.DialContext = impls.MarkDial(impls.Encrypted(cfg.Dial, cfg.TLS))
	mc.Timeout = cfg.Timeout
	mc.MaxIdleConns = 1 // a client is one goroutine
	return &driver{cfg: cfg, mc: mc}, nil
}

// begin makes the driver's next request end with ctx's deadline, or returns
// that ctx is over. A context's deadline is by the machine's clock, not by the
// client's.
func (d *driver) begin(ctx context.Context, doing, key string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, impls.NotSent(err))
	}
	d.mc.Timeout = d.cfg.Timeout
	if deadline, ok := ctx.Deadline(); ok {
		left := time.Until(deadline)
		if left <= 0 {
			return fmt.Errorf("%s %s: %w", doing, key, impls.NotSent(context.DeadlineExceeded))
		}
		d.mc.Timeout = min(left, d.cfg.Timeout)
	}
	return nil
}

// Close closes the connections. It ignores one that the server has closed already.
func (d *driver) Close() error {
	if err := d.mc.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// add stores value; ErrBusy if the key exists.
func (d *driver) add(ctx context.Context, key string, value []byte, exptime int32) error {
	if err := d.begin(ctx, "acquire", key); err != nil {
		return err
	}
	switch err := d.mc.Add(&memcache.Item{Key: key, Value: value, Expiration: exptime}); err {
	case nil:
		return nil
	case memcache.ErrNotStored:
		return impls.ErrBusy // without wrapping, since this is frequent
	default:
		return outcome("add", "acquire", key, err)
	}
}

// set stores value, replacing an existing one.
func (d *driver) set(ctx context.Context, key string, value []byte, exptime int32) error {
	if err := d.begin(ctx, "acquire", key); err != nil {
		return err
	}
	if err := d.mc.Set(&memcache.Item{Key: key, Value: value, Expiration: exptime}); err != nil {
		return outcome("set", "acquire", key, err)
	}
	return nil
}

// get reads an item for a cas; ErrLost if there is none.
func (d *driver) get(ctx context.Context, doing, key string) (*memcache.Item, error) {
	if err := d.begin(ctx, doing, key); err != nil {
		return nil, err
	}
	item, err := d.mc.Get(key) // sends gets
	if err != nil {
		return nil, outcome("gets", doing, key, err)
	}
	return item, nil
}

// remove deletes an item of any owner; ErrLost if there is none.
func (d *driver) remove(ctx context.Context, doing, key string) error {
	if err := d.begin(ctx, doing, key); err != nil {
		return err
	}
	if err := d.mc.Delete(key); err != nil {
		return outcome("delete", doing, key, err)
	}
	return nil
}

// errConflict: the value was written between the gets and the cas, which had no
// effect. It does not leave this package.
var errConflict = errors.New("the value was written in between")

// rules is the table from driver errors to outcomes, for requests with one
// verb. What it does not list is unknown: a timeout of a write, a broken
// connection, another SERVER_ERROR, an invalid reply; and NOT_STORED for cas or
// set, which no known server returns.
func rules(verb string) impls.Rules {
	// These mean that nothing was sent.
	rs := append(impls.NoEffect(memcache.ErrMalformedKey, memcache.ErrNoServers), impls.NotConnected(),
		impls.Rule{Name: "connect in time", Match: impls.As[*memcache.ConnectTimeoutError], Outcome: impls.ErrFailed})
	switch verb {
	case "add":
		return append(rs, noRoom(), impls.Rule{Name: "NOT_STORED", Match: impls.Is(memcache.ErrNotStored), Outcome: impls.ErrBusy})
	case "gets":
		return append(rs,
			impls.Rule{Name: "nothing found", Match: impls.Is(memcache.ErrCacheMiss), Outcome: impls.ErrLost},
			// A read changes nothing, whatever its outcome.
			impls.Rule{Name: "only read", Match: func(error) bool { return true }, Outcome: impls.ErrFailed})
	case "delete":
		return append(rs, impls.Rule{Name: "NOT_FOUND", Match: impls.Is(memcache.ErrCacheMiss), Outcome: impls.ErrLost})
	case "cas":
		return append(rs, noRoom(),
			// The driver documents ErrNotStored for a missing key, and returns
			// ErrCacheMiss.
			impls.Rule{Name: "NOT_FOUND", Match: impls.Is(memcache.ErrCacheMiss), Outcome: impls.ErrLost},
			impls.Rule{Name: "EXISTS", Match: impls.Is(memcache.ErrCASConflict), Outcome: errConflict})
	}
	return rs
}

// noRoom is the reply of a full server that may not evict: it had no room for
// the new item before it looked at the old one, which stays. (A set has the
// same reply, and loses the old item.)
func noRoom() impls.Rule {
	const answer = "SERVER_ERROR out of memory storing object"
	matches := func(err error) bool { return strings.Contains(err.Error(), answer) }
	return impls.Rule{Name: answer, Match: matches, Outcome: impls.ErrFailed}
}

// outcome adds the outcome to err, of a request with verb for the given call
// and key.
func outcome(verb, doing, key string, err error) error {
	return fmt.Errorf("%s %s: %s: %w", doing, key, verb, rules(verb).Outcome(err))
}
