package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/faultnet"
)

// tape records what was done to a fake world, in order. A test may decide by
// meddle how each call ends: it may fail, panic, or end the run. The call is on
// the tape before that.
type tape struct {
	mu     sync.Mutex
	calls  []string
	meddle func(call string) error
}

func (t *tape) note(format string, values ...any) error {
	call := fmt.Sprintf(format, values...)
	t.mu.Lock()
	t.calls = append(t.calls, call)
	t.mu.Unlock()
	if t.meddle == nil {
		return nil
	}
	return t.meddle(call)
}

// played lists the calls whose names begin with one of the prefixes.
func (t *tape) played(prefixes ...string) (list []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.calls {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(c, p) }) {
			list = append(list, c)
		}
	}
	return list
}

// fakeServers are servers that only write down what is done to them.
type fakeServers struct {
	*tape
	n       int
	leaders func() (int, error) // nil: node 0
	cannot  map[string]error
	closed  int
}

func (s fakeServers) Nodes() (list []NodeName) {
	for i := range s.n {
		list = append(list, NodeName{fmt.Sprintf("node-%d", i+1), fmt.Sprintf("10.0.0.%d:1", i+1)})
	}
	return list
}

func (s fakeServers) Leader(context.Context) (int, error) {
	if s.leaders == nil {
		return 0, nil
	}
	return s.leaders()
}

func (s fakeServers) Healthy(context.Context) error           { return s.note("healthy") }
func (s fakeServers) Process(int) Process                     { return nil }
func (s fakeServers) Can(action string) error                 { return s.cannot[action] }
func (s fakeServers) Kill(_ context.Context, n int) error     { return s.note("kill %d", n) }
func (s fakeServers) Restart(_ context.Context, n int) error  { return s.note("restart %d", n) }
func (s fakeServers) Pause(_ context.Context, n int) error    { return s.note("pause %d", n) }
func (s fakeServers) PausedBy() string                        { return "SIGSTOP" }
func (s fakeServers) Resume(_ context.Context, n int) error   { return s.note("resume %d", n) }
func (s fakeServers) FastDisk(_ context.Context, n int) error { return s.note("fast %d", n) }
func (s fakeServers) Move(context.Context) (int, int, error)  { return 0, 1, s.note("move") }

func (s fakeServers) CutLinks(_ context.Context, id string, side []int, r faultnet.Rule) (string, error) {
	return "proxies between servers", s.note("links %s %v %v", id, side, r.CutIn && r.CutOut)
}

func (s fakeServers) LiftLinks(_ context.Context, id string) (faultnet.Effect, error) {
	return faultnet.Effect{HeldBytes: 1}, s.note("join %s", id)
}

func (s fakeServers) CloseClients(_ context.Context, n int) (int, error) {
	return s.closed, s.note("close %d", n)
}

func (s fakeServers) SlowDisk(_ context.Context, n int, by time.Duration) (string, error) {
	return "strace", s.note("slow %d %v", n, by)
}

func (s fakeServers) SetClock(_ context.Context, n int, by time.Duration) (string, error) {
	return "shim", s.note("clock %d %v", n, by)
}

func (s fakeServers) Evict(_ context.Context, n int, key string) (string, error) {
	return "filled", s.note("evict %d %s", n, key)
}

func (s fakeServers) Fill(_ context.Context, n int) (string, error) {
	return "filled", s.note("fill %d", n)
}

func (s fakeServers) Drain(_ context.Context, n int) error { return s.note("drain %d", n) }

func (s fakeServers) Flush(_ context.Context, n int) (string, error) {
	return "FLUSHALL", s.note("flush %d", n)
}

// fakeWires are wires that only write down what is done to them. What a rule
// did is what effects says, in turn, the last of them for ever.
type fakeWires struct {
	*tape
	effects *[]faultnet.Effect
	peers   []string
	applied func(faultnet.Rule)
}

func (w fakeWires) Apply(_ context.Context, id string, clients []uint32, addresses []string, r faultnet.Rule) (string, error) {
	if w.applied != nil {
		w.applied(r)
	}
	return "dialer", w.note("apply %s %v %v", id, clients, addresses)
}

// Lift fails, as the real one does, when its context has ended.
func (w fakeWires) Lift(ctx context.Context, id string) (faultnet.Effect, error) {
	err := w.note("lift %s", id)
	err = errors.Join(err, ctx.Err())
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.effects == nil || len(*w.effects) == 0 {
		return faultnet.Effect{}, err
	}
	e := (*w.effects)[0]
	if len(*w.effects) > 1 {
		*w.effects = (*w.effects)[1:]
	}
	return e, err
}

func (w fakeWires) Peers(context.Context, uint32) ([]string, error) { return w.peers, w.note("peers") }

func (w fakeWires) Skew(_ context.Context, client uint32, by time.Duration) error {
	return w.note("skew %d %v", client, by)
}

// fakeJournal writes to the same tape.
type fakeJournal struct{ *tape }

func (j fakeJournal) Begin(id, what string, stopped ...Process) error {
	return j.note("begin %s: %s, stops %d", id, what, len(stopped))
}
func (j fakeJournal) End(id string) error { return j.note("end %s", id) }

// idleProcess is a process of which only the pid matters.
type idleProcess struct{}

func (idleProcess) PID() int                           { return 4711 }
func (idleProcess) Signal(os.Signal) error             { return os.ErrProcessDone }
func (idleProcess) AwaitStopped(context.Context) error { return os.ErrProcessDone }
func (idleProcess) Done() <-chan struct{}              { return nil }
