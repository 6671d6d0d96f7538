package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/backend"
)

// keeperName is the keeper's name in its log, and as a client of servers' links.
const keeperName = "keeper"

const (
	// keeperPoll is how often the keeper asks, and keeperTries how many questions
	// in a row a primary may leave unanswered.
	keeperPoll, keeperTries = 200 * time.Millisecond, 3
	// keeperPatience is how long it waits for one answer.
	keeperPatience = 500 * time.Millisecond
	// keeperLimit is how long changing one server's part may take.
	keeperLimit = 15 * time.Second
)

// Decision is what the keeper did.
type Decision struct {
	At   time.Time
	What string
}

// keeper promotes a replica when the primary is silent, as controllers do in
// production: it cannot know whether the primary is dead, and does not wait to
// find out. It reaches servers by their links, so a server that is cut off from
// the others is also cut off from the keeper.
type keeper struct {
	c       *Cluster
	backend backend.Supervised
	log     *os.File
	end     context.CancelFunc
	done    chan struct{}

	mu        sync.Mutex
	decisions []Decision
	noted     string // the last line of the log, without its time
}

// Decisions are what the keeper has done so far; none without Spec.Keeper. The
// file keeper.log among the logs has them too, and what led to them.
func (c *Cluster) Decisions() []Decision {
	if c.keeper == nil {
		return nil
	}
	c.keeper.mu.Lock()
	defer c.keeper.mu.Unlock()
	return slices.Clone(c.keeper.decisions)
}

func (c *Cluster) startKeeper() error {
	b, ok := c.backend.(backend.Supervised)
	if !ok {
		return fmt.Errorf("%w: %s has a topology with a keeper, and cannot be supervised by one", ErrUnsupported, c.spec.Backend)
	}
	path := filepath.Join(filepath.Dir(c.Nodes()[0].Log), keeperName+".log")
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("open the keeper's log: %w", err)
	}
	ctx, end := context.WithCancel(context.Background())
	c.keeper = &keeper{c: c, backend: b, log: log, end: end, done: make(chan struct{})}
	go c.keeper.run(ctx)
	return nil
}

// stop returns when the keeper changes nothing any more.
func (k *keeper) stop() {
	if k == nil {
		return
	}
	k.end()
	<-k.done
}

func (k *keeper) run(ctx context.Context) {
	defer close(k.done)
	defer k.log.Close()
	again := time.NewTicker(keeperPoll)
	defer again.Stop()
	k.note("it asks every %v, and takes a primary for dead that leaves %d questions unanswered for %v each", keeperPoll, keeperTries, keeperPatience)
	var current, silent int
	for {
		primary := k.view(k.c.servers.Primary())
		if primary.Index != current { // another caller has promoted one
			current, silent = primary.Index, 0
		}
		if err := k.ask(ctx, primary); err == nil {
			silent = 0
			k.bringBack(ctx, primary)
		} else if silent++; ctx.Err() == nil {
			k.note("%s is silent, time %d: %v", primary.Name, silent, err)
			if silent >= keeperTries {
				k.replace(ctx, primary, silent)
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			k.note("it ends")
			return
		}
	}
}

// view is a node as the keeper reaches it.
func (k *keeper) view(node int) *Node {
	n := k.c.Nodes()[node]
	return n.At(k.c.servers.Peer(n, 0))
}

func (k *keeper) others(primary *Node) (list []*Node) {
	for i := range k.c.spec.Nodes {
		if i != primary.Index {
			list = append(list, k.view(i))
		}
	}
	return list
}

func (k *keeper) ask(ctx context.Context, n *Node) error {
	ctx, cancel := context.WithTimeout(ctx, keeperPatience)
	defer cancel()
	return k.backend.Answers(ctx, k.c.servers, n)
}

// replace promotes the first that can be.
func (k *keeper) replace(ctx context.Context, old *Node, silent int) {
	for _, n := range k.others(old) {
		k.change(ctx, old, func(ctx context.Context) {
			if err := k.backend.Promote(ctx, k.c.servers, n, false); err != nil {
				k.note("%s cannot take the place of %s: %v", n.Name, old.Name, err)
				return
			}
			k.decide("promoted %s: %s was silent %d times in a row", n.Name, old.Name, silent)
		})
	}
}

// bringBack makes replicas of the other nodes that answer and are none.
func (k *keeper) bringBack(ctx context.Context, primary *Node) {
	for _, n := range k.others(primary) {
		if why := k.misplaced(ctx, n, primary); why == "" {
			continue
		}
		made, restart := "", false
		k.change(ctx, primary, func(ctx context.Context) {
			// Another caller may have done this meanwhile.
			why := k.misplaced(ctx, n, primary)
			if why == "" {
				return
			}
			how, err := k.backend.BringBack(ctx, k.c.servers, n, primary)
			restart = errors.Is(err, backend.ErrNeedsRestart)
			if err != nil && !restart {
				k.note("%s (%s) cannot be made a replica of %s: %v", n.Name, why, primary.Name, err)
				return
			}
			made = fmt.Sprintf("made %s a replica of %s, for %s: %s", n.Name, primary.Name, why, how)
		})
		if made != "" && (!restart || k.restart(ctx, n)) {
			k.decide("%s", made)
		}
	}
}

// restart kills a fenced node and starts it again, and reports whether it serves.
// A start takes the roles' lock itself.
func (k *keeper) restart(ctx context.Context, n *Node) bool {
	ctx, cancel := context.WithTimeout(ctx, keeperLimit)
	defer cancel()
	err := k.c.Kill(ctx, n.Index)
	if err == nil {
		err = k.c.Restart(ctx, n.Index)
	}
	if err != nil {
		k.note("%s cannot be started again: %v", n.Name, err)
	}
	return err == nil
}

// misplaced returns why a node that answers is no replica.
func (k *keeper) misplaced(ctx context.Context, n, primary *Node) string {
	ctx, cancel := context.WithTimeout(ctx, keeperPatience)
	defer cancel()
	why, err := k.backend.Misplaced(ctx, k.c.servers, n, primary)
	if err != nil {
		return "" // it does not answer, and nothing depends on it
	}
	return why
}

// change calls do while no other caller changes roles, unless another caller has
// just replaced the primary.
func (k *keeper) change(ctx context.Context, primary *Node, do func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, keeperLimit)
	defer cancel()
	k.c.roles.Lock()
	defer k.c.roles.Unlock()
	if k.c.servers.Primary() == primary.Index && ctx.Err() == nil {
		do(ctx)
	}
}

func (k *keeper) decide(format string, args ...any) {
	d := Decision{At: time.Now(), What: fmt.Sprintf(format, args...)}
	k.mu.Lock()
	k.decisions = append(k.decisions, d)
	k.mu.Unlock()
	k.note("%s", d.What)
}

// note writes a line to the log, unless it equals the last one.
func (k *keeper) note(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if line == k.noted {
		return
	}
	k.noted = line
	// Errors of the log are ignored; the decisions are kept anyway.
	fmt.Fprintln(k.log, time.Now().Format(time.RFC3339Nano), line)
}
