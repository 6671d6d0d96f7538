package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

const (
	restarted = "started again"
	joined    = "the links between the servers are joined"
	fast      = "the disk is fast again"
	setRight  = "the server's clock is set right"
	roomy     = "the server has room again"
)

// throughWires reports whether a fault of servers needs a way to the clients'
// connections.
func (f *fault) throughWires() bool {
	return f.kind.Target == scenario.TargetServing || f.kind.Wire()
}

// actOnServers hits the servers.
func (f *fault) actOnServers(ctx context.Context, in *injection) error {
	if f.seeksHolder() && !in.aim.prey.stands() {
		return errEscaped
	}
	// A second look as late as can be: the lead may have moved since the first.
	if f.byLead(in.aim) {
		if lead, err := f.Servers.Leader(ctx); err != nil || lead != in.aim.lead {
			return errEscaped
		}
	}
	in.at = f.Clock.Now()
	if err := f.hitServers(ctx, in); err != nil {
		return err
	}
	in.since = f.Clock.Now()
	return f.ledThroughout(ctx, in)
}

// ledThroughout looks a third time, where the fault itself leaves the lead where
// it is: if it is elsewhere, it may have been so when the fault hit.
func (f *fault) ledThroughout(ctx context.Context, in *injection) error {
	switch f.kind.Action {
	case scenario.ActCutClients, scenario.ActDelay, scenario.ActThrottle, scenario.ActRefuse, scenario.ActClock, scenario.ActSlowDisk, scenario.ActFull:
	default:
		return nil
	}
	if !f.byLead(in.aim) {
		return nil
	}
	// No answer is no proof that it moved.
	if lead, err := f.Servers.Leader(ctx); err == nil && lead != in.aim.lead {
		return fmt.Errorf("the lead moved to %s while the fault was injected", f.Servers.Nodes()[lead].Name)
	}
	return nil
}

func (f *fault) hitServers(ctx context.Context, in *injection) error {
	switch f.kind.Action {
	case scenario.ActKill, scenario.ActRestart:
		return f.crash(ctx, in)
	case scenario.ActPause:
		in.by("SIGSTOP")
		return f.onEach(ctx, in, goOn, f.Servers.Resume, f.Servers.Pause)
	case scenario.ActCut, scenario.ActDelay, scenario.ActThrottle:
		return f.surround(ctx, in)
	case scenario.ActCutPeers:
		return in.saying(f.cutLinks(ctx, in))
	case scenario.ActCutClients, scenario.ActRefuse:
		return in.saying(f.apply(ctx, in, nil, in.addresses()))
	case scenario.ActReset:
		return f.reset(ctx, in, nil, in.addresses())
	case scenario.ActClock:
		right := func(ctx context.Context, n int) error { return told(f.Servers.SetClock(ctx, n, 0)) }
		return f.onEach(ctx, in, setRight, right, func(ctx context.Context, n int) error {
			return in.saying(f.Servers.SetClock(ctx, n, f.By.D()))
		})
	case scenario.ActSlowDisk:
		return f.onEach(ctx, in, fast, f.Servers.FastDisk, func(ctx context.Context, n int) error {
			return in.saying(f.Servers.SlowDisk(ctx, n, f.By.D()))
		})
	case scenario.ActFull:
		return f.onEach(ctx, in, roomy, f.Servers.Drain, func(ctx context.Context, n int) error {
			return in.saying(f.Servers.Fill(ctx, n))
		})
	case scenario.ActMove:
		return f.move(ctx, in)
	case scenario.ActClose:
		return f.closeClients(ctx, in)
	}
	return f.forget(ctx, in)
}

// told leaves out how something was done.
func told(_ string, err error) error { return err }

// saying keeps how something was done.
func (in *injection) saying(how string, err error) error {
	if err == nil {
		in.by(how)
	}
	return err
}

// addresses of the servers that are hit.
func (in *injection) addresses() []string {
	var list []string
	for _, n := range in.event.Nodes {
		list = append(list, n.Address)
	}
	return list
}

// onEach hits one server after another, each with its way back.
func (f *fault) onEach(ctx context.Context, in *injection, what string, back, hit func(context.Context, int) error) error {
	for _, n := range in.aim.nodes {
		undo := func(ctx context.Context) error { return back(ctx, n) }
		if err := in.do(what, undo, func() error { return hit(ctx, n) }); err != nil {
			return fmt.Errorf("%s: %w", f.kind.Action, err)
		}
	}
	return nil
}

