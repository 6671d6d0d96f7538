package chaos

import (
	"context"

	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Action is one thing that faults do. Each has a file of its own, with all that
// is known about it: what it is called and takes, how it is injected and healed,
// what is expected under it, and what in a history shows that it hit. Besides
// this interface it has those of the small ones below that it needs, and at
// least one of clientAction and serverAction.
type Action = scenario.FaultAction

// clientAction hits a client. What it does is confirmed when hitClient returns,
// and was done while the client still was what it was chosen for; else the error
// is errEscaped, or the reason of a miss. What was done by then is undone by
// closing the injection.
type clientAction interface {
	hitClient(ctx context.Context, f *fault, in *injection) error
}

// serverAction hits the servers of an injection.
type serverAction interface {
	hitServers(ctx context.Context, f *fault, in *injection) error
}

// ruled is an action that puts a rule on connections.
type ruled interface {
	rule(f *fault) faultnet.Rule
}

// sustained is an action that goes on to do something while it lasts.
type sustained interface {
	sustain(ctx context.Context, f *fault, in *injection) error
}

// claiming is an action on servers that needs parts of them for itself. What it
// claims alone no other fault may touch meanwhile.
type claiming interface {
	claims() []claim
}
