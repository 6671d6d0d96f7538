package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls"
)

// queue is a kind of lock whose attempts wait in a queue, each with a node that the
// server numbers. It is a value without state.
type queue struct {
	kind string // of the locks' own nodes
	mark string // in the nodes' names, between the attempt and the number; may be empty
	// blocks reports whether a node with the mark other blocks a later node
	// with the mark own; nil: always.
	blocks func(own, other string) bool
	// watchAll: a waiter watches the whole queue, instead of the last node that
	// blocks it.
	watchAll bool
	fenced   bool // the number plus one is the token of holds with the mark
}

// The steps of a queue, in the order in which calls come to them.
const (
	stepQueued impls.Step = "queued" // the node exists, and its position is not read yet
	stepLeave  impls.Step = "leave"  // a try is busy, and its node still exists
)

func (q queue) open(ctx context.Context, cfg impls.Config) (*queueClient, error) {
	c, err := connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &queueClient{client: c, queue: q}, nil
}

type queueClient struct {
	*client
	queue queue
}

// placed is an attempt with a node in the queue: a hold, once it is granted.
type placed struct {
	hold
	path   string
	mark   string
	number int32
}

func (c *queueClient) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return c.acquire(ctx, key, c.queue.mark, a)
}

func (c *queueClient) TryAcquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	return c.try(ctx, key, c.queue.mark, a)
}

func (c *queueClient) acquire(ctx context.Context, key, mark string, a impls.Attempt) (impls.Hold, error) {
	p, err := c.enqueue(ctx, key, mark, a)
	if err == nil {
		err = c.wait(ctx, p)
	}
	if err != nil {
		return nil, fmt.Errorf("acquire %s: %w", key, err)
	}
	p.granted()
	return p, nil
}

// try enters the queue, and leaves it again if another node blocks it. So
// another try at the same moment may be blocked by this one, and return busy
// although the lock is about to be free.
func (c *queueClient) try(ctx context.Context, key, mark string, a impls.Attempt) (impls.Hold, error) {
	p, err := c.enqueue(ctx, key, mark, a)
	if err != nil {
		return nil, fmt.Errorf("try %s: %w", key, err)
	}
	before, _, err := c.look(ctx, p)
	switch {
	case errors.Is(err, errGone):
		return nil, fmt.Errorf("try %s: %w", key, err)
	case err != nil:
		return nil, fmt.Errorf("try %s: %w: the node in the queue remains: %w", key, impls.ErrUnknown, err)
	case before == "":
		p.granted()
		return p, nil
	}
	c.driver.cfg.Reach(ctx, stepLeave)
	if err := p.Release(ctx); err != nil && !errors.Is(err, impls.ErrLost) {
		return nil, fmt.Errorf("try %s: %w: the node in the queue remains: %w", key, impls.ErrUnknown, err)
	}
	return nil, impls.ErrBusy
}

// enqueue creates the attempt's node.
func (c *queueClient) enqueue(ctx context.Context, key, mark string, a impls.Attempt) (*placed, error) {
	s, err := c.live(ctx)
	if err != nil {
		return nil, err
	}
	name := a.String() + "-"
	if mark != "" {
		name += mark + "-"
	}
	path, err := c.create(ctx, parent(c.queue.kind, key)+"/"+name, zk.FlagSequence)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, fmt.Errorf("the lock's node is missing, prepare the key first: %w", err)
	}
	if err != nil {
		return nil, err
	}
	_, n, ok := parse(path[strings.LastIndexByte(path, '/')+1:])
	if !ok {
		return nil, fmt.Errorf("%w: the number of our node %s exceeds 2^31-1: use another key", impls.ErrUnknown, path)
	}
	var fence uint64
	if c.queue.fenced && mark == c.queue.mark {
		fence = uint64(n) + 1
	}
	leave := func(ctx context.Context) error { return c.removeSurely(ctx, s, deletion(path)) }
	p := &placed{hold: newHold(s, key, a, fence, leave), path: path, mark: mark, number: n}
	c.driver.cfg.Reach(ctx, stepQueued)
	return p, nil
}

const (
	attemptLength = 32
	numberLength  = 1 + 10 // a dash, and the digits of a number that is not negative
)

