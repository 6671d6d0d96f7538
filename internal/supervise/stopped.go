package supervise

import (
	"context"
	"fmt"
	"os"
	"time"
)

// stoppedPoll is the polling interval of AwaitStopped.
const stoppedPoll = 200 * time.Microsecond

// Stopped reports whether a signal has stopped the whole process, every thread
// of it where the system shows threads. The error is that of Signal.
func (p *Process) Stopped() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return false, fmt.Errorf("check that %s (pid %d) is stopped: %w", p.name, p.pid, os.ErrProcessDone)
	}
	if err := verify(p.pid, p.startTime); err != nil {
		return false, fmt.Errorf("check that %s is stopped: %w", p.name, err)
	}
	check := stopped
	if p.tree {
		check = treeStopped
	}
	isStopped, err := check(p.pid)
	if err != nil {
		return false, fmt.Errorf("check that %s (pid %d) is stopped: %w", p.name, p.pid, err)
	}
	return isStopped, nil
}

// AwaitStopped returns when the process is Stopped. SIGSTOP is delivered at
// once, but a thread in a system call stops only when it leaves the call. The
// error is os.ErrProcessDone if the process ends meanwhile, or that of ctx.
func (p *Process) AwaitStopped(ctx context.Context) error {
	again := time.NewTicker(stoppedPoll)
	defer again.Stop()
	for {
		if isStopped, err := p.Stopped(); isStopped || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("%s (pid %d) did not stop: %w", p.name, p.pid, ctx.Err())
		}
	}
}
