package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// betweenTries is the pause before the next target is tried, so that the tries do
// not become a fault of their own.
const betweenTries = 5 * time.Millisecond

// aim is the target that a fault is about to hit: a client, or servers.
type aim struct {
	event   scenario.FaultEvent // names them
	how     string              // they were found
	claims  []claim
	stopped []Process // would be left stopped if we died
	target  target    // the client, or the one by which the servers were found
	proc    Process   // the client's
	nodes   []int
	lead    int // the leader when the servers were chosen; -1: none
}

// what describes for the journal the action and its target.
func (a aim) what(kind string) string {
	var names []string
	for _, n := range a.event.Nodes {
		names = append(names, n.Name)
	}
	if len(names) == 0 && a.event.Client != nil {
		names = append(names, fmt.Sprintf("client %d (pid %d)", *a.event.Client, a.event.PID))
	}
	return kind + " of " + strings.Join(names, ", ")
}

// inject finds a target, hits it and makes sure that it was hit. A target may
// cease to be one before that: what was done is undone then, and the next is
// tried, as long as the window allows. Without an injection the miss is on
// record.
func (f *fault) inject(ctx context.Context) (*injection, error) {
	if why := f.impossible(); why != nil {
		return nil, f.missed(why.Error())
	}
	for try := 1; ; try++ {
		f.openGate()
		a, err := f.aim(ctx, try)
		if err == nil && ctx.Err() != nil {
			err = errors.New("the run ended before the target was hit")
		}
		if err != nil {
			return nil, f.missed(err.Error())
		}
		in, err := f.begin(a)
		if errors.Is(err, errClaimed) && f.kind.OnClient() && !a.target.atGate {
			// Another fault was faster. The next look knows of its claim.
			if f.sleep(ctx, betweenTries) != nil {
				return nil, f.missed(fmt.Sprintf("the run ended before a target was hit: %v", err))
			}
			continue
		}
		if err != nil {
			return nil, f.missed(err.Error())
		}
		if err = f.act(ctx, in); err == nil {
			if !in.keepsGate() {
				f.leaveGate()
			}
			return f.injected(ctx, in)
		}
		if undone := in.close(ctx); undone != nil {
			return nil, errors.Join(undone, f.missed(err.Error()))
		}
		if !errors.Is(err, errEscaped) {
			return nil, f.missed(err.Error())
		}
		if f.sleep(ctx, betweenTries) != nil {
			return nil, f.missed("the run ended before a target was hit")
		}
	}
}

// keepsGate reports whether the client at the gate stands there until the heal:
// one that is paused goes on where it was stopped.
func (in *injection) keepsGate() bool {
	k := in.fault.kind
	return k.OnClient() && k.About().Freezes && in.aim.target.atGate
}

// injected puts an injection on record. What cannot be put there is undone.
func (f *fault) injected(ctx context.Context, in *injection) (*injection, error) {
	if in.since == 0 {
		in.since = f.Clock.Now()
	}
	if err := in.record(); err != nil {
		return nil, errors.Join(err, in.close(ctx))
	}
	return in, nil
}

// impossible returns why a fault cannot be injected into any target.
func (f *fault) impossible() error {
	if err := Available(f.Kind); err != nil {
		return err
	}
	switch {
	case f.kind.OnClient():
		if f.Wires == nil && (f.about.Wire || !f.about.StopsProcess) {
			return fmt.Errorf("%s needs a way to the clients' connections and clocks, and there is none here", f.Kind)
		}
		return nil
	case f.Servers == nil || len(f.Servers.Nodes()) == 0:
		return fmt.Errorf("%s needs servers, and there are none here that could be hit", f.Kind)
	case f.Wires == nil && f.throughWires():
		return fmt.Errorf("%s needs a way to the clients' connections, and there is none here", f.Kind)
	}
	// What the wire carries too makes do with what there is of the links.
	if f.about.Wire || f.about.Needs == "" {
		return nil
	}
	if err := f.Servers.Can(f.about.Needs); err != nil {
		return fmt.Errorf("these servers do not support %s: %w", f.about.Name, err)
	}
	return nil
}

// aim finds the target. The error is the reason of a miss.
func (f *fault) aim(ctx context.Context, try int) (aim, error) {
	if f.kind.OnClient() {
		p, err := f.find(ctx, try)
		if err != nil {
			return aim{}, err
		}
		return f.aimAt(p)
	}
	return f.aimAtServers(ctx, try)
}

// aimAt finds the process of a client, which must host no client that the fault
// may not hit.
func (f *fault) aimAt(p target) (aim, error) {
	proc, hosted, err := f.Clients.Process(p.Client)
	if err != nil {
		return aim{}, err
	}
	stops := f.about.StopsProcess
	if stops && len(hosted) > 1 && !(f.Takeover && f.Kind == scenario.HolderKill) {
		return aim{}, fmt.Errorf("the process of client %d hosts %d clients, and %s would hit them all: give each its own (leave workers out)", p.Client, len(hosted), f.Kind)
	}
	c, err := f.claimOn(p.Client)
	if err != nil {
		return aim{}, err
	}
	a := aim{event: p.event(), how: p.how, target: p, proc: proc, claims: []claim{c}}
	a.event.PID = proc.PID()
	if stops {
		a.stopped = []Process{proc}
	}
	return a, nil
}

// claimOn is what the fault has to take hold of to hit a client.
func (f *fault) claimOn(client uint32) (claim, error) {
	proc, _, err := f.Clients.Process(client)
	if err != nil {
		return claim{}, err
	}
	alone := f.about.StopsProcess || f.about.Exclusive
	return claim{fmt.Sprintf("the process of client %d (pid %d)", client, proc.PID()), alone}, nil
}

// act does to the target what the fault is to do, and makes sure of it. The
// error is errEscaped if the target turned out to be none, or the reason of a
// miss; what was done by then is undone by closing the injection.
func (f *fault) act(ctx context.Context, in *injection) error {
	if f.kind.OnClient() {
		return f.kind.Action.(clientAction).hitClient(ctx, f, in)
	}
	return f.actOnServers(ctx, in)
}

// firstGrant waits until a client gets the lock that was hit, once the fault is
// over, or any lock if servers were hit. It polls, and so sees the first grant
// whose hold lasts; the history has all of them.
func (f *fault) firstGrant(ctx context.Context, in *injection) error {
	after := max(in.over, in.since)
	for f.Clock.Now() < f.End {
		for _, h := range f.Clients.Holders() {
			if h.Since <= after || f.kind.OnClient() && in.event.Key != nil && *in.event.Key != h.Key {
				continue
			}
			return f.log(scenario.FaultEvent{Event: "first_grant", AtNS: h.Since, Client: &h.Client, Key: &h.Key, Attempt: h.Attempt.String()})
		}
		if f.sleep(ctx, 2*time.Millisecond) != nil {
			return nil
		}
	}
	return nil
}
