package workloads

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
	"github.com/lockbench/lockbench/internal/worker"
)

// PoolOptions say how the worker processes are started. Run, Command and Specs
// are required.
type PoolOptions struct {
	Run     *supervise.Run
	Command []string // the program and arguments that start a worker process
	Env     []string // nil: the controller's; the mark of a worker is added either way
	Specs   []Spec   // one per process
	Log     *os.File // what the workers write to stderr; nil: thrown away
}

// Pool is the worker processes of one scenario. Its methods are safe for
// concurrent use; Go and Wait are meant to be called once, in this order, Stop
// at any time, and the rest until Wait has returned.
type Pool struct {
	members []*member
	host    map[uint32]*member
}

// StartPool starts all worker processes side by side and returns when every
// client of every worker is connected and ready. If one fails, or ctx ends
// first, all are ended and the error names which failed and why.
func StartPool(ctx context.Context, o PoolOptions) (*Pool, error) {
	if len(o.Command) == 0 || len(o.Specs) == 0 {
		return nil, errors.New("start the workers: no command, or no worker to start")
	}
	path, err := filepath.Abs(o.Command[0])
	if err != nil {
		return nil, fmt.Errorf("start the workers: %w", err)
	}
	env := o.Env
	if env == nil {
		env = os.Environ()
	}
	env = append(env[:len(env):len(env)], EnvWorker+"=1")
	p := &Pool{host: map[uint32]*member{}}
	for _, spec := range o.Specs {
		if err := checkShare(spec); err != nil {
			p.kill()
			return nil, err
		}
		m, err := startMember(o, path, env, spec)
		if err != nil {
			p.kill()
			return nil, err
		}
		p.members = append(p.members, m)
		for _, c := range spec.Clients {
			p.host[c] = m
		}
	}
	var errs []error
	for _, m := range p.members {
		select {
		case <-m.ready:
		case <-m.Gone():
			errs = append(errs, fmt.Errorf("worker %d did not get ready: %w", m.spec.Worker, m.failure()))
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("worker %d is not ready: %w", m.spec.Worker, ctx.Err()))
		}
		if len(errs) == 3 {
			break // the others say the same
		}
	}
	if len(errs) > 0 {
		p.kill()
		return nil, errors.Join(errs...)
	}
	return p, nil
}

// Go lets the load begin. The three stamps are CLOCK_MONOTONIC, as a
// history.Clock gives them: the first call, the beginning of the measured
// window, and its end. A worker that is dead by now is no error here: Wait
// reports it.
func (p *Pool) Go(start, windowStart, end int64) error {
	if start > windowStart || windowStart >= end {
		return fmt.Errorf("start the load: the window [%d, %d) after a start at %d is none", windowStart, end, start)
	}
	for _, m := range p.members {
		m.Send(order{Go: &window{Start: start, WindowStart: windowStart, End: end}})
	}
	return nil
}

// Wait returns when every worker has ended, with one sample each, by worker. A
// worker that died, or was still there when ctx ended (it is killed then), is
// a sample with an Error. The error is for failures of the pool itself.
func (p *Pool) Wait(ctx context.Context) ([]scenario.WorkerSample, error) {
	samples := make([]scenario.WorkerSample, 0, len(p.members))
	var errs []error
	for _, m := range p.members {
		late := false
		select {
		case <-m.Gone():
		case <-ctx.Done():
			late = true
			if err := m.Kill(); err != nil {
				errs = append(errs, err) // nothing more will come of it
			} else {
				<-m.Gone()
			}
		}
		samples = append(samples, m.sample(late))
	}
	return samples, errors.Join(errs...)
}

// Stop ends the load early: the workers stop acquiring, leave their locks, seal
// their files and report. It does not wait for that; Wait does.
func (p *Pool) Stop() {
	for _, m := range p.members {
		m.Send(order{Stop: true})
	}
}

// Process is the process that hosts the client, or nil if none does.
func (p *Pool) Process(client uint32) *supervise.Process {
	if m := p.host[client]; m != nil {
		return m.Process.Process
	}
	return nil
}

// Hosted lists the clients in the process of the client, itself included:
// whatever hits that process hits all of them.
func (p *Pool) Hosted(client uint32) []uint32 {
	if m := p.host[client]; m != nil {
		return slices.Clone(m.spec.Clients)
	}
	return nil
}

// kill ends every worker at once, because the pool did not come to be.
func (p *Pool) kill() {
	var wg sync.WaitGroup
	for _, m := range p.members {
		wg.Go(func() {
			if m.Kill() == nil { // a process that will not die is the run's to report
				<-m.Gone()
			}
		})
	}
	wg.Wait()
}

// member is one worker process as the controller sees it.
type member struct {
	*worker.Process[report]
	spec  Spec
	ready chan struct{} // closed when its clients are ready

	mu     sync.Mutex
	report report // the last one
}

func startMember(o PoolOptions, path string, env []string, spec Spec) (*member, error) {
	m := &member{spec: spec, ready: make(chan struct{})}
	command := supervise.Command{Name: fmt.Sprintf("worker %d", spec.Worker), Path: path, Args: o.Command[1:], Env: env, Stderr: o.Log}
	var err error
	m.Process, err = worker.Start(worker.Options[report]{Run: o.Run, Command: command, OnReport: m.received})
	if err != nil {
		return nil, err
	}
	go m.Send(order{Spec: &spec}) // it may exceed a pipe's buffer; the next order waits for the answer
	return m, nil
}

// received keeps a report that answers no command.
func (m *member) received(r report) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.Ready && !m.report.Ready {
		close(m.ready)
	}
	m.report = r
	m.report.Ready = true
}

// failure returns why the worker ended, in its own report if there is one.
func (m *member) failure() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.report.Error != "" {
		return errors.New(m.report.Error)
	}
	if err := m.Failure(); err != nil {
		return fmt.Errorf("%w; see the workers' log", err)
	}
	return errors.New("it exited without a report; see the workers' log")
}

func (m *member) sample(late bool) scenario.WorkerSample {
	m.mu.Lock()
	done := m.report.Sample
	m.mu.Unlock()
	s := scenario.WorkerSample{}
	if done != nil {
		s = *done
	}
	s.PID, s.Clients = m.PID(), m.spec.Clients
	switch {
	case late:
		s.Error = "it did not end in time and was killed"
	case done == nil:
		s.Error = m.failure().Error()
	case s.Error == "" && m.Err() != nil:
		s.Error = "after its report: " + m.Err().Error()
	}
	return s
}
