package redis

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
)

// The scripts compare before they write, in one step of the server.
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

// token is redis/token: a key that holds the attempt's token and expires.
//
//	acquire  SET key token NX PX ttl; again after a wait if it was there
//	extend   if GET key == token then PEXPIRE key ttl    (one script)
//	release  if GET key == token then DEL key            (one script)
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock. Takeover: at the TTL's end, plus the
// rest of a poll.
//
// It promises one holder until the TTL is over. It fails when the holder goes
// on after that (there is no token to fence with), and when the server forgets
// the key: evicted, restarted before its last second was on disk, failed over
// to a replica that had not heard of it, or its clock set forward.
//
// Source: the documentation of SET, "patterns"; release by script as there.
type token struct{ plain }

func (token) Info() impls.Info {
	return impls.Info{
		ID:         "redis/token",
		Backend:    "redis",
		Summary:    "SET NX PX with a random token; release and extend by a script that compares it first",
		Promise:    "one holder until its TTL is over, while the server neither loses the key (eviction, restart without fsync, failover) nor has its clock set",
		Document:   "the lock that the documentation of SET recommends for one instance",
		Bound:      impls.BoundTTL,
		Properties: promised(impls.Extends),
		Polls:      true,

		Topologies:  anywhere(),
		AvailableOn: []string{replicated},
		RoundTrips:  2,
		Requests:    []string{"set", "eval", "evalsha"},
		Takeover:    atEnd,
	}
}

func (token) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := openTokens(ctx, cfg, releaseScript, extendScript)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// tokens is the client of redis/token, and what those of other recipes have of
// it: a lock in which the attempt's token stands, taken out and kept by scripts
// that look for it first.
type tokens struct {
	*server
	release, extend *redis.Script
}

// openTokens opens a client whose scripts answer on how many of their keys the
// token stood. Their arguments are the token and, to extend, the TTL in
// milliseconds. Other scripts may be loaded besides.
func openTokens(ctx context.Context, cfg impls.Config, release, extend string, others ...*redis.Script) (*tokens, error) {
	c := &tokens{release: redis.NewScript(release), extend: redis.NewScript(extend)}
	var err error
	if c.server, err = connect(ctx, cfg, append(others, c.release, c.extend)...); err != nil {
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

// set writes the token if no other is there. The lease runs on the server from
// some moment after sent, so that it ends there no earlier than here.
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

// Cleanup is a release by the attempt's token. A request that is still on its
// way on a connection that was given up may be carried out after it; what it
// leaves ends with its TTL.
func (c *tokens) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.compare(ctx, "clean up", c.release, []string{key}, a.String())
}
