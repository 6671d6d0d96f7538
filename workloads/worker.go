package workloads

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// ErrOrphan: the controller is gone, and the worker stopped where it was.
var ErrOrphan = errors.New("the controller is gone")

// Main is a worker process: it reads its Spec from stdin, opens the clients
// of the recipe that find returns, reports that it is ready, and carries out the
// controller's orders. Reports go to stdout, which nothing else may write to.
// It returns nil after the load has ended, by itself or by order, and its
// files are sealed.
//
// When stdin ends, the controller is gone and Main returns ErrOrphan at once,
// while clients may still be in the middle of a call: the process should exit.
// When ctx ends, the load ends as if the controller had ordered it.
func Main(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, find func(id string) (impls.Recipe, bool)) error {
	out := json.NewEncoder(stdout)
	fail := func(err error) error {
		// The pipe may be broken for the same reason; stderr is the log.
		_ = out.Encode(report{Error: err.Error()})
		fmt.Fprintf(stderr, "worker %d: %v\n", os.Getpid(), err)
		return err
	}
	orders := json.NewDecoder(bufio.NewReader(stdin))
	var first order
	switch err := orders.Decode(&first); {
	case err != nil:
		return fail(fmt.Errorf("read the specification from stdin (a worker is started by lockbench itself, not by hand): %w", err))
	case first.Spec == nil:
		return fail(errors.New("the first order on stdin is no specification"))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	inbox := make(chan order)
	orphaned := make(chan struct{})
	go func() {
		defer close(orphaned)
		for {
			var o order
			if orders.Decode(&o) != nil {
				return
			}
			select {
			case inbox <- o:
			case <-ctx.Done():
				return
			}
		}
	}()

	type opened struct {
		w   *host
		err error
	}
	opening := make(chan opened, 1)
	openCtx, stopOpening := context.WithCancel(ctx)
	defer stopOpening()
	go func() {
		w, err := openWorker(openCtx, *first.Spec, find)
		opening <- opened{w, err}
	}()
	var w *host
	select {
	case o := <-opening:
		if o.err != nil {
			return fail(o.err)
		}
		w = o.w
	case <-orphaned:
		return fail(ErrOrphan)
	}
	if err := out.Encode(report{Ready: true}); err != nil {
		return fail(fmt.Errorf("say that the clients are ready: %w", err))
	}

	var done, closed chan struct{}
	leave := func() {
		if closed == nil {
			closed = make(chan struct{})
			go func() {
				defer close(closed)
				w.close()
			}()
		}
	}
	ended := ctx.Done()
	for {
		select {
		case o := <-inbox:
			switch {
			case o.Command != nil:
				if err := out.Encode(report{Answer: w.carryOut(*o.Command)}); err != nil {
					return fail(fmt.Errorf("answer: %w", err))
				}
			case o.Go != nil && done == nil && closed == nil:
				done = make(chan struct{})
				w.load.begin(*o.Go)
				go func() {
					defer close(done)
					w.run()
				}()
			case o.Stop && done == nil:
				leave()
			case o.Stop:
				w.load.stop()
			}
		case <-ended:
			ended = nil
			if done == nil {
				leave()
			} else {
				w.load.stop()
			}
		case <-done:
			done = nil
			leave()
		case <-closed:
			if err := out.Encode(report{Sample: &w.sample}); err != nil {
				return fail(fmt.Errorf("report: %w", err))
			}
			return nil
		case <-orphaned:
			return fail(ErrOrphan)
		}
	}
}

// MainIfWorker is for the TestMain of packages whose tests start worker
// processes from their own test binary: if this process was started as a
// worker, it runs Main and exits; otherwise it returns at once.
func MainIfWorker(find func(id string) (impls.Recipe, bool)) {
	if os.Getenv(EnvWorker) != "1" {
		return
	}
	stdout := os.Stdout
	os.Stdout = os.Stderr // no print may come between the reports
	if err := Main(context.Background(), os.Stdin, stdout, os.Stderr, find); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// load is what the clients of a worker have in common.
type load struct {
	spec      Spec
	clock     history.Clock
	system    impls.Clock
	keys      *keyChooser
	shared    *impls.Shared // nil: each client has connections of its own
	pacer     *pacer        // nil: closed loop
	callLimit time.Duration // of one clean-up or late release, all its requests together
	phases    *phases
	packer    *history.Packer
	start     int64

	quit     chan struct{} // closed when the load is stopped before its end
	quitOnce sync.Once
	acquires context.Context // parent of all acquires
	cancel   context.CancelFunc
}

// begin sets the times; it comes before any client runs.
func (l *load) begin(w window) {
	l.start = w.Start
	l.phases.windowStart = w.WindowStart
	l.phases.end.Store(w.End)
}

// stop ends the load now, if it has not ended.
func (l *load) stop() {
	l.quitOnce.Do(func() {
		l.phases.end.Store(min(l.phases.end.Load(), l.clock.Now()))
		close(l.quit)
		l.cancel()
	})
}

// closeShared closes what the clients shared, after them.
func (l *load) closeShared() error {
	if l.shared == nil {
		return nil
	}
	return l.shared.Close()
}

// host is all of a worker process.
type host struct {
	load    *load
	clients []*client
	sample  scenario.WorkerSample
	errs    []error
}

// run lets the clients work until all have left their locks.
func (w *host) run() {
	var wg, meters sync.WaitGroup
	finished := make(chan struct{})
	meters.Go(func() { w.sample.CPUNS = w.load.cpuWithin(finished) })
	meters.Go(func() { w.sample.Stalls = w.load.stalls(finished) })
	if p := w.load.pacer; p != nil {
		meters.Go(func() { p.run(w.load.start, w.load.quit) })
	}
	end := w.load.clock.Time(w.load.phases.end.Load())
	leave := w.load.spec.Scenario.TTL.D() + leavePatience
	for _, c := range w.clients {
		var cancelA, cancelR context.CancelFunc
		c.acquireCtx, cancelA = context.WithDeadline(w.load.acquires, end.Add(grace))
		c.releaseCtx, cancelR = context.WithDeadline(context.Background(), end.Add(leave))
		wg.Go(func() {
			defer cancelA()
			defer cancelR()
			c.run()
		})
	}
	wg.Wait()
	close(finished)
	meters.Wait()
}

// cpuWithin waits for both ends of the window and answers the CPU time spent
// between them; the load may be stopped before, or its clients all be gone.
func (l *load) cpuWithin(finished <-chan struct{}) int64 {
	wait := func(stamp int64) {
		t := time.NewTimer(time.Duration(stamp - l.clock.Now()))
		defer t.Stop()
		select {
		case <-t.C:
		case <-l.quit:
		case <-finished:
		}
	}
	wait(l.phases.windowStart)
	before := cpuTime()
	if l.phases.end.Load() <= l.phases.windowStart {
		return 0 // stopped in the warm-up
	}
	wait(l.phases.end.Load())
	return int64(cpuTime() - before)
}

// close seals the files, closes the clients, and completes the sample.
func (w *host) close() {
	var wg sync.WaitGroup
	errs := make([]error, len(w.clients))
	for i, c := range w.clients {
		wg.Go(func() { errs[i] = c.close() })
	}
	wg.Wait()
	w.errs = append(w.errs, errs...)
	w.load.packer.Close()
	// The board stays mapped until the process ends: what renews a lease may
	// come to its step still, in a driver that ends in the background.
	w.errs = append(w.errs, w.load.closeShared())
	w.load.cancel()

	s := &w.sample
	s.PID, s.Clients = os.Getpid(), w.load.spec.Clients
	s.MaxRSSB = maxRSS()
	s.Steps = map[string]int64{}
	for _, c := range w.clients {
		c.steps.add(s.Steps)
		s.Errors = append(s.Errors, c.errors...)
	}
	s.ClockUncertaintyNS = w.load.clock.Uncertainty()
	if p := w.load.pacer; p != nil {
		p.book.fill(s)
		s.PacerLateP99NS = p.late.ValueAtQuantile(99)
	}
	if err := errors.Join(w.errs...); err != nil {
		s.Error = err.Error()
	}
}

// nonce makes this process's attempts differ from those of every other.
func nonce() uint64 {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return binary.LittleEndian.Uint64(b[:])
}
