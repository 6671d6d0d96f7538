package chaos

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/scenario"
)

// throughWires reports whether a fault of servers needs a way to the clients'
// connections.
func (f *fault) throughWires() bool {
	return f.kind.Target == scenario.TargetServing || f.about.Wire
}

// actOnServers hits the servers.
func (f *fault) actOnServers(ctx context.Context, in *injection) error {
	if f.seeksHolder() && !in.aim.target.stillValid() {
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
	if !f.about.KeepsLeader || !f.byLead(in.aim) {
		return nil
	}
	// No answer is no proof that it moved.
	if lead, err := f.Servers.Leader(ctx); err == nil && lead != in.aim.lead {
		return fmt.Errorf("the lead moved to %s while the fault was injected", f.Servers.Nodes()[lead].Name)
	}
	return nil
}

func (f *fault) hitServers(ctx context.Context, in *injection) error {
	return f.kind.Action.(serverAction).hitServers(ctx, f, in)
}

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
			return fmt.Errorf("%s: %w", f.about.Name, err)
		}
	}
	return nil
}

// surround puts the fault's rule between the servers and all others: the other
// servers, without whose links it may do if it need not have them, and all
// clients.
func (f *fault) surround(ctx context.Context, in *injection, needsLinks bool) error {
	links := ""
	switch why := f.Servers.Can(scenario.AbilityLinks); {
	case why == nil:
		how, err := f.cutLinks(ctx, in)
		if err != nil {
			return err
		}
		links = " to clients, " + how
	case needsLinks:
		return fmt.Errorf("the links to the other servers cannot be cut: %w", why)
	}
	how, err := f.apply(ctx, in, nil, in.addresses())
	return in.saying(how+links, err)
}

// cutLinks puts the rule on the links of the servers with all others.
func (f *fault) cutLinks(ctx context.Context, in *injection) (how string, err error) {
	away := func(ctx context.Context) error {
		effect, err := f.Servers.LiftLinks(ctx, f.id)
		in.adds(effect)
		return err
	}
	err = in.do("the links between the servers are joined", away, func() error {
		how, err = f.Servers.CutLinks(ctx, f.id, in.aim.nodes, f.rule())
		return err
	})
	if err != nil {
		return "", fmt.Errorf("put %s on the links between servers: %w", f.about.Name, err)
	}
	return how, nil
}
