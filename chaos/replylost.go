package chaos

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

const (
	// replyLook is how often it is looked whether the rule has swallowed something
	// of a client that seems to do nothing: one that renews its lease, say.
	replyLook = 250 * time.Millisecond
	// replyGrace is given to what is being swallowed.
	replyGrace = 10 * time.Millisecond
)

// replyLost has a client's next request carried out, and its reply swallowed.
type replyLost struct{}

func (replyLost) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "reply-lost", Group: scenario.GroupWire, Targets: scenario.ClientTargets(),
		Summary: "its next request reaches the server, whose answer is swallowed, and the connection breaks; where that is kept alive by requests too (etcd, zookeeper) it may be one of these, but for who waits for the step acquiring or releasing",
		Means:   "proxy", Instant: true, Wire: true,
	}
}

func (replyLost) rule(*fault) faultnet.Rule { return faultnet.Rule{LoseReply: true} }

func (replyLost) hitClient(ctx context.Context, f *fault, in *injection) error {
	return loseOne(ctx, f, in, "reply")
}

// Expect: a lost answer at any step must not make a lock break its guarantee.
func (replyLost) Expect(s scenario.Situation) scenario.Expect {
	switch {
	case atStep(s):
		return scenario.Expect{Promise: s.Calm.Promise}
	case s.Kind.OnHolder():
		return brokenHolder(s)
	}
	return lostGrant(s, "connection", "session")
}

func (replyLost) noticed(e scenario.WireEffect) bool { return e.LostBytes > 0 }

func (replyLost) cause(Suspicion) string { return "an answer was lost on its way" }

// clientState is what a client is doing.
type clientState struct {
	holds, waits bool
	attempt      history.Attempt
}

func (f *fault) doing(client uint32) clientState {
	is := func(h Holding) bool { return h.Client == client }
	if holders := f.Clients.Holders(); slices.ContainsFunc(holders, is) {
		return clientState{holds: true, attempt: holders[slices.IndexFunc(holders, is)].Attempt}
	}
	if waiters := f.Clients.Waiters(); slices.ContainsFunc(waiters, is) {
		return clientState{waits: true, attempt: waiters[slices.IndexFunc(waiters, is)].Attempt}
	}
	return clientState{}
}

// loseOne has the fault's rule swallow one reply, or one request. Only the rule knows
// whether it did, and it reports that when it is lifted. So the rule is lifted as
// soon as the client has gone on, which it does when its call has returned. If
// nothing was swallowed, loseOne waits for the next one, as long as the target is
// still valid. The rule is in force from the moment at which it was applied.
func loseOne(ctx context.Context, f *fault, in *injection, what string) error {
	p := in.aim.target
	if !p.stillValid() {
		return errEscaped
	}
	until := f.End
	if f.For > 0 {
		until = min(until, f.Clock.Now()+int64(f.For))
	}
	for {
		before := f.doing(p.Client)
		in.at = f.Clock.Now()
		if err := in.saying(f.apply(ctx, in, f.clientOf(in), nil)); err != nil {
			return err
		}
		in.since = f.Clock.Now()
		f.openGate()
		look := min(until, in.at+int64(replyLook))
		for f.Clock.Now() < look && f.doing(p.Client) == before && f.sleep(ctx, time.Millisecond) == nil {
		}
		_ = f.sleep(ctx, replyGrace)
		if err := in.back(ctx); err != nil {
			return err
		}
		switch {
		case in.effect.LostBytes > 0:
			in.confirmed = "the " + what + " was swallowed"
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("the run ended before a %s was lost", what)
		case f.Clock.Now() >= until:
			return fmt.Errorf("no %s came that could be lost", what)
		case !p.stillValid():
			return errEscaped
		}
	}
}