// crash kills the servers. They are started again side by side, for members of a
// quorum serve only when enough of them are there.
func (f *fault) crash(ctx context.Context, in *injection) error {
	in.by("SIGKILL")
	var dead []int
	again := func(ctx context.Context) error {
		errs := make([]error, len(dead))
		var wg sync.WaitGroup
		for i, n := range dead {
			wg.Go(func() {
				errs[i] = guarded(func() error { return f.Servers.Restart(ctx, n) })
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	return in.do(restarted, again, func() error {
		for _, n := range in.aim.nodes {
			dead = append(dead, n)
			if err := f.Servers.Kill(ctx, n); err != nil {
				if !f.ends(n) {
					dead = dead[:len(dead)-1]
				}
				return fmt.Errorf("kill: %w", err)
			}
		}
		in.confirmed = "the processes have ended"
		return nil
	})
}

// ends reports whether a server whose kill failed dies of it nevertheless; one
// that lives on need not be started again.
func (f *fault) ends(node int) bool {
	p := f.Servers.Process(node)
	return p == nil || ended(p)
}

// ended waits for the end of a process that was killed.
func ended(p Process) bool {
	timer := time.NewTimer(endPatience)
	defer timer.Stop()
	select {
	case <-p.Done():
		return true
	case <-timer.C:
		return false
	}
}

// surround puts a rule between the servers and everybody else: the other servers
// and all clients.
func (f *fault) surround(ctx context.Context, in *injection) error {
	links := ""
	switch why := f.Servers.Can(scenario.AbilityLinks); {
	case why == nil:
		how, err := f.cutLinks(ctx, in)
		if err != nil {
			return err
		}
		links = " to clients, " + how
	case f.kind.Action == scenario.ActCut && len(in.aim.nodes) < len(f.Servers.Nodes()):
		return fmt.Errorf("the links to the other servers cannot be cut: %w", why)
	}
	how, err := f.apply(ctx, in, nil, in.addresses())
	return in.saying(how+links, err)
}

// cutLinks puts the rule on the links of the servers with all others.
func (f *fault) cutLinks(ctx context.Context, in *injection) (how string, err error) {
	away := func(ctx context.Context) error {
		effect, err := f.Servers.LiftLinks(ctx, f.id)
		in.adds(Effect{Effect: effect})
		return err
	}
	err = in.do(joined, away, func() error {
		how, err = f.Servers.CutLinks(ctx, f.id, in.aim.nodes, f.rule())
		return err
	})
	if err != nil {
		return "", fmt.Errorf("put %s on the links between servers: %w", f.kind.Action, err)
	}
	return how, nil
}

// move has the lead handed over. Who had it, the servers say themselves.
func (f *fault) move(ctx context.Context, in *injection) error {
	from, to, err := f.Servers.Move(ctx)
	if err != nil {
		return fmt.Errorf("move the lead: %w", err)
	}
	if from == to {
		return errors.New("the lead stayed where it was")
	}
	in.aim.nodes = []int{from}
	in.event.Nodes = f.named(in.aim.nodes, from)
	in.by("asked to move")
	in.confirmed = f.Servers.Nodes()[to].Name + " leads"
	return nil
}

// closeClients has the servers close their clients' connections, of which there
// must be one.
func (f *fault) closeClients(ctx context.Context, in *injection) error {
	in.by("asked to close")
	sum := 0
	for _, n := range in.aim.nodes {
		closed, err := f.Servers.CloseClients(ctx, n)
		if err != nil {
			return fmt.Errorf("close clients' connections: %w", err)
		}
		sum += closed
	}
	if sum == 0 {
		return errors.New("there was no connection to close")
	}
	in.confirmed = fmt.Sprintf("connections closed: %d", sum)
	return nil
}

// forget has the servers lose what they know: the lock that is held, or all.
func (f *fault) forget(ctx context.Context, in *injection) error {
	key := in.aim.prey.Key
	evict := f.kind.Action == scenario.ActEvict
	if evict && int(key) >= len(f.Keys) {
		return fmt.Errorf("the name of key %d is not known", key)
	}
	for _, n := range in.aim.nodes {
		var err error
		if evict {
			err = in.saying(f.Servers.Evict(ctx, n, f.Keys[key]))
		} else {
			err = in.saying(f.Servers.Flush(ctx, n))
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.kind.Action, err)
		}
	}
	return nil
}
