package workloads

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Peers lists the addresses that a client is connected to now, as the client
// dialed them, sorted.
func (p *Pool) Peers(ctx context.Context, client uint32) ([]string, error) {
	a, err := p.command(ctx, command{Client: client})
	if err != nil {
		return nil, fmt.Errorf("list the connections of client %d: %w", client, err)
	}
	return a.Peers, nil
}

// Skew sets a client's clock ahead of the machine's (behind if negative). The
// stamps in the history stay those of the machine.
func (p *Pool) Skew(ctx context.Context, client uint32, by time.Duration) error {
	if _, err := p.command(ctx, command{Client: client, Skew: &by}); err != nil {
		return fmt.Errorf("set the clock of client %d: %w", client, err)
	}
	return nil
}

// command sends a command to the process of its client and waits for the answer.
func (p *Pool) command(ctx context.Context, c command) (answer, error) {
	m := p.host[c.Client]
	if m == nil {
		return answer{}, fmt.Errorf("no process hosts client %d", c.Client)
	}
	call := m.Call(func(serial uint64) any {
		c.Serial = serial
		return order{Command: &c}
	})
	select {
	case <-call.Done:
	case <-ctx.Done():
		return answer{}, fmt.Errorf("worker %d (pid %d) does not answer (is it stopped?): %w", m.spec.Worker, m.PID(), ctx.Err())
	}
	if call.Err != nil {
		return answer{}, fmt.Errorf("worker %d: %w", m.spec.Worker, call.Err)
	}
	a := *call.Reply.Answer
	if a.Error != "" {
		return a, fmt.Errorf("worker %d: %s", m.spec.Worker, a.Error)
	}
	return a, nil
}

// carryOut executes a command in the worker. It is called while the client works.
func (w *host) carryOut(cmd command) *answer {
	a := &answer{Serial: cmd.Serial}
	i := slices.Index(w.load.spec.Clients, cmd.Client)
	switch {
	case i < 0:
		a.Error = fmt.Sprintf("this worker has no client %d", cmd.Client)
	case cmd.Skew != nil:
		w.clients[i].wallClock.Set(*cmd.Skew)
	default:
		a.Peers = w.clients[i].dialer.Peers()
	}
	return a
}
