package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/supervise"
)

// errPortTaken: the server found its port in use.
var errPortTaken = errors.New("the port was taken by another process")

// bringUp starts one node and returns when it serves.
func (c *Cluster) bringUp(ctx context.Context, n *Node) error {
	if err := c.launch(ctx, n); err != nil {
		return err
	}
	return c.await(ctx, n)
}

// launch starts one node.
func (c *Cluster) launch(ctx context.Context, n *Node) error {
	log, err := os.OpenFile(n.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("start %s: open its log: %w", n.Name, err)
	}
	defer log.Close() // the server has its own
	if st, err := log.Stat(); err == nil {
		n.logFrom = st.Size()
	}
	cmd, err := c.driver.command(ctx, c.run, c, n)
	if err != nil {
		return fmt.Errorf("start %s: %w", n.Name, err)
	}
	cmd.Name, cmd.Stdout, cmd.Stderr = n.Name, log, log
	if cmd.Dir == "" {
		cmd.Dir = n.dir
	}
	cmd.Env = c.serverEnv(n, cmd.Env)
	n.command = append([]string{cmd.Path}, cmd.Args...)
	if n.Process, err = c.run.Start(cmd); err != nil {
		return fmt.Errorf("%w: %w", ErrServer, err)
	}
	c.links.started(n)
	return nil
}

// runOnce runs a program that prepares a node, and waits for it. What it says
// goes to the node's log.
func (c *Cluster) runOnce(ctx context.Context, run *supervise.Run, n *Node, cmd supervise.Command) error {
	log, err := os.OpenFile(n.log, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open its log: %w", err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	p, err := run.Start(cmd)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrServer, err)
	}
	select {
	case <-p.Done():
	case <-ctx.Done():
		return errors.Join(fmt.Errorf("%s: %w", cmd.Name, ctx.Err()), p.Kill())
	}
	if err := p.Err(); err != nil {
		return fmt.Errorf("%w: %w%s", ErrServer, err, n.lastLines())
	}
	return nil
}

// await returns when the node serves requests, or never will.
func (c *Cluster) await(ctx context.Context, n *Node) error {
	wait := 5 * time.Millisecond
	var strangers int
	for {
		err := c.driver.ready(ctx, c, n)
		if err == nil {
			return nil
		}
		// A server whose port is taken soon ends. One that lives on is not the
		// process that we started, but a child of it.
		if !errors.Is(err, errPortTaken) {
			strangers = 0
		} else if strangers++; strangers > 100 {
			return fmt.Errorf("%s: %w: %v, and ours lives on; if --server names a script, let it exec the server%s", n.Name, ErrServer, err, n.lastLines())
		}
		// A patient server costs us nothing, and asking too often costs it.
		timer := time.NewTimer(wait)
		wait = min(2*wait, 100*time.Millisecond)
		select {
		case <-timer.C:
		case <-n.Process.Done():
			timer.Stop()
			return n.died()
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%s does not serve at %s: %w: %w (%w)%s", n.Name, n.Address, ErrServer, err, ctx.Err(), n.lastLines())
		}
	}
}

// alive tells whether the node's process runs; one that is stopped by a signal
// counts as running.
func (n *Node) alive() bool {
	select {
	case <-n.Process.Done():
		return false
	default:
		return true
	}
}

// paused tells whether a signal has stopped the node's process.
func (n *Node) paused() bool {
	state, err := n.Process.State()
	return err == nil && state == 'T'
}

// died is the error for a server that has ended.
func (n *Node) died() error {
	how := "it ended with status 0"
	if err := n.Process.Err(); err != nil {
		how = err.Error()
	}
	err := fmt.Errorf("%s: %w: %s%s", n.Name, ErrServer, how, n.lastLines())
	// Java says so at the head of a long stack.
	lower := strings.ToLower(strings.Join(logLines(n.log, n.logFrom), "\n"))
	if strings.Contains(lower, "already in use") || strings.Contains(lower, "bindexception") {
		return fmt.Errorf("%w: %w", errPortTaken, err)
	}
	return err
}

// lastLines are the last lines of the node's log, since its start, fit to be
// put behind a message; and the first two, for some servers name the fault
// first and explain their usage at length.
func (n *Node) lastLines() string {
	const most = 12
	lines := logLines(n.log, n.logFrom)
	if len(lines) == 0 {
		return "; it has logged nothing (" + n.log + ")"
	}
	if len(lines) > most {
		lines = slices.Concat(lines[:2], []string{"..."}, lines[len(lines)-most+2:])
	}
	return "; its last log lines (" + n.log + "):\n    " + strings.Join(lines, "\n    ")
}

// logLines returns the lines of what a file holds behind from: of a long file
// those near both ends.
func logLines(path string, from int64) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	const part = 16 << 10
	data, err := io.ReadAll(io.NewSectionReader(f, from, part))
	if err != nil {
		return nil
	}
	if st, err := f.Stat(); err == nil && st.Size() > from+part {
		end, err := io.ReadAll(io.NewSectionReader(f, max(from+part, st.Size()-part), part))
		if err != nil {
			return nil
		}
		data = append(data, end...)
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimRight(line, "\r\n\t "); line == "" {
			continue
		}
		if len(line) > 300 {
			line = line[:300] + "..."
		}
		lines = append(lines, line)
	}
	return lines
}
