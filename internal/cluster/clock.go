package cluster

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// timed is a driver whose servers tell their wall clock.
type timed interface {
	// wallClock is what the node takes the time to be.
	wallClock(ctx context.Context, n *Node) (time.Time, error)
}

// clockTolerance is how far a server's clock may be from where it was set to,
// beyond the time that it took to ask: some servers tell whole seconds, or look
// at their clock once a second.
const clockTolerance = 2 * time.Second

// SetClock sets a node's wall clock ahead by so much (behind if negative) of
// the machine's; 0 sets it right. Its other clocks go on as they are, so of the
// five backends only redis (every expiry) and mysql (NOW(), not GET_LOCK) heed
// it. It returns when it is in force, and how tells by what; a server that tells
// its time has been asked. A wait under way keeps its length. The clock stays as
// it is when the node is killed and started again; it can be set right while the
// node is dead, and where it never was wrong. Nodes are counted from 0.
//
// The error is ErrUnsupported if the node was not started for it (see
// Spec.Clock) or heeds no clock that can be set, ErrMachine if this machine
// cannot do it; os.ErrProcessDone if the node is dead, ErrSpec, ErrStopped.
func (c *Cluster) SetClock(ctx context.Context, node int, by time.Duration) (how string, err error) {
	n, unlock, err := c.take(ctx, node)
	if err != nil {
		return "", fmt.Errorf("set the clock of a server: %w", err)
	}
	defer unlock()
	if by == 0 {
		how, err = c.rightClock(ctx, n)
	} else {
		how, err = c.wrongClock(ctx, n, by)
	}
	if err != nil {
		return "", fmt.Errorf("set the clock of %s: %w", n.Name, err)
	}
	return how, nil
}

func (c *Cluster) wrongClock(ctx context.Context, n *Node, by time.Duration) (how string, err error) {
	if !n.alive() {
		return "", os.ErrProcessDone
	}
	if err := Supports(c.spec.Backend, c.spec.Topology, scenario.AbilityClock); err != nil {
		return "", err
	}
	if err := c.shimmed(n); err != nil {
		return "", err
	}
	return c.setClock(ctx, n, by)
}

// rightClock sets a clock right, that of a dead node as well, which nobody can
// ask.
func (c *Cluster) rightClock(ctx context.Context, n *Node) (how string, err error) {
	if !c.spec.Clock || Supports(c.spec.Backend, c.spec.Topology, scenario.AbilityClock) != nil {
		return "", nil
	}
	if !n.alive() || c.shimmed(n) != nil {
		return "", withShim(n, func(s *shimState) error { s.ahead.Store(0); return nil })
	}
	return c.setClock(ctx, n, 0)
}

// setClock sets the clock that a living node reads, and asks it.
func (c *Cluster) setClock(ctx context.Context, n *Node, by time.Duration) (how string, err error) {
	err = withShim(n, func(s *shimState) error {
		s.ahead.Store(int64(by))
		read := s.read.Load()
		how = fmt.Sprintf("preloaded library; through it the server has read its clock %d times before", read)
		d, tells := c.driver.(timed)
		if !tells || n.paused() {
			return nil
		}
		asked := time.Now()
		clock, err := d.wallClock(ctx, n)
		if err != nil {
			return fmt.Errorf("ask what time it is: %w", err)
		}
		off := clock.Sub(asked.Add(by))
		if off < -clockTolerance || off > clockTolerance+time.Since(asked) {
			return fmt.Errorf("%w: its clock was set %v ahead, and it tells %s, which is %v off", ErrServer, by, clock.UTC().Format(time.RFC3339Nano), off)
		}
		if s.read.Load() == read {
			return fmt.Errorf("%w: it told its time without a look at the clock that was set", ErrServer)
		}
		how += "; it tells " + clock.UTC().Format("2006-01-02 15:04:05 UTC")
		return nil
	})
	return how, err
}

func (redis) wallClock(ctx context.Context, n *Node) (time.Time, error) {
	reply, err := redisAsk(ctx, n, "TIME")
	if err != nil {
		return time.Time{}, err
	}
	n.asked.add("time", 1)
	if len(reply) != 2 {
		return time.Time{}, fmt.Errorf("it answers TIME by %q", reply)
	}
	seconds, err := strconv.ParseInt(reply[0], 10, 64)
	if err != nil {
		return time.Time{}, err
	}
	micros, err := strconv.ParseInt(reply[1], 10, 64)
	return time.Unix(seconds, micros*1000), err
}

func (mysql) wallClock(ctx context.Context, n *Node) (time.Time, error) {
	row, err := mysqlRow(ctx, n, "SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED) AS micros")
	if err != nil {
		return time.Time{}, err
	}
	n.asked.add("com_select", 1)
	micros, err := strconv.ParseInt(row["micros"], 10, 64)
	return time.UnixMicro(micros), err
}
