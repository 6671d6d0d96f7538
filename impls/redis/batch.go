package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
)

// The scripts of redis/batch. KEYS: the locks. ARGV: the token and, but for the
// release, the TTL in milliseconds. They answer how many of the keys are, or
// were, the token's.
const (
	takeAllScript = `
if redis.call('EXISTS', unpack(KEYS)) > 0 then
  return 0
end
for _, key in ipairs(KEYS) do
  redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
end
return #KEYS
`
	// All keys are read before the first is written.
	oursScript = `
local ours = {}
for _, key in ipairs(KEYS) do
  if redis.call('GET', key) == ARGV[1] then
    ours[#ours + 1] = key
  end
end
`
	freeAllScript = oursScript + `
if #ours > 0 then
  redis.call('DEL', unpack(ours))
end
return #ours
`
	extendAllScript = oursScript + `
if #ours == #KEYS then
  for _, key in ipairs(ours) do
    redis.call('PEXPIRE', key, ARGV[2])
  end
elseif #ours > 0 then
  redis.call('DEL', unpack(ours))
end
return #ours
`
)

// batch is redis/batch: several keys that hold one token, taken all or none.
//
//	acquire  if none of the keys is there: SET each of them token PX ttl (one
//	         script); again after a wait if one was there
//	extend   if all are the token's: PEXPIRE each (one script); if some are not,
//	         DEL those that are
//	release  DEL those that are the token's (one script)
//
// Round trips: 1 to acquire, 1 to release, whatever the number of keys; a waiter
// adds 1 per poll. Bound: the TTL, by the server's clock. Takeover: at the TTL's
// end, plus the rest of a poll.
//
// It promises one holder of each key until the TTL is over, and that nobody ever
// sees a part of a batch taken: clients that want the same keys in another order
// cannot wait for one another in a circle. A hold that lost one of its keys is
// lost, and what is left of it is freed when it is next asked. It fails as
// redis/token does; batches wait long where others keep taking single keys of
// theirs; and on a cluster the keys must be in one slot, since one script cannot
// write on two nodes.
//
// Source: a blog's lock in Java, which can take a list of keys: SETNX for each in
// one pipeline and EXPIRE for each that was won; if it cannot have all until its
// time is up it deletes what it has. There a batch is taken bit by bit, so that
// two of them can hold each other up, a crash leaves a part behind, without expiry
// if it comes before the EXPIRE, and the deletion may hit others' locks. Here one
// script does it all.
type batch struct{ plain }

func (batch) Info() impls.Info {
	return impls.Info{
		ID:         "redis/batch",
		Backend:    "redis",
		Summary:    "several keys with one random token, taken all or none by one script, and freed by one",
		Promise:    "one holder of each key until its TTL is over, batches all or none, while the server neither loses keys (eviction, restart without fsync, failover) nor has its clock set",
		Document:   "a blog's Redis lock in Java, which takes lists of keys by a pipeline and a rollback; made atomic",
		Bound:      impls.BoundTTL,
		Properties: promised(impls.Batch, impls.Extends),
		Polls:      true,

		Topologies:  anywhere(),
		AvailableOn: []string{replicated},
		RoundTrips:  2,
		Requests:    []string{"eval", "evalsha"},
		Takeover:    atEnd,
	}
}

func (batch) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	takeAll := redis.NewScript(takeAllScript)
	t, err := openTokens(ctx, cfg, freeAllScript, extendAllScript, takeAll)
	if err != nil {
		return nil, err
	}
	return &batchClient{tokens: t, takeAll: takeAll}, nil
}

type batchClient struct {
	*tokens
	takeAll *redis.Script
}

var _ impls.Batcher = (*batchClient)(nil)

func (c *batchClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return c.AcquireAll(ctx, []string{key}, a)
}

func (c *batchClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return c.TryAcquireAll(ctx, []string{key}, a)
}

func (c *batchClient) AcquireAll(ctx context.Context, keys []string, a impls.Attempt) (impls.Hold, error) {
	if err := checkKeys("acquire", keys); err != nil {
		return nil, err
	}
	return impls.Poll(ctx, c.cfg, keys[0], a, func(ctx context.Context, _ string, a impls.Attempt) (impls.Hold, error) {
		return c.take(ctx, keys, a)
	})
}

func (c *batchClient) TryAcquireAll(ctx context.Context, keys []string, a impls.Attempt) (impls.Hold, error) {
	if err := checkKeys("acquire", keys); err != nil {
		return nil, err
	}
	return c.take(ctx, keys, a)
}

func (c *batchClient) take(ctx context.Context, keys []string, a impls.Attempt) (impls.Hold, error) {
	sent := impls.Monotonic(c.cfg.Clock)
	taken, err := c.run(ctx, "acquire", c.takeAll, keys, a.String(), c.cfg.TTL.Milliseconds())
	switch {
	case err != nil:
		return nil, err
	case taken == 0:
		return nil, impls.ErrBusy
	}
	return c.hold(a, 0, sent, slices.Clone(keys)...), nil
}

// CleanupAll frees what the attempt has of keys. See Cleanup for a request that
// is still on its way.
func (c *batchClient) CleanupAll(ctx context.Context, keys []string, a impls.Attempt) error {
	if err := checkKeys("clean up", keys); err != nil {
		return err
	}
	freed, err := c.run(ctx, "clean up", c.release, keys, a.String())
	if err == nil && freed == 0 {
		err = impls.ErrLost
	}
	return err
}

// checkKeys refuses what is no batch.
func checkKeys(doing string, keys []string) error {
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		seen[key] = true
	}
	if len(keys) == 0 || len(seen) < len(keys) {
		return fmt.Errorf("%s %q: %w", doing, keys, impls.NotSent(errors.New("a batch is of at least one key, and of each key once")))
	}
	return nil
}
