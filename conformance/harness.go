package conformance

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/supervise"
)

const (
	// atOnce is how many trials of one lock run side by side: most of them
	// wait for a lease's end.
	atOnce = 8
	// tries is how often a trial is made that came to nothing, because the
	// machine was too slow to see something within a lease.
	tries = 5
	// settleFor is how long a call that is to be refused is waited for before
	// it counts as waiting; a client that came to StepWaiting is granted
	// settleGrace more, for one that waits inside the server says so before.
	settleFor   = 500 * time.Millisecond
	settleGrace = 50 * time.Millisecond
	// giveUpAfter is the limit of waiters that are to give up.
	giveUpAfter = 80 * time.Millisecond
	// sharedProcesses is the number of processes that trials share.
	sharedProcesses = 3
)

// harness is where one lock is measured.
type harness struct {
	Subject
	info  impls.Info
	run   *supervise.Run
	clock history.Clock
	slots chan struct{} // one per trial that may run

	mu        sync.Mutex
	processes [sharedProcesses]*process
}

func newHarness(ctx context.Context, s Subject) (*harness, error) {
	h := &harness{Subject: s.withDefaults(), info: s.Recipe.Info(), clock: history.NewClock()}
	run, err := supervise.Begin("")
	if err != nil {
		return nil, err
	}
	h.run = run
	// The first one shows whether processes can be had at all.
	if _, err := h.shared(ctx, 0); err != nil {
		return nil, errors.Join(err, h.close())
	}
	collide, err := h.collide(ctx)
	for try := 1; try < tries && err != nil && ctx.Err() == nil; try++ {
		collide, err = h.collide(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, h.close())
	}
	h.slots = make(chan struct{}, atOnce)
	if collide {
		h.slots = make(chan struct{}, 1)
	}
	return h, nil
}

// close ends the client processes.
func (h *harness) close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.processes {
		if p != nil {
			_ = p.Kill() // it leaves nothing that a polite end would not
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return h.run.End(ctx)
}

func (h *harness) start(ctx context.Context) (*process, error) {
	return startProcess(ctx, h.run, settings{Recipe: h.info.ID, Addresses: h.Config.Addresses, Topology: h.Config.Topology,
		Directory: h.Config.Directory, Account: h.Config.Account, TTL: h.Config.TTL, Timeout: h.Config.Timeout})
}

// shared returns one of the processes that no trial stops or kills.
func (h *harness) shared(ctx context.Context, i int) (*process, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.processes[i] == nil {
		p, err := h.start(ctx)
		if err != nil {
			return nil, err
		}
		h.processes[i] = p
	}
	return h.processes[i], nil
}

// bound is the declared time from a holder's death to the next grant, 0 if
// there is none.
func (h *harness) bound() time.Duration {
	if h.info.Takeover == nil {
		return 0
	}
	return h.info.Takeover(h.Config.TTL)
}

// boundWords names the bound in evidence.
func (h *harness) boundWords() string {
	if h.info.Takeover == nil {
		return "no bound is declared"
	}
	return fmt.Sprintf("the bound is %v", h.bound())
}

// long is how long the suite waits for a grant that ought to come, before it
// answers that it does not: the bound, and a grace for a busy machine.
func (h *harness) long() time.Duration { return h.bound() + h.Grace }

// forever limits a trial, and calls that it waits for otherwise.
func (h *harness) forever() time.Duration { return 5*h.long() + h.Patience }

// since is the time from a stamp to another, or 0 if they are the other way
// around, for evidence.
func since(from, to int64) time.Duration {
	return time.Duration(max(0, to-from)).Round(time.Millisecond)
}

// collide reports whether locks of different keys exclude one another, so that
// only one trial can be made at a time.
func (s Subject) collide(ctx context.Context) (bool, error) {
	keys := []string{newKey(), newKey()}
	if err := impls.PreparePatiently(ctx, s.Recipe, s.config(), keys); err != nil {
		return false, fmt.Errorf("prepare keys: %w", err)
	}
	a, err := impls.OpenPatiently(ctx, s.Recipe, s.config())
	if err != nil {
		return false, fmt.Errorf("open a client: %w", err)
	}
	defer a.Close()
	b, err := impls.OpenPatiently(ctx, s.Recipe, s.config())
	if err != nil {
		return false, fmt.Errorf("open a client: %w", err)
	}
	defer b.Close()
	h, err := a.Acquire(ctx, keys[0], attempt())
	if err != nil {
		return false, fmt.Errorf("acquire a free key: %w", err)
	}
	defer h.Release(ctx)
	other, err := b.TryAcquire(ctx, keys[1], attempt())
	if err == nil {
		return false, other.Release(ctx)
	}
	return errors.Is(err, impls.ErrBusy), nil
}
