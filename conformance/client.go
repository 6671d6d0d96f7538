package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
)

// MainIfClient turns a process that the suite started into one of clients, and
// does not return then; in any other process it does nothing. The suite starts
// the running executable again, so call it first in main, or, for go test:
//
//	func TestMain(m *testing.M) {
//		conformance.MainIfClient(mylock.Find)
//		os.Exit(m.Run())
//	}
//
// Find returns the recipe with an id. Recipes are code, so that what a client
// process cannot find by its id it cannot open.
func MainIfClient(find func(id string) (impls.Recipe, bool)) {
	if os.Getenv(envClient) == "" {
		return
	}
	if err := serve(os.Stdin, os.Stdout, find); err != nil {
		fmt.Fprintln(os.Stderr, "conformance client:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// host is a process of clients.
type host struct {
	recipe impls.Recipe
	cfg    impls.Config
	clock  history.Clock

	writing sync.Mutex
	out     *json.Encoder

	members map[string]*member // used by the reader of orders alone
}

// serve carries out orders until the input ends, as it does when the suite's
// process does.
func serve(in io.Reader, out io.Writer, find func(string) (impls.Recipe, bool)) error {
	h := &host{clock: history.NewClock(), out: json.NewEncoder(out), members: map[string]*member{}}
	orders := json.NewDecoder(bufio.NewReader(in))
	var s settings
	if err := orders.Decode(&s); err != nil {
		return fmt.Errorf("read the settings: %w", err)
	}
	say := hello{Greeting: greeting, Unsure: h.clock.Uncertainty()}
	r, ok := find(s.Recipe)
	if !ok {
		say.Error = fmt.Sprintf("the function given to conformance.MainIfClient does not find the recipe %q", s.Recipe)
	}
	if err := h.out.Encode(answer{Hello: &say}); err != nil || !ok {
		return err
	}
	h.recipe = r
	h.cfg = impls.Config{Addresses: s.Addresses, Topology: s.Topology, Directory: s.Directory, Account: s.Account, TTL: s.TTL, Timeout: s.Timeout,
		Dial: new(net.Dialer).DialContext, Clock: impls.SystemClock()}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for {
		var o order
		if err := orders.Decode(&o); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("read an order: %w", err)
		}
		h.take(ctx, o)
	}
}

// take hands an order to its client, or carries it out beside the client's
// calls.
func (h *host) take(ctx context.Context, o order) {
	m := h.members[o.Client]
	if m == nil {
		m = &member{host: h, gate: newGate(), orders: make(chan order, 64), holds: map[uint64]*holding{}}
		h.members[o.Client] = m
		go m.run(ctx)
	}
	switch o.Do {
	case doArm:
		m.gate.arm(o.Step)
	case doGo:
		m.gate.release()
	case doCancel:
		m.cancelCall()
	case doNetwork:
		if err := m.setNetwork(o.Network); err != nil {
			h.reply(answer{N: o.N, Error: err.Error()})
			return
		}
	case doSteps:
		h.reply(answer{N: o.N, Steps: m.gate.steps()})
		return
	case doAt:
		held := m.gate.held()
		go func() {
			<-held
			h.reply(answer{N: o.N, Returned: h.clock.Now()})
		}()
		return
	case doReach:
		go func() {
			if m.gate.await(ctx, o.Step, o.Count) == nil {
				h.reply(answer{N: o.N, Returned: h.clock.Now()})
			}
		}()
		return
	case doLost:
		held := m.hold(o.Hold)
		if held == nil || held.Lost() == nil {
			h.reply(answer{N: o.N, Unsupported: true})
			return
		}
		go func() {
			<-held.Lost()
			h.reply(answer{N: o.N, Returned: h.clock.Now()})
		}()
		return
	default:
		m.orders <- o
		return
	}
	h.reply(answer{N: o.N})
}

// reply writes an answer. If it cannot be written the reader is gone: the
// input ends too, and with it the process.
func (h *host) reply(a answer) {
	h.writing.Lock()
	defer h.writing.Unlock()
	_ = h.out.Encode(a)
}

// member is one client, whose calls run one after another.
type member struct {
	*host
	gate   *gate
	orders chan order
	client impls.Client // nil until it is open

	mu      sync.Mutex
	network *network // nil: it has plain connections
	holds   map[uint64]*holding
	cancel  context.CancelFunc // of the call under way
}

// holding is a hold and when it was reported lost.
type holding struct {
	impls.Hold
	mu   sync.Mutex
	lost int64
}

func (m *member) hold(n uint64) *holding {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.holds[n]
}

func (m *member) setNetwork(s state) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.network == nil {
		return errors.New("the client has no network of its own")
	}
	return m.network.set(s)
}

func (m *member) cancelCall() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cancel != nil {
		m.cancel()
	}
}

func (m *member) run(ctx context.Context) {
	for o := range m.orders {
		call, cancel := context.WithCancel(ctx)
		if o.Limit > 0 {
			call, cancel = context.WithTimeout(ctx, o.Limit)
		}
		m.mu.Lock()
		m.cancel = cancel
		m.mu.Unlock()
		m.gate.begin()
		a := answer{N: o.N, Sent: m.clock.Now()}
		m.carryOut(call, o, &a)
		if a.Returned == 0 {
			a.Returned = m.clock.Now()
		}
		a.Passed = m.gate.since()
		m.reply(a)
		cancel()
	}
}

// note keeps a new hold, and listens to its loss.
func (m *member) note(o order, h impls.Hold) *holding {
	held := &holding{Hold: h}
	m.mu.Lock()
	m.holds[o.N] = held
	m.mu.Unlock()
	if lost := h.Lost(); lost != nil {
		go func() {
			<-lost
			at := m.clock.Now()
			held.mu.Lock()
			held.lost = at
			held.mu.Unlock()
		}()
	}
	return held
}

// show describes a hold in an answer.
func (m *member) show(h *holding, a *answer) {
	a.Signals = h.Hold.Lost() != nil
	if end := h.LeaseEnd(); !end.IsZero() {
		a.LeaseEnd = m.clock.At(end)
	}
	h.mu.Lock()
	a.Lost = h.lost
	h.mu.Unlock()
}

// open opens the client, with waits that are short, so that the suite is.
func (m *member) open(ctx context.Context, proxied bool) error {
	if m.client != nil {
		return fmt.Errorf("the client is open already")
	}
	cfg := m.cfg
	cfg.Steps = m.gate
	if proxied {
		n, err := newNetwork()
		if err != nil {
			return err
		}
		m.mu.Lock()
		m.network = n // until the process ends
		m.mu.Unlock()
		cfg.Dial = n.dial()
	}
	cfg.Wait = shortWaits()
	c, err := impls.OpenPatiently(ctx, m.recipe, cfg)
	if err != nil {
		return err
	}
	m.client = c
	return nil
}

// shortWaits is the wait policy of the suite's clients.
func shortWaits() impls.WaitPolicy {
	return impls.NewUniform(time.Millisecond, 3*time.Millisecond, uint64(time.Now().UnixNano()))
}
