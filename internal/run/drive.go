package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/workloads"
)

// tick is how often progress is reported and the end of the run is looked for.
const tick = 200 * time.Millisecond

// stage holds the servers, clients and network of a scenario.
type stage struct {
	servers servers
	pool    *workloads.Pool
	board   *workloads.Board
	network *clientNetwork
	keys    []string
}

// schedule is the scenario's faults, for the window.
func (r *runner) schedule(sc scenario.Scenario, s stage, log *chaos.Log, window, end int64) chaos.Schedule {
	schedule := chaos.Schedule{
		Faults: sc.Faults, Seed: sc.Seed, TTL: sc.TTL.D(), Start: window, End: end,
		Clock: r.clock, Clients: boardClients{s.board, s.pool, sc.Clients}, Gate: r.gate(sc, s.board), Log: log,
		Wires: s.network, Journal: runJournal{r.sup, sc.Name}, Keys: s.keys,
		Takeover: sc.Workload.Kind == scenario.Takeover,
	}
	if r.InForce != nil {
		schedule.InForce = func(fault string, inForce bool) { r.InForce(sc, fault, inForce) }
	}
	switch { // a nil *Cluster would be a non-nil interface
	case s.servers.cluster != nil:
		schedule.Servers = clusterServers{s.servers.cluster}
	case s.servers.external != nil:
		schedule.Servers = externalServers{s.servers.external}
	}
	return schedule
}

// drive lets the load run: it starts the clients, samples the servers at both
// ends of the window, carries out the faults, and waits for the workers.
func (r *runner) drive(ctx context.Context, sc scenario.Scenario, s stage, dir string) (scenario.Samples, error) {
	faults, err := chaos.CreateLog(filepath.Join(dir, scenario.FileFaults), r.clock)
	if err != nil {
		s.pool.Stop()
		return scenario.Samples{}, err
	}
	defer faults.Close()

	now := time.Now() // of both clocks
	start := r.clock.At(now) + int64(settle)
	window := start + int64(sc.Warmup)
	end := window + int64(sc.Duration)
	if err := s.pool.Go(start, window, end); err != nil {
		return scenario.Samples{}, fmt.Errorf("start the load: %w", err)
	}

	// Faults and progress end with the load. The sampler reads the servers once
	// more when the load has ended, so it is waited for; an interruption stops it.
	during, cancel := context.WithCancel(ctx)
	defer cancel()
	var stopped atomic.Int64
	stop := func() {
		stopped.Store(r.clock.Now())
		cancel() // heal first: a stopped worker cannot read the order to stop
		s.pool.Stop()
	}
	var (
		wg       sync.WaitGroup
		sampling sync.WaitGroup
		sampler  = sampler{servers: s.servers, clock: r.clock}
		kills    []chaos.Kill
		faultErr error
	)
	sampling.Go(func() { sampler.run(ctx, during, window, end) })
	wg.Go(func() {
		kills, faultErr = r.schedule(sc, s, faults, window, end).Run(during)
	})
	var doubleHolds atomic.Int64
	wg.Go(func() { r.reportProgress(during, sc, s.board, &doubleHolds, start, end, stop) })
	wg.Go(func() { r.watch(during, sc, boardClients{s.board, s.pool, sc.Clients}, window, &doubleHolds) })
	if r.Calls != nil {
		wg.Go(func() { r.follow(during, sc, filepath.Join(dir, scenario.DirClients)) })
	}

	// A worker ends the load by itself; how long it may then take to leave its
	// locks depends on the lease, for the clean-up of an unknown acquire waits
	// for it.
	patience := time.Duration(end-r.clock.Now()) + 2*sc.TTL.D() + sc.LockDelay.D() + 4*sc.Timeout.D() + 15*time.Second
	waitCtx, stopWaiting := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stopWaiting()
	interrupted := context.AfterFunc(ctx, stop)
	defer interrupted()
	workers, err := s.pool.Wait(waitCtx)
	actualEnd := end
	if at := stopped.Load(); at != 0 {
		actualEnd = min(end, at)
	}
	cancel()
	wg.Wait()
	sampling.Wait()

	markKilled(workers, kills)
	samples := scenario.Samples{Start: window, End: max(actualEnd, window), Workers: workers, Servers: sampler.growth, CountedFrom: sampler.from, CountedTo: sampler.to, BusyCPU: sampler.used, OthersCPU: sampler.others}
	samples.WindowAt = now.Add(settle + sc.Warmup.D()).UTC()
	samples.ClockUncertaintyNS = r.clock.Uncertainty()
	for _, w := range workers {
		samples.ClockUncertaintyNS = max(samples.ClockUncertaintyNS, w.ClockUncertaintyNS)
	}
	samples.Shared = sampler.why
	return samples, errors.Join(err, faultErr)
}

// reportProgress reports progress until ctx ends, and stops the load when it has
// shown enough.
func (r *runner) reportProgress(ctx context.Context, sc scenario.Scenario, board *workloads.Board, doubleHolds *atomic.Int64, start, end int64, stop func()) {
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			elapsed := min(max(r.clock.Now()-start, 0), end-start)
			acquired := board.Acquired()
			r.Progress.Tick(sc, Status{time.Duration(elapsed), time.Duration(end - start), acquired, int(doubleHolds.Load())})
			if inWindow := elapsed > int64(sc.Warmup); inWindow && r.enough != nil && r.enough(sc, acquired) {
				stop()
				return
			}
		}
	}
}

// streamsOf is how many streams a scenario's history has: one per client, and
// the controller's own where it serves registers.
func streamsOf(sc scenario.Scenario) uint32 {
	n := uint32(sc.Clients)
	if sc.Workload.Guard != "" {
		n++
	}
	return n
}

// collect merges the clients' files, and the controller's own account of the
// registers, into one history.
func (r *runner) collect(dir, clientDir string, streams uint32, register *workloads.Register) error {
	if register != nil {
		if err := r.writeFinals(clientDir, streams, register); err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(clientDir, "*"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("collect the history: the workers left no files in %s (%w)", clientDir, errors.Join(err, os.ErrNotExist))
	}
	slices.Sort(files)
	if err := history.Merge(filepath.Join(dir, scenario.FileHistory), files...); err != nil {
		return fmt.Errorf("collect the history: %w", err)
	}
	if err := os.RemoveAll(clientDir); err != nil {
		return fmt.Errorf("collect the history: %w", err)
	}
	return nil
}

func (r *runner) writeFinals(clientDir string, streams uint32, register *workloads.Register) error {
	w, err := history.Create(filepath.Join(clientDir, "controller.lbh"), history.Options{
		Client: history.Controller, Worker: history.Controller, Streams: streams, Clock: r.clock,
	})
	if err != nil {
		return fmt.Errorf("record the registers: %w", err)
	}
	for _, f := range register.Finals() {
		op := history.Op{Kind: history.KindFinal, Key: f.Key, Fence: f.HighestToken, Arg: f.Accepted}
		if f.Fenced {
			op.Flags |= history.FlagFenced
		}
		if _, err := w.Point(&op, &history.Result{Outcome: history.Accepted, Fence: f.HighestToken, Value: f.Value}); err != nil {
			return errors.Join(fmt.Errorf("record the registers: %w", err), w.Close())
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("record the registers: %w", err)
	}
	return nil
}
