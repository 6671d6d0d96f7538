package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
)

// server sends a client's requests to its server: the only one, or the current
// master of several. It is safe for concurrent use.
type server struct {
	cfg       impls.Config
	sentinels *sentinels // nil with a single server

	mu     sync.Mutex
	rdb    *redis.Client
	pinned *pin // the server that rdb talks to, with sentinels
	closed bool

	stop    context.CancelFunc // of follow
	running sync.WaitGroup
}

// connect makes a server and loads the scripts, so that no call pays for that. A
// server that loses them, by a restart or a flush, costs one more round trip per
// script.
func connect(ctx context.Context, cfg impls.Config, scripts ...*redis.Script) (*server, error) {
	s := &server{cfg: cfg}
	switch {
	case cfg.Topology != replicated && len(cfg.Addresses) != 1:
		return nil, fmt.Errorf("open redis client: want the address of one server, got %d", len(cfg.Addresses))
	case cfg.Topology != replicated:
	case len(cfg.Directory) == 0:
		return nil, fmt.Errorf("open redis client: a replicated redis needs the addresses of its sentinels as the directory")
	default:
		s.sentinels = newSentinels(cfg)
	}
	background, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.open()
	for _, script := range scripts {
		if err := script.Load(ctx, s.rdb).Err(); err != nil {
			_ = s.Close()
			return nil, fmt.Errorf("load a script on %s: %w", s.name(), err)
		}
	}
	if s.sentinels != nil {
		s.running.Go(func() { s.follow(background) })
	}
	return s, nil
}

// open makes a driver instance, which connects at the first command.
func (s *server) open() {
	opt := options(s.cfg, s.name(), s.cfg.Dial)
	if s.sentinels != nil {
		s.pinned = &pin{}
		opt = options(s.cfg, s.name(), s.sentinels.dialer(s.pinned, s.cfg.Dial))
		opt.OnConnect = s.sentinels.checkMaster
	}
	s.rdb = redis.NewClient(opt)
}

// follow replaces the driver when the sentinels report another master, until ctx
// ends.
func (s *server) follow(ctx context.Context) {
	for s.cfg.Clock.Sleep(ctx, masterPollInterval) == nil {
		named, err := s.sentinels.master(ctx)
		if err != nil {
			continue
		}
		s.mu.Lock()
		rdb, pinned := s.rdb, s.pinned
		s.mu.Unlock()
		if pinned.to(named) != named {
			s.replace(rdb)
		}
	}
}

// name is the server's name in errors.
func (s *server) name() string {
	if s.sentinels != nil {
		return "the master"
	}
	return s.cfg.Addresses[0]
}

// Close ends the connections and the requests under way.
func (s *server) Close() error {
	s.stop()
	s.mu.Lock()
	s.closed = true
	err := s.rdb.Close()
	s.mu.Unlock()
	if s.sentinels != nil {
		err = errors.Join(err, s.sentinels.Close())
	}
	s.running.Wait()
	return err
}

// driver is the current driver instance.
func (s *server) driver() *redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rdb
}

// replace replaces a driver instance by a new one, see mustReplace, and ends the
// requests under way on the old one.
func (s *server) replace(old *redis.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.rdb != old {
		return
	}
	s.open()
	_ = old.Close()
}

// mustReplace reports whether to replace the driver after err: if its dialer
// failed, since it would then refuse to dial for a second and add its own delay to
// every measured recovery; and if the sentinels may know another master.
func (s *server) mustReplace(err error) bool {
	return impls.As[*impls.ConnectError](err) || s.sentinels != nil && !answeredByMaster(err)
}

// ask sends one request with send, which returns the driver's error. The returned
// error has the outcome and what was being done; nothing is sent if ctx is over.
func (s *server) ask(ctx context.Context, doing, key string, send func(*redis.Client) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, impls.NotSent(err))
	}
	rdb := s.driver()
	err := send(rdb)
	if err == nil {
		return nil
	}
	if s.mustReplace(err) {
		s.replace(rdb)
	}
	return fmt.Errorf("%s %s: %w", doing, key, rules().Outcome(err))
}

// run runs a script that returns a number.
func (s *server) run(ctx context.Context, doing string, script *redis.Script, keys []string, args ...any) (n int64, err error) {
	err = s.ask(ctx, doing, keys[0], func(rdb *redis.Client) (err error) {
		n, err = script.Run(ctx, rdb, keys, args...).Int64()
		return err
	})
	return n, err
}

// compare runs a script that returns how many of keys belonged to the attempt. It
// is nil if all did, and ErrLost if not.
func (s *server) compare(ctx context.Context, doing string, script *redis.Script, keys []string, args ...any) error {
	n, err := s.run(ctx, doing, script, keys, args...)
	all := int64(len(keys))
	switch {
	case err != nil:
		return err
	case n == all:
		return nil
	case 0 <= n && n < all:
		return impls.ErrLost
	default:
		return fmt.Errorf("%s %s: %w: the script answered %d", doing, keys[0], impls.ErrUnknown, n)
	}
}

// plain is the common part of recipes whose keys need no preparation and expire by
// the millisecond.
type plain struct{}

// CheckTTL takes whole milliseconds.
func (plain) CheckTTL(ttl time.Duration, _ impls.Limits) error {
	if ttl < time.Millisecond || ttl%time.Millisecond != 0 {
		return fmt.Errorf("cannot serve a TTL of %s: Redis expires keys by whole milliseconds, at least 1ms", ttl)
	}
	return nil
}

// Prepare does nothing: a lock is a key that an acquire creates.
func (plain) Prepare(context.Context, impls.Config, []string) error { return nil }

// atEnd is the takeover bound of a key that expires: the next request finds it
// gone.
func atEnd(ttl time.Duration) time.Duration { return ttl }

// describe adds to a recipe's description the facts of all recipes that need one
// server. A recipe may set another bound or takeover.
func describe(i impls.Info) impls.Info {
	i.Backend = "redis"
	i.Bound = cmp.Or(i.Bound, impls.BoundTTL)
	i.Topologies, i.AvailableOn = anywhere(), []string{replicated}
	if i.Takeover == nil {
		i.Takeover = atEnd
	}
	return i
}

// promised lists the properties of every lock here whose acquire is one request
// that sets a key with the attempt's token and a TTL, and further properties.
func promised(further ...impls.Property) []impls.Property {
	return append([]impls.Property{
		impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Blocking, impls.NonBlocking, impls.Expiry,
		impls.ReportsLost, impls.CleansUp, impls.Once,
	}, further...)
}
