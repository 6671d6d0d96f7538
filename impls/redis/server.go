package redis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
)

// server is a client's way to its server: the only one, or whoever is the master
// of several. Its methods may be called by several goroutines at once.
type server struct {
	cfg       impls.Config
	sentinels *sentinels // nil: there is one server only

	mu     sync.Mutex
	rdb    *redis.Client
	pinned *pin // whom rdb talks to, where there are sentinels
	closed bool

	stop    context.CancelFunc // of what follows the master
	running sync.WaitGroup
}

// connect makes a server and loads the scripts that will be run on it, so that
// no call pays for that. One that forgets them, by a restart or a flush, costs
// one more round trip, once per script.
func connect(ctx context.Context, cfg impls.Config, scripts ...*redis.Script) (*server, error) {
	s := &server{cfg: cfg}
	switch {
	case cfg.Topology != replicated && len(cfg.Addresses) != 1:
		return nil, fmt.Errorf("open redis client: want the address of one server, got %d", len(cfg.Addresses))
	case cfg.Topology != replicated:
	case len(cfg.Directory) == 0:
		return nil, fmt.Errorf("open redis client: the sentinels tell who the master of a replicated redis is; name their addresses as the directory")
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

// open makes a driver instance. It connects when the first command is sent.
func (s *server) open() {
	opt := options(s.cfg, s.name(), s.cfg.Dial)
	if s.sentinels != nil {
		s.pinned = &pin{}
		opt = options(s.cfg, s.name(), s.sentinels.dialer(s.pinned, s.cfg.Dial))
		opt.OnConnect = s.sentinels.checkMaster
	}
	s.rdb = redis.NewClient(opt)
}

// follow makes the client leave a server when the sentinels name another, until
// ctx ends.
func (s *server) follow(ctx context.Context) {
	for s.cfg.Clock.Sleep(ctx, lookEvery) == nil {
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

// name is the server's in words.
func (s *server) name() string {
	if s.sentinels != nil {
		return "the master"
	}
	return s.cfg.Addresses[0]
}

// Close ends the connections, and with them the requests under way.
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

// driver is the driver's present instance.
func (s *server) driver() *redis.Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.rdb
}

// replace starts with a fresh driver in place of one that is not worth asking
// again, see astray, and ends what is under way on the old one.
func (s *server) replace(old *redis.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.rdb != old {
		return
	}
	s.open()
	_ = old.Close()
}

// astray reports whether a request that came to err should be the last of a
// driver instance: if its dialer failed, for then it would refuse to dial for a
// second, and so lend its own delay to every measured recovery; and where the
// sentinels may know better who the master is.
func (s *server) astray(err error) bool {
	return impls.As[*impls.ConnectError](err) || s.sentinels != nil && !saidByMaster(err)
}

// ask sends one request by means of send, which returns the driver's error.
// The error's outcome is named, and so is what was being done; nothing is sent
// if ctx is over.
func (s *server) ask(ctx context.Context, doing, key string, send func(*redis.Client) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s %s: %w", doing, key, impls.NotSent(err))
	}
	rdb := s.driver()
	err := send(rdb)
	if err == nil {
		return nil
	}
	if s.astray(err) {
		s.replace(rdb)
	}
	return fmt.Errorf("%s %s: %w", doing, key, rules().Outcome(err))
}

// run runs a script whose answer is a number.
func (s *server) run(ctx context.Context, doing string, script *redis.Script, keys []string, args ...any) (n int64, err error) {
	err = s.ask(ctx, doing, keys[0], func(rdb *redis.Client) (err error) {
		n, err = script.Run(ctx, rdb, keys, args...).Int64()
		return err
	})
	return n, err
}

// compare runs a script that answers how many of keys were the attempt's, and
// has done its work if they all were.
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

// plain is what recipes have in common whose keys need no preparation and
// expire by the millisecond.
type plain struct{}

// CheckTTL takes whole milliseconds.
func (plain) CheckTTL(ttl time.Duration, _ impls.Limits) error {
	if ttl < time.Millisecond || ttl%time.Millisecond != 0 {
		return fmt.Errorf("cannot serve a TTL of %s: Redis expires keys by whole milliseconds, at least 1ms", ttl)
	}
	return nil
}

// Prepare does nothing: there is nothing that Open does not do by itself.
func (plain) Prepare(context.Context, impls.Config, []string) error { return nil }

// atEnd is the takeover bound of a key that expires: then it is gone for
// whoever asks next, at once.
func atEnd(ttl time.Duration) time.Duration { return ttl }

// promised lists what every lock of these has whose one request takes a key
// with the attempt's token and a TTL, and further properties.
func promised(further ...impls.Property) []impls.Property {
	return append([]impls.Property{
		impls.Exclusive, impls.DeadlockFree, impls.Symmetric, impls.Blocking, impls.NonBlocking, impls.Expiry,
		impls.ReportsLost, impls.CleansUp, impls.Once,
	}, further...)
}
