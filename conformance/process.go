package conformance

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/supervise"
	"github.com/lockbench/lockbench/internal/worker"
)

// startLimit is how long a client process may take to greet: a test binary
// under the race detector is slow on a busy machine.
const startLimit = 30 * time.Second

// errNoHook says what a program lacks whose processes do not become clients.
var errNoHook = errors.New(`the program does not become a client process when it is started again: add to it

	func TestMain(m *testing.M) {
		conformance.MainIfClient(find) // find func(id string) (impls.Recipe, bool)
		os.Exit(m.Run())
	}

or call conformance.MainIfClient first in main`)

// process is a client process, as the suite sees it.
type process struct {
	*worker.Process[answer]
	// unsure is by how much its stamps may be off, in nanoseconds.
	unsure int64
}

// call is an order on its way, or answered.
type call struct {
	*worker.Call[answer]
	client *remote
	order  order
}

// startProcess starts the running executable once more.
func startProcess(ctx context.Context, run *supervise.Run, s settings) (*process, error) {
	if os.Getenv(envClient) != "" {
		return nil, fmt.Errorf("start a client process from a client process: %w", errNoHook)
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start a client process: %w", err)
	}
	stderr, err := os.CreateTemp(run.Dir(), "client-*.log") // goes with the run's folder
	if err != nil {
		return nil, fmt.Errorf("start a client process: %w", err)
	}
	defer stderr.Close()
	stderrPath := stderr.Name()
	c := supervise.Command{Name: "conformance-client", Path: exe, Env: append(os.Environ(), envClient+"=1"), Stderr: stderr}
	if flag.Lookup("test.run") != nil {
		// A test binary that lacks the hook must not run its tests.
		c.Args = []string{"-test.run=^$"}
	}
	greetings := make(chan answer, 1)
	p := &process{}
	p.Process, err = worker.Start(worker.Options[answer]{
		Run: run, Command: c, Explain: func() string { return lastOutput(stderrPath) },
		OnReport: func(a answer) {
			select {
			case greetings <- a:
			default: // it greets once
			}
		},
	})
	if err != nil {
		return nil, fmt.Errorf("start a client process: %w", err)
	}
	if err := p.greet(ctx, s, greetings); err != nil {
		return nil, errors.Join(fmt.Errorf("start a client process: %w", err), p.Kill())
	}
	return p, nil
}

// greet sends the settings and awaits the greeting.
func (p *process) greet(ctx context.Context, s settings, greetings <-chan answer) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	p.Send(s)
	var greeted answer
	select {
	case greeted = <-greetings:
	case <-p.Gone():
		select {
		case greeted = <-greetings: // it came before the end
		default:
			return errors.Join(errNoHook, p.Failure())
		}
	case <-ctx.Done():
		return fmt.Errorf("no greeting within %v: %w", startLimit, errNoHook)
	}
	switch h := greeted.Hello; {
	case h == nil || h.Greeting != greeting:
		return errNoHook
	case h.Error != "":
		return errors.New(h.Error)
	default:
		p.unsure = h.Unsure
		return nil
	}
}

// lastOutput is the end of what a process wrote to its standard error, such as
// the stack of a panic.
func lastOutput(path string) string {
	const most = 2000
	text, err := os.ReadFile(path)
	if err != nil || len(text) == 0 {
		return ""
	}
	return "; its last output: " + string(text[max(0, len(text)-most):])
}

// remote is a client in a client process.
type remote struct {
	*process
	name string
}

// order sends an order and does not wait.
func (r *remote) order(o order) *call {
	o.Client = r.name
	c := &call{client: r}
	c.Call = r.Process.Call(func(serial uint64) any {
		o.N = serial
		c.order = o
		return o
	})
	return c
}

// begin begins a call of the client, on one key or several, with an attempt of
// its own.
func (r *remote) begin(do verb, limit time.Duration, keys ...string) *call {
	return r.order(order{Do: do, Keys: keys, Attempt: attempt(), Limit: limit})
}

// arm holds the client at the step when it next comes to it, and returns the
// call that is answered once it is there.
func (r *remote) arm(s impls.Step) *call {
	r.order(order{Do: doArm, Step: s})
	return r.order(order{Do: doAt})
}

// goOn lets a client that is held go on.
func (r *remote) goOn() { r.order(order{Do: doGo}) }

// ended reports whether the call was answered, or never will be.
func (c *call) ended() bool {
	select {
	case <-c.Done:
		return true
	default:
		return false
	}
}

// granted reports whether the call was answered by a hold.
func (c *call) granted() bool { return c.ended() && c.Err == nil && c.Reply.ok() }

// hold sends an order about the hold that the call acquired.
func (c *call) hold(do verb, limit time.Duration) *call {
	return c.client.order(order{Do: do, Hold: c.order.N, Keys: c.order.Keys, Limit: limit})
}
