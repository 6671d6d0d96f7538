package supervise

import (
	"context"
	"fmt"
	"os"
	"time"
)

// stoppedLook is how often AwaitStopped looks.
const stoppedLook = 200 * time.Microsecond

// Stopped tells whether the whole process stands still because of a signal, every
// thread of it, as far as the system tells of threads. The error is that of
// Signal.
func (p *Process) Stopped() (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped {
		return false, fmt.Errorf("look whether %s (pid %d) stands still: %w", p.name, p.pid, os.ErrProcessDone)
	}
	if err := verify(p.pid, p.startTime); err != nil {
		return false, fmt.Errorf("look whether %s stands still: %w", p.name, err)
	}
	look := stopped
	if p.tree {
		look = treeStopped
	}
	still, err := look(p.pid)
	if err != nil {
		return false, fmt.Errorf("look whether %s (pid %d) stands still: %w", p.name, p.pid, err)
	}
	return still, nil
}

// AwaitStopped returns when the process is Stopped. SIGSTOP is delivered at once,
// but a thread in a system call stops only when it leaves it. The error is
// os.ErrProcessDone if the process ends meanwhile, or that of ctx.
func (p *Process) AwaitStopped(ctx context.Context) error {
	again := time.NewTicker(stoppedLook)
	defer again.Stop()
	for {
		if still, err := p.Stopped(); still || err != nil {
			return err
		}
		select {
		case <-again.C:
		case <-p.done:
		case <-ctx.Done():
			return fmt.Errorf("%s (pid %d) does not stand still: %w", p.name, p.pid, ctx.Err())
		}
	}
}
