package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/supervise"
)

const envBare = "LOCKBENCH_PERF_BARE"

// bareSpec is what a process of bare loops is told, as one line of JSON.
type bareSpec struct {
	Recipe  string
	Address string
	Account impls.Account
	Keys    []string // one client each
}

type bareWindow struct{ Start, From, To int64 }

type bareResult struct {
	Pairs int // within the window
	All   int // also before and after it
	CPU   time.Duration
	RSS   int64
}

// bare runs the same driver calls without lockbench around them, in as many
// processes as lockbench would use.
func bare(ctx context.Context, s settings, c *cluster.Cluster, id string, clients int) (speed, error) {
	recipe, ok := all.Find(id)
	if !ok {
		return speed{}, fmt.Errorf("no recipe %q", id)
	}
	keys := keyNames(clients)
	if err := prepare(ctx, c, recipe, keys); err != nil {
		return speed{}, err
	}
	type child struct {
		in  io.WriteCloser
		out *json.Decoder
		p   *supervise.Process
	}
	var children []child
	n := min(clients, s.processes)
	for i := range n {
		p, err := s.run.Start(supervise.Command{Name: "bare", Path: s.self, Env: append(os.Environ(), envBare+"=1"), Stderr: os.Stderr, StdinPipe: true, StdoutPipe: true})
		if err != nil {
			return speed{}, err
		}
		ch := child{p.Stdin, json.NewDecoder(bufio.NewReader(p.Stdout)), p}
		children = append(children, ch)
		spec := bareSpec{Recipe: id, Address: c.Addresses()[0], Account: c.Account(), Keys: keys[i*clients/n : (i+1)*clients/n]}
		if err := json.NewEncoder(ch.in).Encode(spec); err != nil {
			return speed{}, err
		}
	}
	for _, ch := range children {
		var ready string
		if err := ch.out.Decode(&ready); err != nil || ready != "ready" {
			return speed{}, fmt.Errorf("bare loop did not get ready: %q %w", ready, err)
		}
	}
	clock := history.NewClock()
	start := clock.Now() + int64(50*time.Millisecond)
	from := start + int64(s.warmup)
	w := bareWindow{start, from, from + int64(s.window)}
	for _, ch := range children {
		if err := json.NewEncoder(ch.in).Encode(w); err != nil {
			return speed{}, err
		}
	}
	var sum bareResult
	for _, ch := range children {
		var r bareResult
		if err := ch.out.Decode(&r); err != nil {
			return speed{}, fmt.Errorf("bare loop died: %w", err)
		}
		sum.Pairs += r.Pairs
		sum.All += r.All
		sum.CPU += r.CPU
		sum.RSS = max(sum.RSS, r.RSS)
		ch.in.Close()
		<-ch.p.Done()
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
			return errors.Join(err, out.Encode(err.Error()))
		}
		loops = append(loops, l)
	}
	if err := out.Encode("ready"); err != nil {
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
	parts := make([]bareResult, len(loops))
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
	r := bareResult{RSS: maxRSS()}
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
