package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/supervise"
	"github.com/lockbench/lockbench/internal/worker"
)

const envBare = "LOCKBENCH_PERF_BARE"

// bareSpec is the first order of a process of bare loops.
type bareSpec struct {
	Recipe  string
	Address string
	Account impls.Account
	Keys    []string // one client each
}

type bareWindow struct{ Start, From, To int64 }

// bareReport is empty once the loops are open, and the result after the window.
type bareReport struct {
	Pairs int // within the window
	All   int // also before and after it
	CPU   time.Duration
	RSS   int64
}

// ReplyTo implements worker.Reply: the process reports unasked.
func (bareReport) ReplyTo() uint64 { return 0 }

// bareProcess is a process of bare loops.
type bareProcess struct {
	*worker.Process[bareReport]
	reports chan bareReport
}

func (p bareProcess) next() (bareReport, error) {
	select {
	case r := <-p.reports:
		return r, nil
	case <-p.Gone():
	}
	select {
	case r := <-p.reports: // it came before the end
		return r, nil
	default:
		return bareReport{}, errors.Join(errors.New("bare loops ended without a report"), p.Failure())
	}
}

// bare runs the same driver calls without lockbench around them, in as many
// processes as lockbench would use.
func bare(s settings, c *cluster.Cluster, id string, clients int) (speed, error) {
	var children []bareProcess
	keys, n := keyNames(clients), min(clients, s.processes)
	for i := range n {
		reports := make(chan bareReport, 2)
		p, err := worker.Start(worker.Options[bareReport]{
			Run: s.run, OnReport: func(r bareReport) { reports <- r },
			Command: supervise.Command{Name: "bare", Path: s.self, Env: append(os.Environ(), envBare+"=1"), Stderr: os.Stderr},
		})
		if err != nil {
			return speed{}, err
		}
		p.Send(bareSpec{Recipe: id, Address: c.Addresses()[0], Account: c.Account(), Keys: keys[i*clients/n : (i+1)*clients/n]})
		children = append(children, bareProcess{p, reports})
	}
	for _, p := range children {
		if _, err := p.next(); err != nil {
			return speed{}, err
		}
	}
	start := history.NewClock().Now() + int64(50*time.Millisecond)
	from := start + int64(s.warmup)
	for _, p := range children {
		p.Send(bareWindow{start, from, from + int64(s.window)})
	}
	var sum bareReport
	for _, p := range children {
		r, err := p.next()
		if err != nil {
			return speed{}, err
		}
		sum.Pairs += r.Pairs
		sum.All += r.All
		sum.CPU += r.CPU
		sum.RSS = max(sum.RSS, r.RSS)
		<-p.Gone()
	}
	return newSpeed(sum.Pairs, sum.All, sum.CPU, sum.RSS, s.window)
}

// bareMain is a process of bare loops.
func bareMain(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	// Acquires of lockbench's workers have a deadline too, that of the load.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	in, out := json.NewDecoder(stdin), json.NewEncoder(stdout)
	var spec bareSpec
	if err := in.Decode(&spec); err != nil {
		return err
	}
	var loops []loop
	for _, key := range spec.Keys {
		l, err := openLoop(ctx, spec, key)
		if err != nil {
			return err
		}
		loops = append(loops, l)
	}
	if err := out.Encode(bareReport{}); err != nil {
		return err
	}
	var w bareWindow
	if err := in.Decode(&w); err != nil {
		return err
	}
	clock := history.NewClock()
	time.Sleep(time.Duration(w.Start - clock.Now()))
	// As in workers, the CPU time is that between the window's ends.
	cpu := make(chan time.Duration, 1)
	go func() {
		time.Sleep(time.Duration(w.From - clock.Now()))
		before := cpuTime()
		time.Sleep(time.Duration(w.To - clock.Now()))
		cpu <- cpuTime() - before
	}()
	var wg sync.WaitGroup
	parts := make([]bareReport, len(loops))
	errs := make([]error, len(loops))
	for i, l := range loops {
		wg.Go(func() {
			for {
				if errs[i] = l.pair(ctx); errs[i] != nil {
					return
				}
				parts[i].All++
				now := clock.Now()
				if now >= w.To {
					return
				}
				if now >= w.From {
					parts[i].Pairs++
				}
			}
		})
	}
	wg.Wait()
	r := bareReport{RSS: maxRSS()}
	for _, p := range parts {
		r.Pairs += p.Pairs
		r.All += p.All
	}
	for _, l := range loops {
		errs = append(errs, l.close())
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	r.CPU = <-cpu
	return out.Encode(r)
}

func cpuTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func maxRSS() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Maxrss << 10
}
