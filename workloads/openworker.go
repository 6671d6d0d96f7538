package workloads

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

// opensAtOnce bounds how many clients of a worker connect at a time, so that a
// thousand of them do not overrun a server's backlog.
const opensAtOnce = 32

// defaultTimeout limits a request where the scenario says nothing.
const defaultTimeout = 2 * time.Second

// openWorker opens everything that the specification asks for.
func openWorker(ctx context.Context, s Spec, find func(string) (impls.Recipe, bool)) (_ *host, err error) {
	recipe, ok := find(s.Scenario.Recipe)
	if !ok {
		return nil, fmt.Errorf("open the clients: this worker knows no recipe %q", s.Scenario.Recipe)
	}
	if s.Scenario.Timeout <= 0 {
		s.Scenario.Timeout = scenario.Duration(defaultTimeout)
	}
	keys, err := newKeyChooser(s.Scenario.Workload, len(s.Keys), s.Scenario.Clients)
	if err != nil {
		return nil, fmt.Errorf("open the clients: %w", err)
	}
	secure, err := s.TLS.Config()
	if err != nil {
		return nil, fmt.Errorf("open the clients: %w", err)
	}
	board, err := OpenBoard(s.Board)
	if err != nil {
		return nil, err
	}
	l := &load{
		spec: s, clock: history.NewClock(), system: impls.SystemClock(), keys: keys,
		callLimit: 2 * s.Scenario.Timeout.D(), phases: &phases{}, quit: make(chan struct{}), packer: history.NewPacker(),
	}
	l.acquires, l.cancel = context.WithCancel(context.Background())
	if isOpen(s.Scenario.Workload) {
		l.pacer = newPacer(s, l.clock, l.phases)
	}
	if n := s.Scenario.Workload.Connections; n > 0 {
		l.shared = &impls.Shared{Connections: n}
	}
	w := &host{load: l, clients: make([]*client, len(s.Clients))}

	o := opener{load: l, board: board, recipe: recipe, tls: secure, nonce: nonce()}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var (
		wg   sync.WaitGroup
		errs = make([]error, len(s.Clients))
		gate = make(chan struct{}, opensAtOnce)
	)
	for i, id := range s.Clients {
		wg.Go(func() {
			_ = l.system.Sleep(ctx, openAfter(s.Scenario, id)) // open returns an error if ctx has ended
			gate <- struct{}{}
			defer func() { <-gate }()
			if w.clients[i], errs[i] = o.open(ctx, id); errs[i] != nil {
				cancel() // the others need not try
			}
		})
	}
	wg.Wait()
	if err := firstCause(errs); err != nil {
		for _, c := range w.clients {
			if c != nil {
				_ = c.close() // why there is no worker is the error that counts
			}
		}
		l.packer.Close()
		return nil, errors.Join(err, l.closeShared(), board.Close())
	}
	return w, nil
}

// firstCause is the first error that was not merely called off because of
// another.
func firstCause(errs []error) error {
	for _, err := range errs {
		if err != nil && !errors.Is(err, context.Canceled) {
			return err
		}
	}
	return errors.Join(errs...)
}

// opener opens the clients of one worker.
type opener struct {
	load   *load
	board  *Board
	recipe impls.Recipe
	tls    *tls.Config
	nonce  uint64
}

func (o opener) open(ctx context.Context, id uint32) (_ *client, err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open client %d: %w", id, err)
	}
	s := o.load.spec
	sc := s.Scenario
	if int(id) >= o.board.Clients() {
		return nil, fmt.Errorf("open client %d: the board has %d clients", id, o.board.Clients())
	}
	c := &client{
		load: o.load, id: id, holder: isHolder(sc, id),
		wait:      impls.NewUniform(sc.Poll.Min, sc.Poll.Max, mix(sc.Seed)^mix(uint64(id)<<8|streamWait)),
		attempts:  newAttempts(sc.Seed, id, o.nonce),
		keyRand:   newRand(sc.Seed, id, streamKey),
		holdRand:  newRand(sc.Seed, id, streamHold),
		thinks:    newRand(sc.Seed, id, streamThink),
		kindRand:  newRand(sc.Seed, id, streamKind),
		timer:     time.NewTimer(time.Hour),
		renewals:  newRenewals(o.load.clock),
		dialer:    &faultnet.Dialer{Source: s.Sources[id], Proxy: s.Proxies[id]},
		wallClock: impls.NewSkewedClock(o.load.system),
	}
	c.timer.Stop()
	defer func() {
		if err != nil {
			err = fmt.Errorf("open client %d: %w", id, errors.Join(err, c.close()))
		}
	}()
	hist, err := history.Create(ClientFile(s.Dir, id), history.Options{
		Client: id, Worker: s.Worker, Streams: s.Streams, Clock: o.load.clock, Packer: o.load.packer,
	})
	if err != nil {
		return nil, err
	}
	c.rec = recorder{hist: hist, clock: o.load.clock, slot: o.board.client(id), phases: o.load.phases}
	info := o.recipe.Info()
	c.bound, c.steps = info.Bound, newSteps(&c.rec, &c.op, &o.board.head.gate, id, info)
	if sc.Workload.Kind == scenario.GuardedCounter {
		if s.Register == "" {
			return nil, fmt.Errorf("load %s: no guarded register is served", scenario.GuardedCounter)
		}
		if c.guard, err = newGuard(s.Register, sc.Workload.Guard); err != nil {
			return nil, err
		}
	}
	lock, err := impls.OpenPatiently(ctx, o.recipe, impls.Config{
		Addresses: s.Addresses, Topology: sc.Topology, Directory: s.Directory, Account: s.Account, TLS: o.tls, Space: s.Space, Number: int(id),
		Dial: c.dialer.Dial, Clock: c.wallClock, Wait: c.wait, TTL: sc.TTL.D(), LockDelay: sc.LockDelay.D(), Timeout: sc.Timeout.D(),
		Steps: c.steps, Renewals: c.renewals, Shared: o.load.shared,
	})
	if err != nil {
		return nil, err
	}
	c.lock = lock // not before: what a failed Open returns is nothing to close
	if c.able, err = abilitiesFor(sc.Workload.Kind, o.recipe.Info().ID, c.lock); err != nil {
		return nil, err
	}
	c.rec.slot.open(os.Getpid())
	return c, nil
}

// close seals the client's history first: whatever its driver does while it
// closes is no part of the record.
func (c *client) close() error {
	errs := []error{c.err}
	if c.rec.hist != nil {
		errs = append(errs, c.rec.hist.Close())
	}
	if c.guard != nil {
		errs = append(errs, c.guard.register.close())
	}
	if c.lock != nil {
		errs = append(errs, c.lock.Close())
	}
	c.timer.Stop()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("client %d: %w", c.id, err)
	}
	return nil
}

// ClientFile is the history file of a client, in the folder that a Spec names.
func ClientFile(dir string, client uint32) string {
	return filepath.Join(dir, fmt.Sprintf("client-%06d.lbh", client))
}
