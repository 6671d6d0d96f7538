package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/supervise"
)

// startLimit is how long a client process may take to greet: a test binary
// under the race detector on a busy machine takes its time.
const startLimit = 30 * time.Second

// errNoHook tells what a program lacks whose processes do not become clients.
var errNoHook = errors.New(`the program does not become a client process when it is started again: add to it

	func TestMain(m *testing.M) {
		conformance.MainIfClient(find) // find func(id string) (impls.Recipe, bool)
		os.Exit(m.Run())
	}

or call conformance.MainIfClient first in main`)

// process is a client process, as the suite sees it.
type process struct {
	child *supervise.Process
	words string // the file of its error output
	// unsure is by how much its stamps may be off, in nanoseconds.
	unsure int64

	writing sync.Mutex
	orders  *json.Encoder

	mu      sync.Mutex
	n       int
	waiting map[int]*call
	ended   error // why no answer will come any more
}

// call is an order on its way, or answered.
type call struct {
	client *remote
	order  order
	// done is closed when it was answered, or can be answered no more.
	done chan struct{}
	got  answer
	err  error // no answer came, and why
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
	words, err := os.CreateTemp(run.Dir(), "client-*.log") // goes with the run's folder
	if err != nil {
		return nil, fmt.Errorf("start a client process: %w", err)
	}
	defer words.Close()
	c := supervise.Command{Name: "conformance-client", Path: exe, Env: append(os.Environ(), envClient+"=1"),
		StdinPipe: true, StdoutPipe: true, Stderr: words}
	if flag.Lookup("test.run") != nil {
		// A test binary that lacks the hook must not run its tests.
		c.Args = []string{"-test.run=^$"}
	}
	child, err := run.Start(c)
	if err != nil {
		return nil, fmt.Errorf("start a client process: %w", err)
	}
	p := &process{child: child, words: words.Name(), orders: json.NewEncoder(child.Stdin), waiting: map[int]*call{}}
	if err := p.greet(ctx, s); err != nil {
		return nil, errors.Join(fmt.Errorf("start a client process: %w", err), child.Kill())
	}
	return p, nil
}

// greet sends the settings and awaits the greeting, then has answers read.
func (p *process) greet(ctx context.Context, s settings) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := p.orders.Encode(s); err != nil {
		return fmt.Errorf("%w (%w)", errNoHook, err)
	}
	lines := bufio.NewReader(p.child.Stdout)
	said := make(chan error, 1)
	go func() {
		line, err := lines.ReadBytes('\n')
		var h hello
		if jsonErr := json.Unmarshal(line, &h); jsonErr != nil || h.Greeting != greeting {
			said <- errors.Join(errNoHook, err)
			return
		}
		if h.Error != "" {
			said <- errors.New(h.Error)
			return
		}
		p.unsure = h.Unsure
		said <- nil
		p.listen(json.NewDecoder(lines))
	}()
	select {
	case err := <-said:
		return err
	case <-ctx.Done():
		return fmt.Errorf("no greeting within %v: %w", startLimit, errNoHook)
	}
}

// listen hands answers to who waits for them, until the process ends.
func (p *process) listen(answers *json.Decoder) {
	for {
		var a answer
		err := answers.Decode(&a)
		last := ""
		if err != nil {
			last = p.lastWords()
		}
		p.mu.Lock()
		if err != nil {
			p.ended = fmt.Errorf("the client process ended: %w%s", err, last)
			for n, c := range p.waiting {
				c.err = p.ended
				close(c.done)
				delete(p.waiting, n)
			}
			p.mu.Unlock()
			p.child.Stdin.Close()
			p.child.Stdout.Close()
			return
		}
		if c := p.waiting[a.N]; c != nil {
			c.got = a
			close(c.done)
			delete(p.waiting, a.N)
		}
		p.mu.Unlock()
	}
}

// lastWords is the end of what the process wrote to its error output, such as
// why it crashed.
func (p *process) lastWords() string {
	const most = 2000
	text, err := os.ReadFile(p.words)
	if err != nil || len(text) == 0 {
		return ""
	}
	return "; its last words: " + string(text[max(0, len(text)-most):])
}

// send sends an order and does not wait.
func (p *process) send(client *remote, o order) *call {
	p.mu.Lock()
	p.n++
	o.N = p.n
	c := &call{client: client, order: o, done: make(chan struct{})}
	if p.ended != nil {
		c.err = p.ended
		close(c.done)
		p.mu.Unlock()
		return c
	}
	p.waiting[o.N] = c
	p.mu.Unlock()
	p.writing.Lock()
	defer p.writing.Unlock()
	// A process that has ended reads nothing: then its output ends too, and
	// the call with it.
	_ = p.orders.Encode(o)
	return c
}

// stop stops the process, as if its machine stood still, and returns when it
// does.
func (p *process) stop(ctx context.Context) error {
	if err := p.child.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		st, err := p.child.State()
		if err != nil {
			return fmt.Errorf("look at a stopped client process: %w", err)
		}
		if st == 'T' {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// resume lets it go on.
func (p *process) resume() error { return p.child.Signal(syscall.SIGCONT) }

// kill ends the process without a word to anybody.
func (p *process) kill() error { return p.child.Kill() }

// remote is a client in a client process.
type remote struct {
	*process
	name string
}

func (r *remote) order(o order) *call {
	o.Client = r.name
	return r.send(r, o)
}

// begin begins a call of the client, on one key or several, with an attempt of
// its own.
func (r *remote) begin(do verb, limit time.Duration, keys ...string) *call {
	return r.order(order{Do: do, Keys: keys, Attempt: attempt(), Limit: limit})
}

// arm has the client held at the step when it next comes to it, and returns
// the call that is answered once it is.
func (r *remote) arm(s impls.Step) *call {
	r.order(order{Do: doArm, Step: s})
	return r.order(order{Do: doAt})
}

// goOn lets a client that is held go on.
func (r *remote) goOn() { r.order(order{Do: doGo}) }

// ended reports whether the call was answered, or never will be.
func (c *call) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// granted reports whether the call was answered by a hold.
func (c *call) granted() bool { return c.ended() && c.err == nil && c.got.ok() }

// hold asks for something about the hold that the call acquired.
func (c *call) hold(do verb, limit time.Duration) *call {
	return c.client.order(order{Do: do, Hold: c.order.N, Keys: c.order.Keys, Limit: limit})
}
