package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/lockbench/lockbench/impls"
)

// Servers lets the suite take servers away, to measure whether the lock is
// available without one of them. They are numbered as Config.Addresses is.
type Servers interface {
	// Kill ends a server at once, as a crash would.
	Kill(ctx context.Context, node int) error
	// Restart starts it again with its data, and returns when it serves.
	Restart(ctx context.Context, node int) error
	// Healthy returns nil when all of them serve and stand to one another as at
	// the start: a leader, and followers that have what it has.
	Healthy(ctx context.Context) error
}

// Option chooses what Measure measures.
type Option func(impls.Property) bool

// Only has nothing but these properties measured.
func Only(ps ...impls.Property) Option {
	return func(p impls.Property) bool { return slices.Contains(ps, p) }
}

// Except has these properties left out.
func Except(ps ...impls.Property) Option {
	return func(p impls.Property) bool { return !slices.Contains(ps, p) }
}

// procedure is a trial and the properties that it may speak of.
type procedure struct {
	about []impls.Property
	run   func(*trial)
}

func about(ps ...impls.Property) []impls.Property { return ps }

// Measure measures which properties a lock has, with client processes of its
// own, and compares them with what its recipe promises: a finding for each of
// impls.Properties that the options leave, in that order. The error says that
// nothing could be measured at all: no client process, no server.
//
// The client processes are the running executable, started again, which
// becomes one by MainIfClient. They dial and read the clock by themselves, and
// wait 1 to 3 ms between polls: of Config only the addresses, the topology with
// its directory, the account, the TTL and the timeout are used for them.
//
// It takes a few TTLs, and Subject.Grace more if the lock lacks something that
// shows by waiting. Available is measured last, since it takes servers away:
// no other client may use them then. Measure may be called for several locks at
// once.
func Measure(ctx context.Context, s Subject, opts ...Option) ([]Finding, error) {
	h, err := newHarness(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("measure %s: %w", s.Recipe.Info().ID, err)
	}
	chosen := func(p impls.Property) bool {
		return !slices.ContainsFunc(opts, func(o Option) bool { return !o(p) })
	}
	all := h.sideBySide(ctx, procedures(), chosen)
	if slices.ContainsFunc(placeProperties(), chosen) {
		places, saw := h.explore(ctx)
		all = append(all, saw...)
		all = append(all, h.sideBySide(ctx, atPlaces(h.info, places), chosen)...)
	}
	if chosen(impls.Available) {
		all = append(all, h.sideBySide(ctx, []procedure{{about(impls.Available), available}}, chosen)...)
	}
	var list []Finding
	for _, p := range impls.Properties() {
		if chosen(p.Property) {
			list = append(list, judge(p.Property, h.promised(p.Property), all))
		}
	}
	if err := h.close(); err != nil {
		return list, fmt.Errorf("measure %s: end the client processes: %w", h.info.ID, err)
	}
	return list, ctx.Err()
}

// promised reports whether the recipe promises p here: no lock can promise to
// go on without the only server, and any may where others take its place.
func (h *harness) promised(p impls.Property) bool {
	if p != impls.Available {
		return h.info.Promises(p)
	}
	return h.info.Promises(p) && len(h.Config.Addresses) > 1 || slices.Contains(h.info.AvailableOn, h.Config.Topology)
}

// procedures lists what is done to every lock.
func procedures() []procedure {
	return []procedure{
		{about(impls.Exclusive), contention},
		{about(impls.DeadlockFree), diesHolding},
		{about(impls.DeadlockFree), diesWaiting},
		{about(impls.Expiry, impls.SignalsLoss, impls.ReportsLost), silentHolder},
		{about(impls.Symmetric, impls.ReportsLost), lateRelease},
		{about(impls.SignalsLoss, impls.ReportsLost, impls.Symmetric), cutOff},
		{about(impls.Symmetric), foreignCleanup},
		{about(impls.Symmetric), unheardRefusal},
		{about(impls.Blocking, impls.Exclusive), waiter},
		{about(impls.Blocking), givesUp},
		{about(impls.CleansUp), leavesByDeadline},
		{about(impls.CleansUp), leavesByCancel},
		{about(impls.NonBlocking), refusal},
		{about(impls.Once), releasedTwice},
		{about(impls.Extends), extended},
		{about(impls.Extends), notRevived},
		{about(impls.Ordered), inOrder},
		{about(impls.Reenterable), reentry},
		{about(impls.ReadWrite), readersAndWriters},
		{about(impls.Batch), batches},
	}
}

// sideBySide makes the trials that speak of a chosen property.
func (h *harness) sideBySide(ctx context.Context, list []procedure, chosen func(impls.Property) bool) []seen {
	saw := make([][]seen, len(list)) // in their order, whichever ends first
	var group sync.WaitGroup
	for i, p := range list {
		if !slices.ContainsFunc(p.about, chosen) {
			continue
		}
		group.Go(func() {
			var err error
			if saw[i], err = h.try(ctx, p.run); err == nil {
				return
			}
			for _, property := range p.about {
				saw[i] = append(saw[i], seen{property, Unknown, fmt.Sprintf("could not be measured: %v", err)})
			}
		})
	}
	group.Wait()
	return slices.Concat(saw...)
}
