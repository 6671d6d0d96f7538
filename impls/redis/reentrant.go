package redis

import (
	"context"
	"crypto/rand"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
)

// The scripts of redis/reentrant. The lock is a hash: the field owner names the
// client, and each of its attempts that holds has a field by its own name.
const (
	// KEYS: the lock. ARGV: the client, the attempt, the TTL in milliseconds.
	enterScript = `
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= ARGV[1] then
  return 0
end
redis.call('HSET', KEYS[1], 'owner', ARGV[1], ARGV[2], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
`
	// KEYS: the lock. ARGV: the attempt.
	leaveScript = `
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then
  return 0
end
if redis.call('HLEN', KEYS[1]) == 1 then
  redis.call('DEL', KEYS[1])
end
return 1
`
	// KEYS: the lock. ARGV: the attempt, the TTL in milliseconds.
	stayScript = `
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
  return 0
end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])
`
)

// reentrant is redis/reentrant: a hash that names its owner, a client, and what
// that holds, so that the client can lock again what it holds.
//
//	acquire  if the hash names no owner, or this client: HSET key owner client
//	         attempt 1, PEXPIRE key ttl (one script); again after a wait if it
//	         names another
//	extend   if HEXISTS key attempt then PEXPIRE key ttl (one script)
//	release  HDEL key attempt, and DEL key if that was the last (one script)
//
// A client is named at random when it is opened. Every acquire has a field of its
// own, where others keep a count: so a clean-up after a lost answer takes away
// what that one acquire may have left, and never a hold around it, and holds may
// be released in any order. Each acquire begins the TTL of the whole lock anew,
// and so does extending any of its holds; a hold's own LeaseEnd does not count on
// the others.
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock. Takeover: at the TTL's end, plus the
// rest of a poll.
//
// It promises one client at a time until the TTL is over, however often that has
// locked. It fails as redis/token does. A client that locks again after its outer
// hold ran out is granted the lock like anybody else, and learns of the loss only
// when it releases the outer one.
//
// Source: the hash of Redisson's lock, with a field per acquire in place of its
// count.
type reentrant struct{ plain }

func (reentrant) Info() impls.Info {
	return impls.Info{
		ID:         "redis/reentrant",
		Backend:    "redis",
		Summary:    "a hash of the owner and its attempts, changed by scripts; the owner may lock again",
		Promise:    "one client at a time, which may lock again, until the TTL is over, while the server neither loses the key (eviction, restart without fsync, failover) nor has its clock set",
		Document:   "the hash of Redisson's lock, with a field per acquire in place of a count",
		Bound:      impls.BoundTTL,
		Properties: promised(impls.Reenterable, impls.Extends),
		Polls:      true,

		Topologies:  anywhere(),
		AvailableOn: []string{replicated},
		RoundTrips:  2,
		Requests:    []string{"eval", "evalsha"},
		Takeover:    atEnd,
	}
}

func (reentrant) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	enter := redis.NewScript(enterScript)
	t, err := openTokens(ctx, cfg, leaveScript, stayScript, enter)
	if err != nil {
		return nil, err
	}
	return &reentrantClient{tokens: t, enter: enter, name: rand.Text(), held: map[string]map[impls.Attempt]bool{}}, nil
}

type reentrantClient struct {
	*tokens
	enter *redis.Script
	name  string
	held  map[string]map[impls.Attempt]bool
}

var _ impls.Reentrant = (*reentrantClient)(nil)

func (c *reentrantClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *reentrantClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	sent := impls.Monotonic(c.cfg.Clock)
	entered, err := c.run(ctx, "acquire", c.enter, []string{key}, c.name, a.String(), c.cfg.TTL.Milliseconds())
	switch {
	case err != nil:
		return nil, err
	case entered == 0:
		return nil, impls.ErrBusy
	}
	if c.held[key] == nil {
		c.held[key] = map[impls.Attempt]bool{}
	}
	c.held[key][a] = true
	return &entry{Lease: c.hold(a, 0, sent, key), client: c}, nil
}

// Depth is how many holds of key this client was granted, and has not been told
// to have released or lost.
func (c *reentrantClient) Depth(key string) int { return len(c.held[key]) }

func (c *reentrantClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.answered(key, a, c.tokens.Cleanup(ctx, key, a))
}

// answered takes an attempt off the client's count if err says that it holds no
// more. It returns err.
func (c *reentrantClient) answered(key string, a impls.Attempt, err error) error {
	if impls.Definite(err) {
		delete(c.held[key], a)
	}
	if len(c.held[key]) == 0 {
		delete(c.held, key)
	}
	return err
}

// entry is one of a client's holds.
type entry struct {
	*impls.Lease
	client *reentrantClient
}

func (e *entry) Extend(ctx context.Context) error {
	err := e.Lease.Extend(ctx)
	if err == nil {
		return nil
	}
	return e.client.answered(e.Key(), e.Attempt(), err)
}

func (e *entry) Release(ctx context.Context) error {
	return e.client.answered(e.Key(), e.Attempt(), e.Lease.Release(ctx))
}
