package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

const (
	leaderLook = 50 * time.Millisecond
	// leaderAside is how long a fault that aims at no leader waits for the
	// servers to report their leader.
	leaderAside = 500 * time.Millisecond
)

// aimAtServers waits for the fault's moment and finds the servers to hit. The
// error is the reason of a miss.
func (f *fault) aimAtServers(ctx context.Context, try int) (aim, error) {
	p, err := f.moment(ctx, try)
	if err != nil {
		return aim{}, err
	}
	if f.late() {
		return aim{}, errors.New("what was left of the window is less than the fault lasts")
	}
	nodes, lead, how, err := f.nodes(ctx, try, p)
	if err != nil {
		return aim{}, err
	}
	return f.aimAtNodes(nodes, lead, how, p), nil
}

// moment waits for the trigger of a fault of the servers, and returns the client
// that triggered it, or that holds the lock.
func (f *fault) moment(ctx context.Context, try int) (target, error) {
	switch {
	case f.seeksHolder() || f.After > 0:
		return f.find(ctx, try)
	case f.Step == "":
		return target{}, nil
	}
	h, _, err := f.catch(ctx, f.Step, f.Nth, never)
	return f.standing(h, f.Step), err
}

// aimAtNodes names the servers, and takes hold of what the fault needs of them.
func (f *fault) aimAtNodes(nodes []int, lead int, how string, p target) aim {
	a := aim{how: how, nodes: nodes, lead: lead, target: p}
	if p.stillValid != nil {
		a.event = p.event()
		a.how += "; " + p.how
	}
	a.event.Nodes = f.named(nodes, lead)
	for _, n := range a.event.Nodes {
		if c, ok := f.kind.Action.(claiming); ok {
			for _, part := range c.claims() {
				a.claims = append(a.claims, claim{part.what + " of " + n.Name, part.alone})
			}
		}
		if f.about.StopsProcess {
			if proc := f.Servers.Process(n.Index); proc != nil {
				a.stopped = append(a.stopped, proc)
			}
		}
	}
	return a
}

func (f *fault) named(nodes []int, lead int) []scenario.Node {
	all := f.Servers.Nodes()
	var list []scenario.Node
	for _, n := range nodes {
		list = append(list, scenario.Node{Index: n, Name: all[n].Name, Address: all[n].Address, Leader: n == lead})
	}
	return list
}

// nodes finds the servers that the fault's target names, and the leader: -1 if
// none leads, or if it does not matter and is not known now.
func (f *fault) nodes(ctx context.Context, try int, p target) (nodes []int, lead int, how string, err error) {
	all := f.Servers.Nodes()
	if n, ok := f.kind.Node(); ok {
		if n > len(all) {
			return nil, -1, "", fmt.Errorf("there is no node %d, only %d", n, len(all))
		}
		return []int{n - 1}, f.leaderAside(ctx), "named", nil
	}
	switch f.kind.Target {
	case scenario.TargetAll:
		return count(len(all)), f.leaderAside(ctx), "all", nil
	case scenario.TargetServing:
		return f.serving(ctx, p)
	}
	lead, err = f.leader(ctx)
	equals := errors.Is(err, ErrEquals)
	if err != nil && !equals {
		return nil, -1, "", fmt.Errorf("no server led in time: %w", err)
	}
	if equals {
		lead = -1
	}
	// The others come in an order by the seed, the leader last.
	order := rand.New(rand.NewPCG(f.Seed, f.hash(try))).Perm(len(all))
	order = slices.DeleteFunc(order, func(n int) bool { return n == lead })
	if lead >= 0 {
		order = append(order, lead)
	}
	few := (len(all) - 1) / 2
	switch f.kind.Target {
	case scenario.TargetLeader:
		nodes, how = order[len(order)-1:], "leader, as the servers say"
	case scenario.TargetFollower:
		nodes, how = order[:min(1, len(order)-1)], "follower chosen by the seed"
	case scenario.TargetMinority:
		nodes, how = order[:few], "minority chosen by the seed"
	case scenario.TargetMajority:
		nodes, how = order[few:], "majority chosen by the seed"
	}
	switch {
	case equals && (f.kind.Target == scenario.TargetLeader || f.kind.Target == scenario.TargetFollower):
		return nil, -1, "", err
	case len(nodes) == 0:
		return nil, -1, "", fmt.Errorf("no server is the %s of %d servers", f.kind.Target, len(all))
	}
	slices.Sort(nodes)
	return nodes, lead, how, nil
}

func count(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// serving finds the one server that a client is connected to; if it has none or
// several, the leader.
func (f *fault) serving(ctx context.Context, p target) (nodes []int, lead int, how string, err error) {
	limited, cancel := context.WithTimeout(ctx, wireLimit)
	defer cancel()
	peers, err := f.Wires.Peers(limited, p.Client)
	if err != nil {
		return nil, -1, "", fmt.Errorf("ask client %d what it is connected to: %w", p.Client, err)
	}
	for i, n := range f.Servers.Nodes() {
		if slices.Contains(peers, n.Address) {
			nodes = append(nodes, i)
		}
	}
	if len(nodes) == 1 {
		return nodes, f.leaderAside(ctx), fmt.Sprintf("the server of client %d", p.Client), nil
	}
	lead, err = f.leader(ctx)
	if err != nil {
		return nil, -1, "", fmt.Errorf("client %d is connected to %d servers, and their leader is not known: %w", p.Client, len(nodes), err)
	}
	return []int{lead}, lead, fmt.Sprintf("leader, for client %d is connected to %d servers", p.Client, len(nodes)), nil
}

// leader polls until a server leads, as long as the window allows.
func (f *fault) leader(ctx context.Context) (int, error) {
	for {
		lead, err := f.Servers.Leader(ctx)
		if err == nil || errors.Is(err, ErrEquals) || f.late() {
			return lead, err
		}
		if f.sleep(ctx, leaderLook) != nil {
			return -1, err
		}
	}
}

// leaderAside asks once, and does not wait for long.
func (f *fault) leaderAside(ctx context.Context) int {
	ctx, cancel := context.WithTimeout(ctx, leaderAside)
	defer cancel()
	lead, err := f.Servers.Leader(ctx)
	if err != nil {
		return -1
	}
	return lead
}

// byLead reports whether the servers were chosen by which one leads.
func (f *fault) byLead(a aim) bool {
	switch f.kind.Target {
	case scenario.TargetLeader, scenario.TargetFollower, scenario.TargetMinority, scenario.TargetMajority:
		return a.lead >= 0
	}
	return false
}
