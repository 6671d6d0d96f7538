package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/lockbench/lockbench/internal/backend"
)

// bringUp starts one node and returns when it serves.
func (c *Cluster) bringUp(ctx context.Context, n *Node) error {
	if err := c.launch(ctx, n); err != nil {
		return err
	}
	return c.await(ctx, n)
}

// launch starts one node.
func (c *Cluster) launch(ctx context.Context, n *Node) error {
	log, err := os.OpenFile(n.Log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: open its log: %w", n.Name, err)
	}
	defer log.Close() // the server has its own
	if st, err := log.Stat(); err == nil {
		n.LogFrom = st.Size()
	}
	cmd, err := c.backend.Command(ctx, c.servers, n)
	if err != nil {
		return fmt.Errorf("start %s: %w", n.Name, err)
	}
	cmd.Name, cmd.Stdout, cmd.Stderr = n.Name, log, log
	if cmd.Dir == "" {
		cmd.Dir = n.Dir
	}
	cmd.Env = c.serverEnv(n, cmd.Env)
	n.Command = append([]string{cmd.Path}, cmd.Args...)
	if n.Process, n.PID, err = c.place.start(ctx, n, cmd); err != nil {
		return fmt.Errorf("%w: %w", ErrServer, err)
	}
	c.links.started(n)
	return nil
}

// await returns when the node serves requests, or never will.
func (c *Cluster) await(ctx context.Context, n *Node) error {
	wait := 5 * time.Millisecond
	var strangers int
	for {
		err := c.backend.Ready(ctx, c.servers, n)
		if err == nil {
			return nil
		}
		// A server whose port is taken soon ends. One that lives on is not the
		// process that we started, but a child of it.
		if !errors.Is(err, backend.ErrPortTaken) {
			strangers = 0
		} else if strangers++; strangers > 100 {
			return fmt.Errorf("%s: %w: %v, and ours lives on; if --server names a script, let it exec the server%s", n.Name, ErrServer, err, n.LastLines())
		}
		// Waiting costs nothing, but frequent requests cost the server CPU time.
		timer := time.NewTimer(wait)
		wait = min(2*wait, 100*time.Millisecond)
		select {
		case <-timer.C:
		case <-n.Process.Done():
			timer.Stop()
			return n.Died()
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s does not serve at %s: %w: %w (%w)%s", n.Name, n.Address, ErrServer, err, ctx.Err(), n.LastLines())
		}
	}
}
