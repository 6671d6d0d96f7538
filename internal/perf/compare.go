package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/workloads"
)

// The same on both sides.
const (
	ttl     = 4 * time.Second
	timeout = 5 * time.Second // of a request
)

// speed is one part of a round.
type speed struct {
	pairs float64 // a second
	all   int     // pairs ever made, also outside the window
	cpu   float64 // seconds of the clients' processes per pair
	rss   int64   // most memory of any of them
}

// compare prints one line of the table.
func compare(ctx context.Context, s settings, c *cluster.Cluster, id string, clients int) error {
	recipe, ok := all.Find(id)
	if !ok {
		return fmt.Errorf("no recipe %q; see lockbench list recipes", id)
	}
	if err := prepare(ctx, c, recipe, keyNames(clients)); err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(uint64(clients), 1))
	var ratios, controls, extra, cpu, cpuControl, bares, ours []float64
	var requests, pairs [2]int64 // bare, ours
	for round := range s.rounds {
		var part [3]speed // two bare loops and lockbench
		for _, i := range rng.Perm(3) {
			before, err := requestsOf(ctx, c, recipe)
			if err != nil {
				return err
			}
			side := i / 2
			if side == 1 {
				part[i], err = shipped(ctx, s, c, id, clients, uint64(round))
			} else {
				part[i], err = bare(s, c, id, clients)
			}
			if err != nil {
				return err
			}
			after, err := requestsOf(ctx, c, recipe)
			if err != nil {
				return err
			}
			requests[side] += after - before
			pairs[side] += int64(part[i].all)
		}
		mean := (part[0].pairs + part[1].pairs) / 2
		bares, ours = append(bares, mean), append(ours, part[2].pairs)
		ratios = append(ratios, part[2].pairs/mean)
		controls = append(controls, part[0].pairs/part[1].pairs)
		meanCPU := (part[0].cpu + part[1].cpu) / 2
		extra = append(extra, part[2].cpu-meanCPU)
		cpu = append(cpu, part[2].cpu/meanCPU)
		cpuControl = append(cpuControl, part[0].cpu/part[1].cpu)
	}
	fmt.Printf("%-20s %7d %9.0f %9.0f  %-22s %-22s %+9.1f µs  %-22s %-22s %.2f / %.2f\n", id, clients, median(bares), median(ours),
		spread(ratios), spread(controls), median(extra)*1e6, spread(cpu), spread(cpuControl),
		float64(requests[0])/float64(pairs[0]), float64(requests[1])/float64(pairs[1]))
	return nil
}

// requestsOf is how many requests of the recipe's kinds the servers have
// counted so far. Opening the clients takes a few as well.
func requestsOf(ctx context.Context, c *cluster.Cluster, recipe impls.Recipe) (n int64, err error) {
	nodes, err := c.Counters(ctx)
	if err != nil {
		return 0, err
	}
	for _, node := range nodes {
		for _, name := range recipe.Info().Requests {
			n += node.Counters[name]
		}
	}
	return n, nil
}

func median(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if len(v)%2 == 1 {
		return v[len(v)/2]
	}
	return (v[len(v)/2-1] + v[len(v)/2]) / 2
}

// spread shows the median and both ends.
func spread(v []float64) string {
	return fmt.Sprintf("%.3f [%.3f..%.3f]", median(v), slices.Min(v), slices.Max(v))
}

// shipped runs the recipe in lockbench's own workers.
func shipped(ctx context.Context, s settings, c *cluster.Cluster, id string, clients int, seed uint64) (_ speed, err error) {
	sc := scenario.Scenario{
		Name: "perf", Recipe: id, Clients: clients, Workers: min(clients, s.processes), Seed: seed,
		Workload: scenario.Load{Kind: scenario.Uncontended, Keys: clients, Arrival: scenario.ArrivalClosed},
		TTL:      scenario.Duration(ttl), Timeout: scenario.Duration(timeout),
		Poll:   scenario.Poll{Min: 5 * time.Millisecond, Max: 15 * time.Millisecond},
		Warmup: scenario.Duration(s.warmup), Duration: scenario.Duration(s.window),
	}
	keys := keyNames(clients)
	dir, err := os.MkdirTemp(s.run.Dir(), "perf")
	if err != nil {
		return speed{}, err
	}
	defer os.RemoveAll(dir)
	histories := filepath.Join(dir, "clients")
	if err := os.Mkdir(histories, 0o755); err != nil {
		return speed{}, err
	}
	boardPath := filepath.Join(dir, "board")
	board, err := workloads.CreateBoard(boardPath, clients)
	if err != nil {
		return speed{}, err
	}
	defer board.Close()
	var specs []workloads.Spec
	for w, list := range workloads.Assign(sc) {
		specs = append(specs, workloads.Spec{
			Scenario: sc, Worker: uint32(w), Clients: list, Dir: histories, Board: boardPath,
			Addresses: c.Addresses(), Account: c.Account(), Keys: keys,
		})
	}
	pool, err := workloads.StartPool(ctx, workloads.PoolOptions{Run: s.run, Command: []string{s.self}, Specs: specs, Log: os.Stderr})
	if err != nil {
		return speed{}, err
	}
	clock := history.NewClock()
	start := clock.Now() + int64(50*time.Millisecond)
	from := start + int64(s.warmup)
	to := from + int64(s.window)
	if err := pool.Go(start, from, to); err != nil {
		return speed{}, err
	}
	samples, err := pool.Wait(ctx)
	if err != nil {
		return speed{}, err
	}
	var cpu, rss int64
	for _, w := range samples {
		if w.Error != "" {
			return speed{}, fmt.Errorf("worker: %s", w.Error)
		}
		cpu += w.CPUNS
		rss = max(rss, w.MaxRSSB)
	}
	h, err := history.Read(histories)
	if err != nil {
		return speed{}, err
	}
	pairs, made := 0, 0
	for _, call := range h.Calls {
		if call.Kind == history.KindRelease && call.Outcome == history.Released {
			made++
		}
		if call.Kind == history.KindRelease && call.Outcome == history.Released && call.Return >= from && call.Return < to {
			pairs++
		}
	}
	return newSpeed(pairs, made, time.Duration(cpu), rss, s.window)
}

func newSpeed(pairs, all int, cpu time.Duration, rss int64, window time.Duration) (speed, error) {
	if pairs == 0 {
		return speed{}, fmt.Errorf("not one pair within %v", window)
	}
	return speed{pairs: float64(pairs) / window.Seconds(), all: all, cpu: cpu.Seconds() / float64(pairs), rss: rss}, nil
}

func keyNames(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("lb.perf.%d", i)
	}
	return keys
}

func prepare(ctx context.Context, c *cluster.Cluster, recipe impls.Recipe, keys []string) error {
	var d net.Dialer
	return recipe.Prepare(ctx, impls.Config{
		Addresses: c.Addresses(), Account: c.Account(), Dial: d.DialContext, Clock: impls.SystemClock(),
		Wait: impls.NewUniform(time.Millisecond, time.Millisecond, 1), TTL: ttl, Timeout: timeout,
	}, keys)
}
