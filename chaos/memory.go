package chaos

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/internal/scenario"
)

// evict fills a server's memory until it has evicted the lock.
type evict struct{}

func (evict) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "evict", Group: scenario.GroupServer, Targets: scenario.ServerTargets(),
		Summary: "its memory is filled until it has evicted the lock",
		Means:   "the server's own commands", Did: "was made to evict the lock",
		Instant: true, Needs: scenario.AbilityEvict, AboutHold: true, Forgets: true,
	}
}

func (evict) claims() []claim { return []claim{{"the memory", false}} }

func (evict) hitServers(ctx context.Context, f *fault, in *injection) error {
	key := in.aim.target.Key
	if int(key) >= len(f.Keys) {
		return fmt.Errorf("the name of key %d is not known", key)
	}
	for _, n := range in.aim.nodes {
		if err := in.saying(f.Servers.Evict(ctx, n, f.Keys[key])); err != nil {
			return fmt.Errorf("evict: %w", err)
		}
	}
	return nil
}

func (evict) Expect(scenario.Situation) scenario.Expect { return anything() }

func (evict) cause(s Suspicion) string { return s.Where + " evicted the lock" }

// flush asks servers to forget everything.
type flush struct{}

func (flush) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "flush", Group: scenario.GroupServer, Targets: scenario.ServerTargets(),
		Summary: "asked to forget everything",
		Means:   "the server's own commands", Did: "was made to forget everything",
		Instant: true, Needs: scenario.AbilityFlush, Forgets: true,
	}
}

func (flush) claims() []claim { return []claim{{"the memory", false}} }

func (flush) hitServers(ctx context.Context, f *fault, in *injection) error {
	for _, n := range in.aim.nodes {
		if err := in.saying(f.Servers.Flush(ctx, n)); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
	}
	return nil
}

func (flush) Expect(scenario.Situation) scenario.Expect { return anything() }

func (flush) cause(s Suspicion) string { return s.Where + " was made to forget its locks" }

// full leaves a server no room, so that it rejects requests that need more.
type full struct{}

func (full) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "full", Group: scenario.GroupServer, Targets: scenario.ServerTargets(),
		Summary: "it has no room left: it refuses whatever takes more, and forgets nothing",
		Means:   "the server's own commands", Did: "was full",
		Needs: scenario.AbilityFull, Exclusive: true, KeepsLeader: true,
	}
}

// claims: what makes room ends the fault. So does a new start, and a server that
// stands still cannot be given any.
func (full) claims() []claim { return []claim{{"the memory", true}, {"the process", true}} }

func (full) hitServers(ctx context.Context, f *fault, in *injection) error {
	return f.onEach(ctx, in, "the server has room again", f.Servers.Drain, func(ctx context.Context, n int) error {
		return in.saying(f.Servers.Fill(ctx, n))
	})
}

// Expect: one full member has all of a quorum reject.
func (full) Expect(s scenario.Situation) scenario.Expect { return serverFault{keeps: true}.expect(s) }

// missed: a client that asks most of several servers need not notice one of them.
func (full) missed(e Evidence) string {
	if e.Servers().ToleratesRejection || e.Rejected() {
		return ""
	}
	return "no request was rejected while the server was full"
}
