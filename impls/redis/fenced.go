package redis

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
)

// fencedScript takes the lock if it is free and counts the grant: the count, or
// 0 if another has it.
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

// fenced is redis/fenced: the lock of redis/token, whose grants are numbered.
//
//	acquire  if the key is not there: INCR {key}:fence, SET key token PX ttl (one
//	         script); again after a wait if it was there
//	extend   if GET key == token then PEXPIRE key ttl    (one script)
//	release  if GET key == token then DEL key            (one script)
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock. Takeover: at the TTL's end, plus the
// rest of a poll.
//
// It promises one holder until the TTL is over, and a fencing token that grows
// with every grant, so that what the lock guards can refuse a holder that goes on
// after its end. The counter has no TTL, and it grows within the request that
// takes the lock. Both promises end where the server forgets: the tokens of one
// that was restarted without its last writes begin again where it remembers, and
// so does a replica that had not heard of them, and then two holders have the
// same number. They need one instance with appendfsync set to always, which does
// not evict keys without a TTL. The braces keep counter and lock on one node of a
// cluster, unless the key has braces of its own.
//
// Source: a counter in the script of redis/token, as the fenced lock of Redisson
// has it.
type fenced struct{ plain }

func (fenced) Info() impls.Info {
	return impls.Info{
		ID:         "redis/fenced",
		Backend:    "redis",
		Summary:    "redis/token, and a counter that a script increments with each grant",
		Promise:    "one holder until its TTL is over, and tokens that grow with every grant, on one instance that keeps all its writes (appendfsync always, no eviction, no failover) and whose clock is not set",
		Document:   "the fencing tokens that one instance can count, as in Redisson's fenced lock",
		Bound:      impls.BoundTTL,
		Properties: promised(impls.Extends),
		Fencing:    true,
		Unfenced:   []string{replicated},
		Polls:      true,

		Topologies:  anywhere(),
		AvailableOn: []string{replicated},
		RoundTrips:  2,
		Requests:    []string{"eval", "evalsha"},
		Takeover:    atEnd,
	}
}

func (fenced) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	acquire := redis.NewScript(fencedScript)
	t, err := openTokens(ctx, cfg, releaseScript, extendScript, acquire)
	if err != nil {
		return nil, err
	}
	return &fencedClient{tokens: t, acquire: acquire}, nil
}

type fencedClient struct {
	*tokens
	acquire *redis.Script
}

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
