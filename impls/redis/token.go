package redis

import (
	"context"
	"fmt"
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
type token struct{}

func (token) Info() impls.Info {
	return impls.Info{
		ID:       "redis/token",
		Backend:  "redis",
		Summary:  "SET NX PX with a random token; release and extend by a script that compares it first",
		Promise:  "one holder until its TTL is over, while the server neither loses the key (eviction, restart without fsync, failover) nor has its clock set",
		Document: "the lock that the documentation of SET recommends for one instance",
		Bound:    impls.BoundTTL,
		Polls:    true,

		Topologies: []string{"single"},
		RoundTrips: 2,
		Requests:   []string{"set", "eval", "evalsha"},
		// An expired key is gone for whoever asks next, at once.
		Takeover: func(ttl time.Duration) time.Duration { return ttl },
	}
}

func (token) CheckTTL(ttl time.Duration, _ impls.Limits) error {
	if ttl < time.Millisecond || ttl%time.Millisecond != 0 {
		return fmt.Errorf("redis/token cannot serve a TTL of %s: Redis expires keys by whole milliseconds, at least 1ms", ttl)
	}
	return nil
}

// Prepare loads the scripts; keys need nothing.
func (token) Prepare(ctx context.Context, cfg impls.Config, _ []string) error {
	c, err := newTokenClient(cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.load(ctx)
}

func (token) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := newTokenClient(cfg)
	if err != nil {
		return nil, err
	}
	if err := c.load(ctx); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

type tokenClient struct {
	cfg             impls.Config
	rdb             *redis.Client
	release, extend *redis.Script
}

func newTokenClient(cfg impls.Config) (*tokenClient, error) {
	rdb, err := open(cfg)
	if err != nil {
		return nil, err
	}
	return &tokenClient{cfg: cfg, rdb: rdb, release: redis.NewScript(releaseScript), extend: redis.NewScript(extendScript)}, nil
}

// load puts the scripts on the server, so that the first release does not pay
// for it. A server that forgets them costs one more round trip, once.
func (c *tokenClient) load(ctx context.Context) error {
	for _, s := range []*redis.Script{c.release, c.extend} {
		if err := s.Load(ctx, c.rdb).Err(); err != nil {
			return fmt.Errorf("load the scripts of redis/token on %s: %w", c.cfg.Addresses[0], err)
		}
	}
	return nil
}

func (c *tokenClient) Close() error { return c.rdb.Close() }

func (c *tokenClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return impls.Poll(ctx, c.cfg, key, a, c.TryAcquire)
}

func (c *tokenClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("acquire %s: %w", key, impls.NotSent(err))
	}
	tok := a.String()
	// The lease runs on the server from some moment after this one, so that
	// it ends there no earlier than here.
	sent := c.cfg.Clock.Now()
	won, err := c.rdb.SetNX(ctx, key, tok, c.cfg.TTL).Result()
	if err != nil {
		return nil, c.fail("acquire", key, err)
	}
	if !won {
		return nil, impls.ErrBusy
	}
	return impls.NewLease(key, a, 0, sent, impls.Leaser{
		Clock: c.cfg.Clock,
		TTL:   c.cfg.TTL,
		Extend: func(ctx context.Context) error {
			return c.compare(ctx, "extend", c.extend, key, tok, c.cfg.TTL.Milliseconds())
		},
		Free: func(ctx context.Context) error { return c.compare(ctx, "release", c.release, key, tok) },
	}), nil
}

// Cleanup is a release by the attempt's token. A SET that is still on its way
// on a connection that was given up may be carried out after it; what it
// leaves ends with its TTL.
func (c *tokenClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	return c.compare(ctx, "clean up", c.release, key, a.String())
}

// compare runs a script that answers 1 if the token was there and the script
// has done its work, else 0.
func (c *tokenClient) compare(ctx context.Context, doing string, s *redis.Script, key, tok string, args ...any) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, impls.NotSent(err))
	}
	n, err := s.Run(ctx, c.rdb, []string{key}, append([]any{tok}, args...)...).Int64()
	switch {
	case err != nil:
		return c.fail(doing, key, err)
	case n == 1:
		return nil
	case n == 0:
		return impls.ErrLost
	default:
		return fmt.Errorf("%s %s: %w: the script answered %d", doing, key, impls.ErrUnknown, n)
	}
}

// fail names the outcome of err. After an error of the dialer it also starts
// with a fresh driver, since the old one would refuse to dial for a second
// and so lend its own delay to every measured recovery.
func (c *tokenClient) fail(doing, key string, err error) error {
	if impls.As[*impls.ConnectError](err) {
		if fresh, ferr := open(c.cfg); ferr == nil {
			c.rdb.Close()
			c.rdb = fresh
		}
	}
	return fmt.Errorf("%s %s: %w", doing, key, rules().Outcome(err))
}
