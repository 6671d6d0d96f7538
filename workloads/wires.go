package workloads

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/faultnet"
)

// ErrGone: the worker process that was asked has ended.
var ErrGone = errors.New("the worker process has ended")

// undoLimit is how long is waited for what undoes half a change.
const undoLimit = 2 * time.Second

// parcel is what one worker process has to do with a rule.
type parcel struct {
	to      *member
	clients []uint32
}

// Apply puts a rule between clients and addresses (none: all) under id, in the
// dialers of their worker processes, and returns when it is in force at all of
// them that live. If it cannot be put everywhere it is nowhere, and so it is if
// none of the clients lives: that error is ErrGone.
func (p *Pool) Apply(ctx context.Context, id string, clients []uint32, addresses []string, rule faultnet.Rule) error {
	parcels, err := p.parcels(clients)
	if err != nil {
		return fmt.Errorf("apply %s: %w", id, err)
	}
	p.mu.Lock()
	if _, taken := p.rules[id]; taken {
		p.mu.Unlock()
		return fmt.Errorf("apply %s: a rule of that name is in force", id)
	}
	p.rules[id] = parcels
	p.mu.Unlock()
	answers := all(ctx, parcels, errand{Apply: &rule, Rule: id, Addresses: addresses})
	var failed, gone []error
	for _, a := range answers {
		switch {
		case errors.Is(a.err, ErrGone):
			gone = append(gone, a.err)
		case a.err != nil:
			failed = append(failed, a.err)
		}
	}
	switch {
	case len(gone) == len(parcels):
		failed = gone
	case len(failed) == 0:
		return nil
	}
	// What was not answered in time is done all the same, but in order: what
	// lifts it comes after it.
	undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
	defer cancel()
	_, err = p.Lift(undo, id)
	return fmt.Errorf("apply %s: %w", id, errors.Join(append(failed, err)...))
}

// Lift takes away what Apply put under id, if anything, and tells what it did,
// as far as the clients live to tell. The error tells of those that do not
// answer, as one does that is stopped: they will lift it when they go on.
func (p *Pool) Lift(ctx context.Context, id string) (faultnet.Effect, error) {
	p.mu.Lock()
	parcels := p.rules[id]
	delete(p.rules, id)
	p.mu.Unlock()
	var sum faultnet.Effect
	var errs []error
	for _, a := range all(ctx, parcels, errand{Lift: true, Rule: id}) {
		sum.Add(a.Effect)
		if a.err != nil && !errors.Is(a.err, ErrGone) {
			errs = append(errs, a.err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return sum, fmt.Errorf("lift %s: %w", id, err)
	}
	return sum, nil
}

// Peers lists the addresses that a client is connected to now, as it knows
// them, sorted.
func (p *Pool) Peers(ctx context.Context, client uint32) ([]string, error) {
	a, err := p.one(ctx, client, errand{Peers: true})
	if err != nil {
		return nil, fmt.Errorf("ask whom client %d is connected to: %w", client, err)
	}
	return a.Peers, nil
}

// Skew sets a client's clock ahead by so much (behind if negative) of the
// machine's. What is recorded keeps to the machine's.
func (p *Pool) Skew(ctx context.Context, client uint32, by time.Duration) error {
	if _, err := p.one(ctx, client, errand{Skew: &by}); err != nil {
		return fmt.Errorf("set the clock of client %d: %w", client, err)
	}
	return nil
}

func (p *Pool) one(ctx context.Context, client uint32, e errand) (answer, error) {
	parcels, err := p.parcels([]uint32{client})
	if err != nil {
		return answer{}, err
	}
	got := all(ctx, parcels, e)[0]
	return got.answer, got.err
}

// parcels lays clients out over the processes that host them.
func (p *Pool) parcels(clients []uint32) ([]parcel, error) {
	var list []parcel
	for _, c := range clients {
		m := p.host[c]
		if m == nil {
			return nil, fmt.Errorf("no process hosts client %d", c)
		}
		i := slices.IndexFunc(list, func(x parcel) bool { return x.to == m })
		if i < 0 {
			i, list = len(list), append(list, parcel{to: m})
		}
		list[i].clients = append(list[i].clients, c)
	}
	if len(list) == 0 {
		return nil, errors.New("it names no client")
	}
	return list, nil
}

type answered struct {
	answer
	err error
}

// all sends an errand to every process of parcels at once, and waits for their
// answers.
func all(ctx context.Context, parcels []parcel, e errand) []answered {
	list := make([]answered, len(parcels))
	channels := make([]<-chan answer, len(parcels))
	serials := make([]uint64, len(parcels))
	for i, p := range parcels {
		e.Clients = p.clients
		serials[i], channels[i] = p.to.ask(e)
	}
	for i, p := range parcels {
		list[i].answer, list[i].err = p.to.await(ctx, serials[i], channels[i])
	}
	return list
}

// ask sends an errand; the answer comes through the channel, if ever.
func (m *member) ask(e errand) (serial uint64, reply <-chan answer) {
	ch := make(chan answer, 1)
	m.mu.Lock()
	m.serial++
	e.Serial = m.serial
	m.waiting[e.Serial] = ch
	m.mu.Unlock()
	m.send(order{Errand: &e})
	return e.Serial, ch
}

// answered passes an answer on to whoever waits for it still.
func (m *member) answered(a answer) {
	m.mu.Lock()
	ch := m.waiting[a.Serial]
	delete(m.waiting, a.Serial)
	m.mu.Unlock()
	if ch != nil {
		ch <- a // it has room
	}
}

func (m *member) await(ctx context.Context, serial uint64, reply <-chan answer) (answer, error) {
	var a answer
	select {
	case a = <-reply:
	case <-m.gone:
		select {
		case a = <-reply: // its last word
		default:
			return a, fmt.Errorf("worker %d: %w", m.spec.Worker, ErrGone)
		}
	case <-ctx.Done():
		m.mu.Lock()
		delete(m.waiting, serial)
		m.mu.Unlock()
		return a, fmt.Errorf("worker %d (pid %d) does not answer (is it stopped?): %w", m.spec.Worker, m.proc.PID(), ctx.Err())
	}
	if a.Error != "" {
		return a, fmt.Errorf("worker %d: %s", m.spec.Worker, a.Error)
	}
	return a, nil
}
