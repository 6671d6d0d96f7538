package redis

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
)

// The scripts of redis/pubsub.
const (
	// lookScript takes the lock if it is free. It answers what PTTL answered
	// before: the milliseconds that the lock of another has left, -1 if that has
	// no end, or -2 if there was none, and the lock is taken.
	//
	// KEYS: the lock. ARGV: the token, the TTL in milliseconds.
	lookScript = `
local left = redis.call('PTTL', KEYS[1])
if left == -2 then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return left
`
	lookTook = -2
	// Nobody sees the message before the script is over. It goes first, for a
	// user may not be allowed to publish.
	//
	// KEYS: the lock. ARGV: the token.
	tellScript = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('PUBLISH', '{' .. KEYS[1] .. '}:released', '')
return redis.call('DEL', KEYS[1])
`
)

// channel is where tellScript tells of a key.
func channel(key string) string { return "{" + key + "}:released" }

// stepSubscribe: the lock was refused; what follows is the subscription. A
// release until that is confirmed is not told.
const stepSubscribe impls.Step = "subscribe"

// waitCap is the longest that a waiter of redis/pubsub sleeps without a message,
// which may be lost.
const waitCap = time.Second

// pubsub is redis/pubsub: the lock of redis/token, whose release is published to
// the waiters.
//
//	acquire  if there is no key: SET key token PX ttl (one script). Otherwise
//	         SUBSCRIBE to the lock's channel, and look again once that is
//	         confirmed, for what was published before was not heard. Still there:
//	         sleep until a message, the end of the holder's TTL or a second, the
//	         first of these, and look again; UNSUBSCRIBE at the end
//	extend   if GET key == token then PEXPIRE key ttl    (one script)
//	release  if GET key == token then PUBLISH, DEL key   (one script)
//
// Round trips: 1 to acquire, 1 to release; a waiter adds its subscription and the
// end of that, on a connection of its own, and 1 for each look: a look per release
// of the key, at least one a second. Each release wakes all waiters of the key, of
// whom one wins.
// Bound: the TTL, by the server's clock. Takeover: at the TTL's end.
//
// It promises one holder until the TTL is over, and fails as redis/token does.
// Messages are sent once, to those who are connected: a waiter that missed one
// finds the lock free at most a second later.
//
// Source: how Redisson's lock waits.
type pubsub struct{ plain }

func (pubsub) Info() impls.Info {
	return impls.Info{
		ID:         "redis/pubsub",
		Backend:    "redis",
		Summary:    "redis/token, whose release is published; waiters subscribe, and look again after a message, at the TTL's end, or after 1 s",
		Promise:    "one holder until its TTL is over, while the server neither loses the key (eviction, restart without fsync, failover) nor has its clock set",
		Document:   "how Redisson's lock waits",
		Bound:      impls.BoundTTL,
		Properties: promised(impls.Extends),
		Steps:      []impls.Step{stepSubscribe},

		Topologies:  anywhere(),
		AvailableOn: []string{replicated},
		RoundTrips:  2,
		Requests:    []string{"eval", "evalsha", "subscribe", "unsubscribe"},
		Takeover:    atEnd,
	}
}

func (pubsub) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	look := redis.NewScript(lookScript)
	t, err := openTokens(ctx, cfg, tellScript, extendScript, look)
	if err != nil {
		return nil, err
	}
	return &pubsubClient{tokens: t, look: look}, nil
}

type pubsubClient struct {
	*tokens
	look *redis.Script
	ear  *ear // nil until the first wait, and after a doubt
}

// Close ends the connections.
func (c *pubsubClient) Close() error {
	c.hangUp()
	return c.tokens.Close()
}

func (c *pubsubClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	h, _, err := c.try(ctx, key, a)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// try looks once. If the lock is busy, left is how long to wait for its end.
func (c *pubsubClient) try(ctx context.Context, key string, a impls.Attempt) (h *impls.Lease, left time.Duration, err error) {
	sent := impls.Monotonic(c.cfg.Clock)
	ms, err := c.run(ctx, "acquire", c.look, []string{key}, a.String(), c.cfg.TTL.Milliseconds())
	switch {
	case err != nil:
		return nil, 0, err
	case ms == lookTook:
		return c.hold(a, 0, sent, key), 0, nil
	case ms < 0:
		return nil, waitCap, impls.ErrBusy
	default:
		// The server cuts off what is less than a millisecond.
		return nil, min(waitCap, time.Duration(ms+1)*time.Millisecond), impls.ErrBusy
	}
}

func (c *pubsubClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	subscribed := false
	defer func() {
		if subscribed {
			c.unsubscribe(ctx, key)
		}
	}()
	for {
		h, left, err := c.try(ctx, key, a)
		if err == nil {
			return h, nil
		}
		if !errors.Is(err, impls.ErrBusy) {
			return nil, err
		}
		if !subscribed {
			c.cfg.Reach(ctx, stepSubscribe)
			// Without a subscription the waiter hears nothing and looks when
			// left is over.
			if subscribed = c.subscribe(ctx, key); subscribed {
				continue
			}
		}
		c.cfg.Reach(ctx, impls.StepWaiting)
		woken, err := c.sleep(ctx, left)
		if err != nil {
			return nil, impls.GaveUp(key, err) // the last answer was definite
		}
		if woken {
			c.cfg.Reach(ctx, impls.StepWoken)
		}
		subscribed = subscribed && c.ear.hears()
	}
}

// sleep waits for a message, at most d. It returns the error of ctx, if that
// ends it.
func (c *pubsubClient) sleep(ctx context.Context, d time.Duration) (woken bool, err error) {
	over := make(chan struct{})
	stop := c.cfg.Clock.AfterFunc(d, func() { close(over) })
	defer stop()
	var told, deaf <-chan struct{}
	if c.ear != nil {
		told, deaf = c.ear.told, c.ear.deaf
	}
	select {
	case <-told:
		return true, nil
	case <-deaf: // may have missed one
		return false, nil
	case <-over:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// subscribe begins to listen for releases of key, and reports whether the server
// has confirmed it. A connection from before may turn out to have ended; a new
// one is given one chance.
func (c *pubsubClient) subscribe(ctx context.Context, key string) bool {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	for fresh := false; !fresh; {
		if fresh = c.ear == nil; fresh {
			c.ear = newEar(c.driver())
		}
		if c.ear.listen(ctx, channel(key)) {
			return true
		}
		// A confirmation that comes later must not be taken for another's.
		c.hangUp()
	}
	return false
}

// unsubscribe ends the subscription. It need not be confirmed: what is heard of
// it meanwhile counts for nothing.
func (c *pubsubClient) unsubscribe(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Timeout)
	defer cancel()
	if c.ear.pubsub.Unsubscribe(ctx, channel(key)) != nil {
		c.hangUp()
	}
}

func (c *pubsubClient) hangUp() {
	if c.ear != nil {
		c.ear.close()
		c.ear = nil
	}
}
