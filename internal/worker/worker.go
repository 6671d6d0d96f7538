// Package worker starts a client process and talks with it, in JSON, one value a
// line: requests on its stdin, replies on its stdout. The load's workers and the
// clients of the conformance suite are such processes. The package knows no
// locks.
//
// It may import supervise and the standard library only.
package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"

	"github.com/lockbench/lockbench/internal/supervise"
)

// ErrGone: the process ended before it answered.
var ErrGone = errors.New("the worker process has ended")

// Reply is what a process writes. Its serial is that of the call that it
// answers, or 0 for a report that was not asked for.
type Reply interface{ ReplyTo() uint64 }

// Options say how to start a process. Run and Command are required.
type Options[R Reply] struct {
	Run     *supervise.Run
	Command supervise.Command
	// OnReport receives the replies that answer no call, one after another.
	OnReport func(R)
	// Explain adds to the error of calls that the process can no longer answer;
	// nil adds nothing.
	Explain func() string
}

// Process is a client process. Its methods are safe for concurrent use.
type Process[R Reply] struct {
	*supervise.Process
	options Options[R]
	gone    chan struct{}
	sending sync.Mutex // held while writing to stdin

	mu     sync.Mutex
	serial uint64
	calls  map[uint64]*Call[R] // without an answer
	broken error               // why the process cannot be talked with
	ended  error               // why no answer will come any more
}

// Call is a request on its way, or answered.
type Call[R Reply] struct {
	Done chan struct{} // closed once Reply or Err is set
	// Reply is the answer; or Err says why there is none.
	Reply R
	Err   error
}

// Start starts a process.
func Start[R Reply](o Options[R]) (*Process[R], error) {
	o.Command.StdinPipe, o.Command.StdoutPipe = true, true
	child, err := o.Run.Start(o.Command)
	if err != nil {
		return nil, err
	}
	p := &Process[R]{Process: child, options: o, gone: make(chan struct{}), calls: map[uint64]*Call[R]{}}
	go p.listen()
	return p, nil
}

// Gone is closed when the process has ended and its last reply was read.
func (p *Process[R]) Gone() <-chan struct{} { return p.gone }

// Failure returns why the process ended; nil if it exited normally.
func (p *Process[R]) Failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.broken != nil {
		return p.broken
	}
	return p.Err()
}

// Send writes a value to the process. It does not fail: that the process is gone
// is noticed by reading. A process reads its first value at once, and later ones
// are shorter than a pipe's buffer, so even a stopped process does not block it.
func (p *Process[R]) Send(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		p.breakOff(fmt.Errorf("write to the worker: %w", err))
		return
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	_, _ = p.Stdin.Write(append(line, '\n'))
}

// Call sends the request that build makes of a new serial, and does not wait for
// the answer.
func (p *Process[R]) Call(build func(serial uint64) any) *Call[R] {
	c := &Call[R]{Done: make(chan struct{})}
	p.mu.Lock()
	p.serial++
	serial := p.serial
	if p.ended != nil {
		c.Err = p.ended
		close(c.Done)
		p.mu.Unlock()
		return c
	}
	p.calls[serial] = c
	p.mu.Unlock()
	p.Send(build(serial))
	return c
}

// Freeze stops the process and returns when every thread of it stands still.
func (p *Process[R]) Freeze(ctx context.Context) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return p.AwaitStopped(ctx)
}

// Resume lets a frozen process go on.
func (p *Process[R]) Resume() error { return p.Signal(syscall.SIGCONT) }

// breakOff kills a process that cannot be talked with.
func (p *Process[R]) breakOff(why error) {
	p.mu.Lock()
	p.broken = why
	p.mu.Unlock()
	_ = p.Kill()
}

// listen reads replies until the process ends.
func (p *Process[R]) listen() {
	defer close(p.gone)
	replies := json.NewDecoder(bufio.NewReader(p.Stdout))
	for {
		var r R
		if err := replies.Decode(&r); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				p.breakOff(fmt.Errorf("its reports cannot be read (does something else print to its stdout?): %w", err))
			}
			break
		}
		if r.ReplyTo() == 0 {
			p.options.OnReport(r)
			continue
		}
		p.mu.Lock()
		if c := p.calls[r.ReplyTo()]; c != nil {
			c.Reply = r
			close(c.Done)
			delete(p.calls, r.ReplyTo())
		}
		p.mu.Unlock()
	}
	<-p.Done()
	_ = p.Stdin.Close()
	_ = p.Stdout.Close()
	why := ErrGone
	if failure := p.Failure(); failure != nil {
		why = fmt.Errorf("%w: %w", ErrGone, failure)
	}
	if p.options.Explain != nil {
		why = fmt.Errorf("%w%s", why, p.options.Explain())
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = why
	for serial, c := range p.calls {
		c.Err = why
		close(c.Done)
		delete(p.calls, serial)
	}
}
