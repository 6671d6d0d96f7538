package redis

import (
	"context"
	"crypto/rand"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
)

// The scripts of redis/reentrant. The lock is a hash: the field owner is the
// client's name, and each of its holding attempts has a field.
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

// reentrant is redis/reentrant: a hash of the owner, a client, and its holds, so
// that the client can lock again.
//
// Document: the hash of Redisson's lock, with a field per acquire in place of its
// count.
//
//	acquire  if the hash has no owner, or this client: HSET key owner client
//	         attempt 1, PEXPIRE key ttl (one script); again after a wait if it has
//	         another owner
//	extend   if HEXISTS key attempt then PEXPIRE key ttl (one script)
//	release  HDEL key attempt, and DEL key if that was the last (one script)
//
// Every client has a random name. Every acquire has a field of its own in place of
// a count: a clean-up after a lost reply removes exactly what that acquire left,
// and holds may be released in any order. Each acquire, and each extension of any
// hold, restarts the TTL of the whole lock; a hold's LeaseEnd ignores the others.
//
// Round trips: 1 to acquire, 1 to release; a waiter adds 1 per poll.
// Bound: the TTL, by the server's clock. Takeover: at the end of the TTL, plus the
// rest of a poll.
// Guarantee: one client at a time until the end of the TTL, which may lock several
// times.
// Failure: as redis/token. A client that locks again after its outer hold expired
// gets the lock as any client does, and sees the loss only when it releases the
// outer hold.
type reentrant struct{ plain }

func (reentrant) Info() impls.Info {
	return describe(impls.Info{
		ID:         "redis/reentrant",
		Summary:    "a hash of the owner and its attempts, changed by scripts; the owner may lock again",
		Promise:    "one client at a time, which may lock again, until the TTL is over, while the server neither loses the key (eviction, restart without fsync, failover) nor has its clock changed",
		Document:   "the hash of Redisson's lock, with a field per acquire in place of a count",
		Properties: promised(impls.Reenterable, impls.Extends),
		Polls:      true,
		RoundTrips: 2,
		Requests:   []string{"eval", "evalsha"},
	})
}

func (reentrant) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	t, err := openTokens(ctx, cfg, scripts{enterScript, leaveScript, stayScript})
	if err != nil {
		return nil, err
	}
	return &reentrantClient{tokens: t, name: rand.Text(), held: map[string]map[impls.Attempt]bool{}}, nil
}

type reentrantClient struct {
	*tokens
	name string
	held map[string]map[impls.Attempt]bool
}

var _ impls.Reentrant = (*reentrantClient)(nil)

func (c *reentrantClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *reentrantClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	sent := impls.Monotonic(c.cfg.Clock)
	entered, err := c.run(ctx, "acquire", c.acquire, []string{key}, c.name, a.String(), c.cfg.TTL.Milliseconds())
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

// Depth is how many holds of key this client was granted and does not know to be
// released or lost.
func (c *reentrantClient) Depth(key string) int { return len(c.held[key]) }

func (c *reentrantClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.answered(key, a, c.tokens.Cleanup(ctx, key, a))
}

// answered removes an attempt from the client's holds if err is definite. It
// returns err.
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

// Left reads the fields of the lock's hash: the owner, which is no attempt, and the
// attempts.
func (c *reentrantClient) Left(ctx context.Context, key string) ([]impls.Entry, error) {
	var fields []string
	err := c.ask(ctx, "list", key, func(rdb *redis.Client) (err error) {
		fields, err = rdb.HKeys(ctx, key).Result()
		return err
	})
	return impls.ParseEntries(c.server.name(), fields...), err
}