// parse reads the name of a node of a queue: attempt, dash, optionally mark and
// dash, number. It is not ok if the name has another form, or if its number
// exceeds 2^31-1, where the server's counter overflows.
func parse(name string) (mark string, number int32, ok bool) {
	if len(name) < attemptLength+numberLength {
		return "", 0, false
	}
	head, tail := name[:len(name)-numberLength], name[len(name)-numberLength:]
	if mark = head[attemptLength:]; mark != "" {
		if mark[0] != '-' || len(mark) == 1 {
			return "", 0, false
		}
		mark = mark[1:]
	}
	n, err := strconv.ParseUint(tail[1:], 10, 31)
	return mark, int32(n), err == nil && tail[0] == '-'
}

// errGone: our node in the queue no longer exists.
var errGone = fmt.Errorf("%w: our node in the queue is gone", impls.ErrFailed)

// wait waits in the queue until no node blocks p.
//
// A lost connection does not end the wait, since the node still exists: only
// the end of ctx or the loss of the session does. After both, the node may
// remain.
func (c *queueClient) wait(ctx context.Context, p *placed) error {
	for {
		before, events, err := c.look(ctx, p)
		if err == nil && before == "" {
			return nil
		}
		if err == nil && events == nil {
			events, err = c.watch(ctx, before)
		}
		if err == nil {
			err = c.await(ctx, p.Lost(), events)
		}
		switch {
		case err == nil, errors.Is(err, zk.ErrNoNode):
			continue // the previous node or its watch is gone: look again
		case errors.Is(err, errGone):
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("%w: gave up waiting, the node in the queue remains: %w", impls.ErrUnknown, ctx.Err())
		case p.session.isLost() || !passing(err):
			return fmt.Errorf("%w: stopped waiting, the node in the queue may remain: %w", impls.ErrUnknown, err)
		}
		_ = c.driver.cfg.Clock.Sleep(ctx, retryPause) // ctx is checked after the next request
	}
}

// look lists the queue and returns the path of the last node that blocks p, ""
// if there is none; and with watchAll the events of the whole queue.
func (c *queueClient) look(ctx context.Context, p *placed) (before string, events <-chan zk.Event, err error) {
	dir := parent(c.queue.kind, p.Key())
	type listing struct {
		names  []string
		events <-chan zk.Event
	}
	l, err := do(ctx, c.driver, func(conn *zk.Conn) (l listing, err error) {
		if c.queue.watchAll {
			l.names, _, l.events, err = conn.ChildrenW(dir)
		} else {
			l.names, _, err = conn.Children(dir)
		}
		return l, err
	})
	if err != nil {
		return "", nil, err
	}
	// The new session's server may lag behind, and still list a node of an older
	// session.
	if p.session != c.driver.current() || p.session.isLost() {
		p.session.lose()
		return "", nil, errEnded
	}
	present, best := false, int32(-1)
	for _, name := range l.names {
		mark, n, ok := parse(name)
		switch {
		case !ok:
			continue
		case n == p.number:
			present = dir+"/"+name == p.path
		case n < p.number && n > best && (c.queue.blocks == nil || c.queue.blocks(p.mark, mark)):
			best, before = n, dir+"/"+name
		}
	}
	if !present {
		return "", nil, errGone
	}
	return before, l.events, nil
}

// watch watches a node; ErrNoNode if it does not exist.
func (c *queueClient) watch(ctx context.Context, path string) (<-chan zk.Event, error) {
	return do(ctx, c.driver, func(conn *zk.Conn) (<-chan zk.Event, error) {
		_, _, events, err := conn.GetW(path)
		return events, err
	})
}

// Cleanup finds the attempt's node by its name and deletes it.
func (c *queueClient) Cleanup(ctx context.Context, key string, a impls.Attempt) error {
	s, dir := c.driver.current(), parent(c.queue.kind, key)
	names, err := c.list(ctx, dir)
	if err != nil {
		return fmt.Errorf("clean up %s: %w", key, err)
	}
	for _, name := range names {
		if !strings.HasPrefix(name, a.String()+"-") {
			continue
		}
		if err := c.removeSurely(ctx, s, deletion(dir+"/"+name)); err != nil {
			return fmt.Errorf("clean up %s: %w", key, err)
		}
		return nil
	}
	return impls.ErrLost
}

// Left lists the nodes in the lock's queue.
func (c *queueClient) Left(ctx context.Context, key string) ([]impls.Entry, error) {
	names, err := c.list(ctx, parent(c.queue.kind, key))
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", key, err)
	}
	for i, name := range names {
		names[i], _, _ = strings.Cut(name, "-")
	}
	return impls.ParseEntries("", names...), nil
}
