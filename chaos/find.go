package chaos

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// errEscaped: the target was not any more what it was when it was chosen.
var errEscaped = errors.New("the target escaped")

// target is a client that a fault aims at, or by which it finds its servers.
type target struct {
	Holding
	how string
	// stillValid reports whether it still is what it was chosen for.
	stillValid func() bool
	idle       bool // it neither holds nor waits, so its key means nothing
	atGate     bool // it stands at the gate, and moves no further
}

// event names the client.
func (p target) event() (e scenario.FaultEvent) {
	e.Client = &p.Client
	if !p.idle {
		e.Key = &p.Key
	}
	if !p.Attempt.IsZero() {
		e.Attempt = p.Attempt.String()
	}
	return e
}

// find waits for a client to aim at, by the fault's target and trigger. The
// error is the reason of a miss.
func (f *fault) find(ctx context.Context, try int) (target, error) {
	switch {
	case f.Step != "":
		h, _, err := f.catch(ctx, f.Step, f.Nth, never)
		if err != nil {
			return target{}, err
		}
		if f.meant() {
			return f.standing(h, f.Step), nil
		}
	case f.kind.Target == scenario.TargetStep:
		return target{}, fmt.Errorf("%s does not say at which step", f.Kind)
	case f.wantsHeld():
		h, came, err := f.catch(ctx, placeHeld, 0, f.longHeld)
		if came {
			return f.standing(h, placeHeld), nil
		}
		if err != nil && (f.late() || ctx.Err() != nil) {
			return target{}, err
		}
		// No client can be stopped there, or a client holds so long that there is
		// no need to.
	}
	return f.choose(ctx, try)
}

// meant reports whether the client that came to the fault's step is the one to
// hit; else it only gives the moment.
func (f *fault) meant() bool {
	holds := f.Step == placeHeld || f.Step == placeReleasing
	return f.kind.Target == scenario.TargetStep || holds && f.seeksHolder()
}

// seeksHolder reports whether the fault finds its target by the holder of a lock.
func (f *fault) seeksHolder() bool {
	return f.kind.OnHolder() || f.kind.Target == scenario.TargetServing || f.about.AboutHold
}

// standing is the client at the gate. It may lose the lock there.
func (f *fault) standing(h Holding, step string) target {
	p := target{Holding: h, how: "the client stood at the step", stillValid: func() bool { return true }, atGate: true}
	if f.Step == "" {
		p.how += " " + step
	}
	if step == placeHeld && f.seeksHolder() {
		p.stillValid = func() bool { return f.Clients.Holds(h) }
	}
	return p
}

// longHeld reports whether a client has held a lock for long: such holds do not
// end within a moment.
func (f *fault) longHeld() bool {
	now := f.Clock.Now()
	return slices.ContainsFunc(f.Clients.Holders(), func(h Holding) bool { return now-h.Since > int64(longHold) })
}

// choose waits until there is a client to choose from.
func (f *fault) choose(ctx context.Context, try int) (target, error) {
	var taken error
	for {
		if f.late() {
			return target{}, because(fmt.Sprintf("%s (%d tries)", f.noClient(), try-1), taken)
		}
		list := f.candidates()
		if f.After > 0 {
			list = f.tooRecent(list)
		}
		free, conflict := f.unclaimed(list)
		if ctx.Err() != nil {
			// The end of the run heals the other faults too, and what that sets free
			// was taken as long as the run lasted.
			return target{}, because("the run ended before a client was found", taken)
		}
		taken = conflict
		if len(free) > 0 {
			if h := free[f.hash(try)%uint64(len(free))]; f.ripens(ctx, h) {
				return f.chosen(h, try), nil
			}
		}
		if f.sleep(ctx, time.Millisecond) != nil {
			return target{}, because("the run ended before a client was found", taken)
		}
	}
}

