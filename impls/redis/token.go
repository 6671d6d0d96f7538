package redis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
)

// The scripts compare before they write, atomically.
const (
	// KEYS: the lock. ARGV: the token.
	releaseScript = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('DEL', KEYS[1])
`
	// KEYS: the lock. ARGV: the token, the TTL in milliseconds.
	extendScript = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`
)

// token is redis/token: a key whose value is the attempt's token, and which
// expires.
//
// Document: the documentation of SET, "patterns"; release by script as there.
//
//	acquire  SET key token NX PX ttl; again after a wait if the key exists
//	extend   if GET key == token then PEXPIRE key ttl    (one script)
//	release  if GET key == token then DEL key            (one script)
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock. Takeover: at the end of the TTL, plus the
// rest of a poll.
// Guarantee: one holder until the end of the TTL.
// Failure: a holder that continues after its lease (there is no fencing token); a
// server that loses the key: by eviction, a restart before the last writes were on
// disk, a failover to a replica that had not received it, or a clock set forward.
type token struct{ plain }

func (token) Info() impls.Info {
	return describe(impls.Info{
		ID:         "redis/token",
		Summary:    "SET NX PX with a random token; release and extend by a script that compares it first",
		Promise:    "one holder until its TTL is over, while the server neither loses the key (eviction, restart without fsync, failover) nor has its clock changed",
		Document:   "the lock that the documentation of SET recommends for one instance",
		Properties: promised(impls.Extends),
		Polls:      true,
		RoundTrips: 2,
		Requests:   []string{"set", "eval", "evalsha"},
	})
}

func (token) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := openTokens(ctx, cfg, scripts{release: releaseScript, extend: extendScript})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// tokens is the client of redis/token, and the common part of other recipes: a lock
// whose value is the attempt's token, released and extended by scripts that compare
// it first.
type tokens struct {
	*server
	acquire, release, extend *redis.Script // acquire is nil if that is no script
}

// scripts are those of one recipe. Release and extend return how many of their keys
// had the token; their arguments are the token and, to extend, the TTL in
// milliseconds. A recipe whose acquire is no script leaves that empty.
type scripts struct{ acquire, release, extend string }

// openTokens opens a client and loads its scripts.
func openTokens(ctx context.Context, cfg impls.Config, s scripts) (*tokens, error) {
	c := &tokens{release: redis.NewScript(s.release), extend: redis.NewScript(s.extend)}
	load := []*redis.Script{c.release, c.extend}
	if s.acquire != "" {
		c.acquire = redis.NewScript(s.acquire)
		load = append(load, c.acquire)
	}
	var err error
	if c.server, err = connect(ctx, cfg, load...); err != nil {
		return nil, err
	}
	return c, nil
}

func (c *tokens) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *tokens) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	sent, err := c.set(ctx, key, a)
	if err != nil {
		return nil, err
	}
	return c.hold(a, 0, sent, key), nil
}

// set sets the key if it does not exist. The server's lease starts after sent, so
// it ends on the server no earlier than here.
func (c *tokens) set(ctx context.Context, key string, a impls.Attempt) (sent time.Time, err error) {
	var won bool
	sent = impls.Monotonic(c.cfg.Clock)
	err = c.ask(ctx, "acquire", key, func(rdb *redis.Client) (err error) {
		won, err = rdb.SetNX(ctx, key, a.String(), c.cfg.TTL).Result()
		return err
	})
	if err == nil && !won {
		err = impls.ErrBusy
	}
	return sent, err
}

// hold is a granted attempt on keys.
func (c *tokens) hold(a impls.Attempt, fence uint64, sent time.Time, keys ...string) *impls.Lease {
	return impls.NewLease(keys[0], a, fence, sent, impls.Leaser{
		Clock: c.cfg.Clock,
		TTL:   c.cfg.TTL,
		Extend: func(ctx context.Context) error {
			return c.compare(ctx, "extend", c.extend, keys, a.String(), c.cfg.TTL.Milliseconds())
		},
		Free: func(ctx context.Context) error { return c.compare(ctx, "release", c.release, keys, a.String()) },
	})
}

// Cleanup is a release by the attempt's token. A request still under way on an
// abandoned connection may be executed later; its key ends with its TTL.
func (c *tokens) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.compare(ctx, "clean up", c.release, []string{key}, a.String())
}

// Left reads the lock's value.
func (c *tokens) Left(ctx context.Context, key string) ([]impls.Entry, error) {
	var value string
	err := c.ask(ctx, "list", key, func(rdb *redis.Client) (err error) {
		if value, err = rdb.Get(ctx, key).Result(); errors.Is(err, redis.Nil) {
			err = nil
		}
		return err
	})
	return impls.ParseEntries(c.name(), value), err
}
