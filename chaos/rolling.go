package chaos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// healthLook is how often servers are asked whether they are healthy again.
const healthLook = 50 * time.Millisecond

// roll hits one server after another, each when all are healthy again after the
// one before. It counts as injected when all were hit: its events are written
// then, with the stamps at which things were done.
func (f *fault) roll(ctx context.Context) error {
	if why := f.impossible(); why != nil {
		return f.missed(why.Error())
	}
	p, err := f.moment(ctx, 1)
	if err != nil {
		return f.missed(err.Error())
	}
	nodes := f.Servers.Nodes()
	if f.Clock.Now()+int64(f.For)*int64(len(nodes)) > f.End {
		return f.missed("what was left of the window is less than the fault lasts")
	}
	var done []*injection
	lead := f.leaderAside(ctx)
	for n := range nodes {
		in, why, err := f.rollOver(ctx, f.aimAtNodes([]int{n}, lead, "one after another", p))
		if cause := errors.Join(why, err); cause != nil {
			return errors.Join(err, f.missed(fmt.Sprintf("only %d of %d servers were hit and healed: %v", len(done), len(nodes), cause)))
		}
		done = append(done, in)
	}
	last := done[len(done)-1]
	if err := f.rolled(done); err != nil {
		return err
	}
	return f.firstGrant(ctx, last)
}

// rollOver hits one server, heals it, and waits until all are healthy. It answers
// why it missed, and whether the heal failed.
func (f *fault) rollOver(ctx context.Context, a aim) (in *injection, why, err error) {
	if in, why = f.begin(a); why != nil {
		return nil, why, nil
	}
	in.quiet = true
	in.at = f.Clock.Now()
	why = f.hitServers(ctx, in)
	in.since = f.Clock.Now()
	f.leaveGate()
	in.report(why == nil)
	if why == nil && f.sleep(ctx, time.Duration(f.For)) != nil {
		why = errors.New("the run ended")
	}
	err = in.close(ctx)
	if why == nil && err == nil {
		why = f.healthy(ctx)
	}
	return in, why, err
}

// healthy waits until the servers are, as long as the window allows.
func (f *fault) healthy(ctx context.Context) error {
	for {
		err := f.Servers.Healthy(ctx)
		if err == nil {
			return nil
		}
		if f.Clock.Now() > f.End {
			return fmt.Errorf("they were not healthy again when the window closed: %w", err)
		}
		if f.sleep(ctx, healthLook) != nil {
			return errors.New("the run ended before they were healthy again")
		}
	}
}

// rolled writes the events of a fault that went round.
func (f *fault) rolled(done []*injection) error {
	first, last := done[0], done[len(done)-1]
	all := first.event
	all.Nodes = nil
	var names []string
	var errs []error
	for _, in := range done {
		all.Nodes = append(all.Nodes, in.event.Nodes...)
		names = append(names, in.event.Nodes[0].Name)
	}
	at := func(event string, stamp int64, how string) {
		e := all
		e.Event, e.AtNS, e.How = event, stamp, how
		errs = append(errs, f.log(e))
	}
	mechanism, _, _ := strings.Cut(first.event.How, "; ")
	f.hit = true
	at("injected", first.at, mechanism+"; one after another: "+strings.Join(names, ", "))
	at("effective", first.since, first.confirmed)
	for _, in := range done {
		errs = append(errs, f.log(scenario.FaultEvent{
			Event: "note", AtNS: in.at, Nodes: in.event.Nodes, How: mechanism + "; " + in.remedy,
		}))
	}
	at("heal_started", last.healing, last.remedy)
	at("healed", f.Clock.Now(), "all are healthy")
	return errors.Join(errs...)
}
