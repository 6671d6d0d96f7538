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

// replicated is the topology of a master, its replicas, and the sentinels who
// make one of these the master when it is silent.
const replicated = "replicated"

// anywhere lists the topologies of recipes that need one server: it may be the
// master of several. Replicas hear of its writes later: a failover to one that
// had not heard of a lock loses that, which no recipe here waits to rule out.
func anywhere() []string { return []string{"single", replicated} }

// masterName is what the sentinels call the master and its replicas.
const masterName = "lockbench"

// lookEvery is how often a client asks the sentinels whether there is another
// master by now. (Others have them tell: what a sentinel publishes does not come
// over a connection that has silently ended.)
const lookEvery = 250 * time.Millisecond

// sentinels tell a client who the master is. It is safe for concurrent use.
type sentinels struct {
	timeout time.Duration // for one of them

	mu    sync.Mutex
	list  []*redis.SentinelClient // as they are asked: first who has answered last, unless that led nowhere
	epoch uint64                  // of the newest master that the client has heard of
}

func newSentinels(cfg impls.Config) *sentinels {
	s := &sentinels{timeout: cfg.Timeout / time.Duration(len(cfg.Directory))}
	for _, address := range cfg.Directory {
		s.list = append(s.list, redis.NewSentinelClient(options(cfg, address, cfg.Dial)))
	}
	return s
}

// Close ends the connections. The driver may still dial, in the background and
// for nobody, when its client is closed.
func (s *sentinels) Close() error {
	var errs []error
	for _, one := range s.asked() {
		errs = append(errs, one.Close())
	}
	return errors.Join(errs...)
}

// asked is the list as it is now.
func (s *sentinels) asked() []*redis.SentinelClient {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.list)
}

// master is the address of the master by the first sentinel that answers. All of
// them together have as long as one request.
func (s *sentinels) master(ctx context.Context) (string, error) {
	list := s.asked()
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
	return "", fmt.Errorf("no sentinel tells who the master is: %w", errors.Join(errs...))
}

// doubt has another sentinel asked first from now on: whom the first one named
// cannot be had, or is not the master. One that was in the midst of a failover
// when the next one came names the server that it had promoted for as long as
// that is down, whatever the others have agreed on since.
func (s *sentinels) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.Concat(s.list[1:], s.list[:1])
}

// ask asks one sentinel. One that has not heard of the newest master yet, of whom
// another has told, is as good as silent: the client must not go back.
func (s *sentinels) ask(ctx context.Context, one *redis.SentinelClient) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	about, err := one.Master(ctx, masterName).Result()
	if err != nil {
		return "", err
	}
	epoch, err := strconv.ParseUint(about["config-epoch"], 10, 64)
	if err != nil {
		return "", fmt.Errorf("the epoch of the master: %w", err)
	}
	named, err := one.GetMasterAddrByName(ctx, masterName).Result()
	if err != nil {
		return "", err
	}
	if len(named) != 2 {
		return "", fmt.Errorf("it answers %q, which is no address", named)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if epoch < s.epoch {
		return "", fmt.Errorf("it has not heard of the newest master: it knows epoch %d of %d", epoch, s.epoch)
	}
	s.epoch = epoch
	return net.JoinHostPort(named[0], named[1]), nil
}

// pin is the one server that a driver instance talks to: whoever is the master
// when it first dials. Two at a time could deny what the other has said.
type pin struct {
	mu      sync.Mutex
	address string // "" before the first dial
}

// to is the pinned address, or else address, which is pinned then.
func (p *pin) to(address string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.address == "" {
		p.address = address
	}
	return p.address
}

// dialer dials the pinned server by dial.
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
			s.doubt()
		}
		return conn, err
	}
}

// checkMaster asks a server on a new connection whether it is the master. The
// sentinels agree on a new one before they have told the old one and each other;
// and what scripts read on a replica may be long past.
func (s *sentinels) checkMaster(ctx context.Context, conn *redis.Conn) error {
	said, err := conn.Do(ctx, "role").Slice()
	if err == nil && (len(said) == 0 || said[0] != "master") {
		err = fmt.Errorf("it says of itself %v, and not master", said)
	}
	if err != nil {
		s.doubt()
		// The driver takes the outer error off before it returns this.
		return fmt.Errorf("new connection: %w", &impls.ConnectError{Err: fmt.Errorf("ask the sentinels' master for its role: %w", err)})
	}
	return nil
}

// saidByMaster reports whether err is what a server answers that is the master
// still, as far as it knows, and can serve.
func saidByMaster(err error) bool {
	var said redis.Error
	if !errors.As(err, &said) {
		return false
	}
	for _, prefix := range []string{"READONLY", "LOADING", "MASTERDOWN", "NOREPLICAS"} {
		if redis.HasErrorPrefix(err, prefix) {
			return false
		}
	}
	return true
}