// because puts a cause to a reason, if there is one.
func because(reason string, cause error) error {
	if cause == nil {
		return errors.New(reason)
	}
	return fmt.Errorf("%s: %w", reason, cause)
}

// noClient is why no client was found in time.
func (f *fault) noClient() string {
	switch f.kind.Target {
	case scenario.TargetWaiter:
		return "no client waited long enough to be hit while waiting"
	case scenario.TargetNonholder:
		return "no client could be hit that held nothing"
	}
	if f.After > 0 {
		return fmt.Sprintf("no client held its lock until the hold was %g TTL old", f.After)
	}
	return "no client kept its lock long enough to be hit while holding it"
}

// candidates lists the clients that the fault may choose from.
func (f *fault) candidates() []Holding {
	switch f.kind.Target {
	case scenario.TargetWaiter:
		return f.Clients.Waiters()
	case scenario.TargetNonholder:
		list := f.Clients.Waiters()
		for _, c := range f.Clients.Idle() {
			list = append(list, Holding{Client: c})
		}
		slices.SortStableFunc(list, func(a, b Holding) int { return int(a.Client) - int(b.Client) })
		return list
	}
	return f.Clients.Holders()
}

// unclaimed leaves out clients in whose process another fault is in force, and
// returns that as an error if no other client is left. Of the waiters it keeps the
// first one.
func (f *fault) unclaimed(list []Holding) (free []Holding, taken error) {
	if !f.kind.OnClient() {
		return list, nil
	}
	for _, h := range list {
		if c, err := f.claimOn(h.Client); err == nil {
			if err := f.claims.free(c); err != nil {
				taken = err
				continue
			}
		}
		free = append(free, h)
	}
	if len(free) == 0 {
		return nil, taken
	}
	if f.kind.Target == scenario.TargetWaiter {
		free = free[:1]
	}
	return free, nil
}

// mark is the stamp at which a hold is as old as the fault wants it.
func (f *fault) mark(h Holding) int64 { return h.Since + int64(f.After*float64(f.TTL)) }

// tooRecent leaves out the holds that are past their mark.
func (f *fault) tooRecent(list []Holding) []Holding {
	now := f.Clock.Now()
	return slices.DeleteFunc(list, func(h Holding) bool { return f.mark(h) < now })
}

// ripens waits until a hold has come to its mark, and reports whether it stands
// by then.
func (f *fault) ripens(ctx context.Context, h Holding) bool {
	if f.After <= 0 {
		return true
	}
	for {
		rest := f.mark(h) - f.Clock.Now()
		if rest <= 0 || !f.Clients.Holds(h) {
			return rest <= 0 && f.Clients.Holds(h)
		}
		if f.sleep(ctx, min(time.Duration(rest), time.Millisecond)) != nil {
			return false
		}
	}
}

// hash decides by the seed and the event, so that the order of goroutines
// cannot change the choice.
func (f *fault) hash(try int) uint64 {
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%d/%s/%d", f.Seed, f.id, try)
	return sum.Sum64()
}

// chosen is a client that was found in shared memory.
func (f *fault) chosen(h Holding, try int) target {
	same := func(x Holding) bool { return x.Client == h.Client && x.Attempt == h.Attempt }
	p := target{Holding: h, how: fmt.Sprintf("holder found in shared memory, try %d", try)}
	p.stillValid = func() bool { return f.Clients.Holds(h) }
	switch f.kind.Target {
	case scenario.TargetWaiter:
		p.how = fmt.Sprintf("longest waiter found in shared memory, try %d", try)
		p.stillValid = func() bool { return slices.ContainsFunc(f.Clients.Waiters(), same) }
	case scenario.TargetNonholder:
		p.how = fmt.Sprintf("client without a lock found in shared memory, try %d", try)
		p.idle = h.Attempt == history.Attempt{}
		p.stillValid = func() bool {
			return !slices.ContainsFunc(f.Clients.Holders(), func(x Holding) bool { return x.Client == h.Client })
		}
	}
	return p
}
