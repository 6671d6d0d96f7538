package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/impls"
)

// The scripts of redis/batch. KEYS: the locks. ARGV: the token and, except for the
// release, the TTL in milliseconds. They return how many of the keys have, or had,
// the token.
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

// batch is redis/batch: several keys with one token, acquired all or none.
//
// Document: a blog's Java lock that takes a list of keys: SETNX for each in one
// pipeline, EXPIRE for each that was set; if some are still missing at the
// deadline it deletes those it has. There, two batches can block each other, a
// crash leaves a part of a batch behind (without expiry before the EXPIRE), and
// the deletion may free other clients' locks. Here one script does it atomically.
//
//	acquire  if no key exists: SET each key token PX ttl (one script); again
//	         after a wait if one exists
//	extend   if all keys have the token: PEXPIRE each (one script); if only some
//	         have it: DEL these
//	release  DEL the keys that have the token (one script)
//
// Round trips: 1 to acquire, 1 to release, for any number of keys; a waiter adds 1
// per poll.
// Bound: the TTL, by the server's clock. Takeover: at the end of the TTL, plus the
// rest of a poll.
// Guarantee: one holder of each key until the end of the TTL, and no client sees a
// part of a batch taken: clients that want the same keys in different orders cannot
// deadlock. A hold that lost one of its keys is lost, and its next request frees
// the rest.
// Failure: as redis/token. A batch may starve while other clients take its keys one
// by one. On a cluster the keys must be in one slot, since one script cannot write
// on two nodes.
type batch struct{ plain }

func (batch) Info() impls.Info {
	return describe(impls.Info{
		ID:         "redis/batch",
		Summary:    "several keys with one random token, taken all or none by one script, and freed by one",
		Promise:    "one holder of each key until its TTL is over, batches all or none, while the server neither loses keys (eviction, restart without fsync, failover) nor has its clock changed",
		Document:   "a blog's Redis lock in Java, which takes lists of keys by a pipeline and a rollback; made atomic",
		Properties: promised(impls.Batch, impls.Extends),
		Polls:      true,
		RoundTrips: 2,
		Requests:   []string{"eval", "evalsha"},
	})
}

func (batch) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	t, err := openTokens(ctx, cfg, scripts{takeAllScript, freeAllScript, extendAllScript})
	if err != nil {
		return nil, err
	}
	return &batchClient{t}, nil
}

type batchClient struct{ *tokens }

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
	taken, err := c.run(ctx, "acquire", c.acquire, keys, a.String(), c.cfg.TTL.Milliseconds())
	switch {
	case err != nil:
		return nil, err
	case taken == 0:
		return nil, impls.ErrBusy
	}
	return c.hold(a, 0, sent, slices.Clone(keys)...), nil
}

// CleanupAll frees the keys that the attempt has. See Cleanup for a request that
// is still under way.
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

// checkKeys rejects an empty batch, and one that names a key twice.
func checkKeys(doing string, keys []string) error {
	seen := make(map[string]bool, len(keys))
	for _, key := range keys {
		seen[key] = true
	}
	if len(keys) == 0 || len(seen) < len(keys) {
		return fmt.Errorf("%s %q: %w", doing, keys, impls.NotSent(errors.New("a batch needs at least one key, and each key only once")))
	}
	return nil
}
