package redis

import (
	"context"
	"errors"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// The scripts of redis/pubsub.
const (
	// takeScript takes the lock if it is free. It returns the previous PTTL: the
	// milliseconds that another client's lock lasts, -1 if it does not expire, or
	// -2 if there was none and the lock was taken.
	//
	// KEYS: the lock. ARGV: the token, the TTL in milliseconds.
	takeScript = `
local left = redis.call('PTTL', KEYS[1])
if left == -2 then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end
return left
`
	taken = -2
	// PUBLISH goes first, since the user may lack the permission for it; no client
	// receives the message before the script has ended.
	//
	// KEYS: the lock. ARGV: the token.
	releaseAndPublishScript = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end
redis.call('PUBLISH', '{' .. KEYS[1] .. '}:released', '')
return redis.call('DEL', KEYS[1])
`
)

// channel is where releaseAndPublishScript publishes the release of a key.
func channel(key string) string { return "{" + key + "}:released" }

// stepSubscribe: the lock was busy, and the client subscribes next. It misses
// releases until the subscription is confirmed.
const stepSubscribe impls.Step = "subscribe"

// waitCap is the longest sleep of a waiter of redis/pubsub without a message, since
// a message may be lost.
const waitCap = time.Second

// pubsub is redis/pubsub: the lock of redis/token, with releases published to the
// waiters.
//
// Document: how Redisson's lock waits.
//
//	acquire  if the key does not exist: SET key token PX ttl (one script);
//	         otherwise SUBSCRIBE to the lock's channel and try again once that is
//	         confirmed, since earlier messages were missed; if still busy, sleep
//	         until a message, the end of the holder's TTL or a second, whichever
//	         comes first, and try again; UNSUBSCRIBE at the end
//	extend   if GET key == token then PEXPIRE key ttl    (one script)
//	release  if GET key == token then PUBLISH, DEL key   (one script)
//
// Round trips: 1 to acquire, 1 to release; a waiter adds SUBSCRIBE and UNSUBSCRIBE
// on a connection of its own, and 1 per try: one per release of the key, at least
// one per second. Each release wakes all waiters of the key, and one of them wins.
// Bound: the TTL, by the server's clock. Takeover: at the end of the TTL.
// Guarantee: one holder until the end of the TTL. A waiter that missed a message
// finds the lock free at most a second later.
// Failure: as redis/token.
type pubsub struct{ plain }

func (pubsub) Info() impls.Info {
	return describe(impls.Info{
		ID:         "redis/pubsub",
		Summary:    "redis/token, with releases published; waiters subscribe, and try again after a message, at the TTL's end, or after 1 s",
		Promise:    "one holder until its TTL is over, while the server neither loses the key (eviction, restart without fsync, failover) nor has its clock changed",
		Document:   "how Redisson's lock waits",
		Properties: promised(impls.Extends),
		Steps:      []impls.Step{stepSubscribe},
		RoundTrips: 2,
		Requests:   []string{"eval", "evalsha", "subscribe", "unsubscribe"},
	})
}

func (pubsub) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	t, err := openTokens(ctx, cfg, scripts{takeScript, releaseAndPublishScript, extendScript})
	if err != nil {
		return nil, err
	}
	return &pubsubClient{tokens: t}, nil
}

type pubsubClient struct {
	*tokens
	subscription *subscription // nil until the first wait, and after an error
}

// Close ends the connections.
func (c *pubsubClient) Close() error {
	c.endSubscription()
	return c.tokens.Close()
}

func (c *pubsubClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	h, _, err := c.try(ctx, key, a)
	if err != nil {
		return nil, err
	}
	return h, nil
}

// try sends one request. If the lock is busy, left is how long to wait for its end.
func (c *pubsubClient) try(ctx context.Context, key string, a impls.Attempt) (h *impls.Lease, left time.Duration, err error) {
	sent := impls.Monotonic(c.cfg.Clock)
	ms, err := c.run(ctx, "acquire", c.acquire, []string{key}, a.String(), c.cfg.TTL.Milliseconds())
	switch {
	case err != nil:
		return nil, 0, err
	case ms == taken:
		return c.hold(a, 0, sent, key), 0, nil
	case ms < 0:
		return nil, waitCap, impls.ErrBusy
	default:
		// The server rounds down to whole milliseconds.
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
			// Without a subscription the waiter tries again when left is over.
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
		subscribed = subscribed && c.subscription.isOpen()
	}
}

// sleep waits for a message, at most d. It returns the error of ctx if ctx ends
// first.
func (c *pubsubClient) sleep(ctx context.Context, d time.Duration) (woken bool, err error) {
	over := make(chan struct{})
	stop := c.cfg.Clock.AfterFunc(d, func() { close(over) })
	defer stop()
	var messages, closed <-chan struct{}
	if c.subscription != nil {
		messages, closed = c.subscription.messages, c.subscription.closed
	}
	select {
	case <-messages:
		return true, nil
	case <-closed: // a message may be lost
		return false, nil
	case <-over:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// subscribe subscribes to the releases of key, and reports whether the server has
// confirmed it. If an existing connection has ended, it tries once with a new one.
func (c *pubsubClient) subscribe(ctx context.Context, key string) bool {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	for fresh := false; !fresh; {
		if fresh = c.subscription == nil; fresh {
			c.subscription = newSubscription(c.driver())
		}
		if c.subscription.subscribe(ctx, channel(key)) {
			return true
		}
		// A late confirmation must not be taken for that of the next channel.
		c.endSubscription()
	}
	return false
}

// unsubscribe need not wait for a confirmation: messages of another channel are
// ignored.
func (c *pubsubClient) unsubscribe(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.cfg.Timeout)
	defer cancel()
	if c.subscription.pubsub.Unsubscribe(ctx, channel(key)) != nil {
		c.endSubscription()
	}
}

func (c *pubsubClient) endSubscription() {
	if c.subscription != nil {
		c.subscription.close()
		c.subscription = nil
	}
}
