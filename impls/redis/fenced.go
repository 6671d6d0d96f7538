package redis

import (
	"context"

	"github.com/lockbench/lockbench/impls"
)

// fencedScript takes the lock if it is free, and returns the number of the grant,
// or 0 if the lock is busy.
//
// KEYS: the lock, its counter. ARGV: the token, the TTL in milliseconds.
const fencedScript = `
if redis.call('EXISTS', KEYS[1]) == 1 then
  return 0
end
local fence = redis.call('INCR', KEYS[2])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return fence
`

// fenced is redis/fenced: the lock of redis/token, with a fencing token.
//
// Document: a counter in the script of redis/token, as in Redisson's fenced lock.
//
//	acquire  if the key does not exist: INCR {key}:fence, SET key token PX ttl
//	         (one script); again after a wait if it exists
//	extend   if GET key == token then PEXPIRE key ttl    (one script)
//	release  if GET key == token then DEL key            (one script)
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock. Takeover: at the end of the TTL, plus the
// rest of a poll.
// Guarantee: one holder until the end of the TTL, and a fencing token that grows
// with every grant, so that the guarded resource can reject a holder that continues
// after its lease. The counter has no TTL, and grows in the request that takes the
// lock. The braces keep counter and lock on one node of a cluster, unless the key
// has braces of its own.
// Failure: when the server loses writes. After a restart without the last writes,
// or a failover to a replica that had not received them, tokens repeat, and two
// holders may have the same one. The guarantee needs one instance with appendfsync
// always that does not evict keys without a TTL.
type fenced struct{ plain }

func (fenced) Info() impls.Info {
	return describe(impls.Info{
		ID:         "redis/fenced",
		Summary:    "redis/token, and a counter that a script increments with each grant",
		Promise:    "one holder until its TTL is over, and tokens that grow with every grant, on one instance that keeps all its writes (appendfsync always, no eviction, no failover) and whose clock is not changed",
		Document:   "the fencing tokens that one instance can count, as in Redisson's fenced lock",
		Properties: promised(impls.Extends),
		Fencing:    true,
		Unfenced:   []string{replicated},
		Polls:      true,
		RoundTrips: 2,
		Requests:   []string{"eval", "evalsha"},
	})
}

func (fenced) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	t, err := openTokens(ctx, cfg, scripts{fencedScript, releaseScript, extendScript})
	if err != nil {
		return nil, err
	}
	return &fencedClient{t}, nil
}

type fencedClient struct{ *tokens }

func (c *fencedClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *fencedClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	sent := impls.Monotonic(c.cfg.Clock)
	fence, err := c.run(ctx, "acquire", c.acquire, []string{key, "{" + key + "}:fence"}, a.String(), c.cfg.TTL.Milliseconds())
	switch {
	case err != nil:
		return nil, err
	case fence == 0:
		return nil, impls.ErrBusy
	}
	return c.hold(a, uint64(fence), sent, key), nil
}
