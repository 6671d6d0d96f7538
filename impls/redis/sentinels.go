package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/impls"
)

// replicated is the topology of a master, its replicas, and the sentinels that
// promote a replica when the master does not answer.
const replicated = "replicated"

// anywhere lists the topologies of recipes that need one server, which may be the
// master of several. Replication is asynchronous: a failover to a replica that has
// not received a lock loses it, and no recipe here waits for replicas.
func anywhere() []string { return []string{"single", replicated} }

// masterName is the sentinels' name for the master and its replicas.
const masterName = "lockbench"

// masterPollInterval is how often a client asks the sentinels for the master. (It
// does not subscribe to their messages: these do not arrive on a connection that
// has silently ended.)
const masterPollInterval = 250 * time.Millisecond

// sentinels find the master. It is safe for concurrent use.
type sentinels struct {
	timeout time.Duration // of a request to one of them

	mu    sync.Mutex
	list  []*redis.SentinelClient // in the order of asking: first the one that answered last, unless its master failed
	epoch uint64                  // of the newest known master
}

func newSentinels(cfg impls.Config) *sentinels {
	s := &sentinels{timeout: cfg.Timeout / time.Duration(len(cfg.Directory))}
	for _, address := range cfg.Directory {
		s.list = append(s.list, redis.NewSentinelClient(options(cfg, address, cfg.Dial)))
	}
	return s
}

// Close ends the connections. The driver may still be dialling in the background
// when its client is closed.
func (s *sentinels) Close() error {
	var errs []error
	for _, one := range s.order() {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// order returns the sentinels in the order of asking.
func (s *sentinels) order() []*redis.SentinelClient {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// master is the address of the master by the first sentinel that answers, within
// the timeout of one request in total.
func (s *sentinels) master(ctx context.Context) (string, error) {
	list := s.order()
	var errs []error
	for i, one := range list {
		address, err := s.ask(ctx, one)
		if err == nil {
			s.mu.Lock()
			s.list = slices.Concat(list[i:], list[:i])
			s.mu.Unlock()
			return address, nil
		}
		errs = append(errs, fmt.Errorf("sentinel %s: %w", one, err))
	}
	return "", fmt.Errorf("no sentinel returned the address of the master: %w", errors.Join(errs...))
}

// rotate moves the first sentinel to the end, because the master it returned is
// unreachable or no longer the master. A sentinel that was interrupted in a
// failover by the next one returns the server that it had promoted as long as
// that is down, whatever the other sentinels have agreed on since.
func (s *sentinels) rotate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.Concat(s.list[1:], s.list[:1])
}

// ask asks one sentinel. One that does not know the newest known master yet counts
// as unreachable: the client must not return to an older master.
func (s *sentinels) ask(ctx context.Context, one *redis.SentinelClient) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	about, err := one.Master(ctx, masterName).Result()
	if err != nil {
		return "", err
	}
	epoch, err := strconv.ParseUint(about["config-epoch"], 10, 64)
	if err != nil {
		return "", fmt.Errorf("invalid epoch of the master: %w", err)
	}
	named, err := one.GetMasterAddrByName(ctx, masterName).Result()
	if err != nil {
		return "", err
	}
	if len(named) != 2 {
		return "", fmt.Errorf("the sentinel returned %q, which is no address", named)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch < s.epoch {
		return "", fmt.Errorf("the sentinel does not know the newest master: its epoch is %d, the newest is %d", epoch, s.epoch)
	}
	s.epoch = epoch
	return net.JoinHostPort(named[0], named[1]), nil
}

// pin is the only server that a driver instance talks to: the master at its first
// dial. Connections to two servers could contradict each other.
type pin struct {
	mu      sync.Mutex
	address string // "" before the first dial
}

// to returns the pinned address, or pins address.
func (p *pin) to(address string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.address == "" {
		p.address = address
	}
	return p.address
}

// dialer dials the pinned server with dial.
func (s *sentinels) dialer(p *pin, dial impls.DialFunc) impls.DialFunc {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		address := p.to("")
		if address == "" {
			named, err := s.master(ctx)
			if err != nil {
				return nil, err
			}
			address = p.to(named)
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			s.rotate()
		}
		return conn, err
	}
}

// checkMaster checks on a new connection that the server is the master. The
// sentinels agree on a new master before the old master and all sentinels know of
// it; and scripts on a replica may read old data.
func (s *sentinels) checkMaster(ctx context.Context, conn *redis.Conn) error {
	role, err := conn.Do(ctx, "role").Slice()
	if err == nil && (len(role) == 0 || role[0] != "master") {
		err = fmt.Errorf("its role is %v, not master", role)
	}
	if err != nil {
		s.rotate()
		// The driver removes the outer error before it returns this.
		return fmt.Errorf("new connection: %w", &impls.ConnectError{Err: fmt.Errorf("ask the sentinels' master for its role: %w", err)})
	}
	return nil
}

// answeredByMaster reports whether err is a reply of a server that believes to be
// the master and can serve.
func answeredByMaster(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	for _, prefix := range []string{"READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS"} {
		if redis.HasErrorPrefix(err, prefix) {
			return false
		}
	}
	return true
}
