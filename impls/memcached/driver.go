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

// Recipes lists the recipes of this package.
func Recipes() []impls.Recipe {
	return []impls.Recipe{
		cas{},
		addDelete{},
		timestamp{},
	}
}

const (
	// maxExptime is the longest time to live that memcached takes as such; a
	// larger number is a date, long past.
	maxExptime = 30 * 24 * time.Hour
	// spare is what an item may lose of its time to memcached's coarse clock.
	spare = 2 * time.Second
)

// expiring is what recipes have in common whose items expire, and need no
// preparation.
type expiring struct{}

// CheckTTL takes whole seconds.
func (expiring) CheckTTL(ttl time.Duration, _ impls.Limits) error {
	if ttl < time.Second || ttl%time.Second != 0 || ttl+spare > maxExptime {
		return fmt.Errorf("cannot serve a TTL of %s: memcached expires items by whole seconds; choose from 1s to %s", ttl, maxExptime-spare)
	}
	return nil
}

// Prepare has nothing to do: keys come and go.
func (expiring) Prepare(context.Context, impls.Config, []string) error { return nil }

// exptime is for how long to ask for an item that must live for ttl, in seconds.
func exptime(ttl time.Duration) int32 { return int32((ttl + spare) / time.Second) }

// atSpare is the takeover bound of items that expire.
func atSpare(ttl time.Duration) time.Duration { return ttl + spare }

// driver is one client's instance of the memcached driver, which knows no
// contexts: each of its calls ends after the timeout set at the moment, and a
// deadline is honoured by lowering that. A context cancelled in the middle of
// a request is seen when the request has ended, after cfg.Timeout at most.
type driver struct {
	cfg impls.Config
	mc  *memcache.Client
}

// connect makes a driver instance that has reached its servers, all of them. The
// TTL must be one that items can have.
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

// sharded is the topology of several servers that know nothing of one another.
const sharded = "sharded"

// anywhere lists the topologies of all recipes here. Each key is on one server,
// whichever they are.
func anywhere() []string { return []string{"single", sharded} }

// open makes a driver instance for one client. It connects when the first command
// is sent.
//
// Of several servers, which one has a key is decided by a hash of that, and the
// order of their addresses, which must be the same for all clients: no server is
// ever left out for being silent, so that a key never has two. One that is
// restarted has forgotten its keys, and the others theirs not.
func open(cfg impls.Config) (*driver, error) {
	if n := len(cfg.Addresses); n == 0 || n > 1 && cfg.Topology != sharded {
		return nil, fmt.Errorf("open memcached client: want the address of one server, got %d", n)
	}
	var servers memcache.ServerList
	if err := servers.SetServers(cfg.Addresses...); err != nil {
		return nil, fmt.Errorf("open memcached client: %w", err)
	}
	mc := memcache.NewFromSelector(&servers)
	mc.DialContext = impls.MarkDial(cfg.Dial)
	mc.Timeout = cfg.Timeout
	mc.MaxIdleConns = 1 // a client is one goroutine
	return &driver{cfg: cfg, mc: mc}, nil
}

// begin makes the driver's next request end when ctx does, as far as that is
// known before; or says that ctx is over. Deadlines of contexts are of the
// machine's time, not of the client's clock, and so is this.
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

// Close frees the connections. One that has ended, unseen since the client had
// nothing to ask there, is as free.
func (d *driver) Close() error {
	if err := d.mc.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// add stores value unless something is there, which is ErrBusy.
func (d *driver) add(ctx context.Context, key string, value []byte, exptime int32) error {
	if err := d.begin(ctx, "acquire", key); err != nil {
		return err
	}
	switch err := d.mc.Add(&memcache.Item{Key: key, Value: value, Expiration: exptime}); err {
	case nil:
		return nil
	case memcache.ErrNotStored:
		return impls.ErrBusy // the table's answer, without its words: this is no rare path
	default:
		return outcome("add", "acquire", key, err)
	}
}

// set stores value, whatever is there.
func (d *driver) set(ctx context.Context, key string, value []byte, exptime int32) error {
	if err := d.begin(ctx, "acquire", key); err != nil {
		return err
	}
	if err := d.mc.Set(&memcache.Item{Key: key, Value: value, Expiration: exptime}); err != nil {
		return outcome("set", "acquire", key, err)
	}
	return nil
}

// get reads an item, with what a cas needs. That there is none is ErrLost.
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

// remove deletes an item, whoever's it is. That there is none is ErrLost.
func (d *driver) remove(ctx context.Context, doing, key string) error {
	if err := d.begin(ctx, doing, key); err != nil {
		return err
	}
	if err := d.mc.Delete(key); err != nil {
		return outcome("delete", doing, key, err)
	}
	return nil
}

// errConflict: somebody wrote the value between the gets and the cas; the cas
// had no effect. It does not leave this package.
var errConflict = errors.New("value was written meanwhile")

// rules is the table from driver errors to outcomes, for requests with one
// verb. What it does not list is unknown: a write's timeout, broken connection,
// other SERVER_ERROR, or reply that does not parse; and NOT_STORED in answer to
// cas or set, which no server is known to give.
func rules(verb string) impls.Rules {
	// By these nothing was sent.
	rs := append(impls.NoEffect(memcache.ErrMalformedKey, memcache.ErrNoServers), impls.NotConnected(),
		impls.Rule{Name: "connect in time", Match: impls.As[*memcache.ConnectTimeoutError], Outcome: impls.ErrFailed})
	switch verb {
	case "add":
		return append(rs, noRoom(), impls.Rule{Name: "NOT_STORED", Match: impls.Is(memcache.ErrNotStored), Outcome: impls.ErrBusy})
	case "gets":
		return append(rs,
			impls.Rule{Name: "nothing found", Match: impls.Is(memcache.ErrCacheMiss), Outcome: impls.ErrLost},
			// It only reads: whatever became of it, it changed nothing.
			impls.Rule{Name: "only read", Match: func(error) bool { return true }, Outcome: impls.ErrFailed})
	case "delete":
		return append(rs, impls.Rule{Name: "NOT_FOUND", Match: impls.Is(memcache.ErrCacheMiss), Outcome: impls.ErrLost})
	case "cas":
		return append(rs, noRoom(),
			// The driver documents ErrNotStored for a key that is gone, and
			// returns ErrCacheMiss.
			impls.Rule{Name: "NOT_FOUND", Match: impls.Is(memcache.ErrCacheMiss), Outcome: impls.ErrLost},
			impls.Rule{Name: "EXISTS", Match: impls.Is(memcache.ErrCASConflict), Outcome: errConflict})
	}
	return rs
}

// noRoom is the answer of a server that is full and may not evict: it had no room
// for the new item before it looked at the old one, which stays. (A set has the
// same answer, and the old one is gone.)
func noRoom() impls.Rule {
	const answer = "SERVER_ERROR out of memory storing object"
	said := func(err error) bool { return strings.Contains(err.Error(), answer) }
	return impls.Rule{Name: answer, Match: said, Outcome: impls.ErrFailed}
}

// outcome gives err, of a request with verb, the name of what became of the
// call that was doing it to key, keeping err.
func outcome(verb, doing, key string, err error) error {
	return fmt.Errorf("%s %s: %s: %w", doing, key, verb, rules(verb).Outcome(err))
}
