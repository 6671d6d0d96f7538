// Perf measures what lockbench itself costs, on the real servers:
//
//	(a) the uncontended throughput and CPU time of each recipe in lockbench's
//	    workers against a bare loop of the same driver calls; and the bare loop
//	    against itself, as the control that shows how much equal things differ
//	(b) the memory of a thousand redis clients in one worker, against bare
//	    drivers
//	(c) "lockbench check" of large histories: time and memory, read from disk
//
// The cost of recording and the speed of the checker's parts are benchmarks of
// their packages; "make perf" runs those as well.
//
// Many short windows are measured in turn, in random order, and only ratios
// within one round are compared: a bare time would measure the machine. Nothing
// here fails for being slow; the reader of the table decides.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/supervise"
	"github.com/lockbench/lockbench/workloads"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case os.Getenv(workloads.EnvWorker) != "":
		err = workloads.Main(ctx, os.Stdin, os.Stdout, os.Stderr, all.Find)
	case os.Getenv(envBare) != "":
		err = bareMain(ctx, os.Stdin, os.Stdout)
	case os.Getenv(envSimulate) != "":
		err = simulateMain(os.Stdin)
	default:
		err = measureAll(ctx)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "perf:", err)
		os.Exit(1)
	}
}

// settings of one measurement.
type settings struct {
	run    *supervise.Run
	self   string
	warmup time.Duration
	window time.Duration
	rounds int
	// processes that host the clients, the same for both sides.
	processes int
	recipes   []string
	clients   []int
}

func measureAll(ctx context.Context) (err error) {
	recipes := flag.String("recipes", "redis/token,memcached/cas,mysql/lease-row,etcd/mutex,zookeeper/sequence", "recipes to measure; empty: none")
	clients := flag.String("clients", "1,8,64", "numbers of clients")
	rounds := flag.Int("rounds", 11, "rounds of each measurement")
	window := flag.Duration("window", 500*time.Millisecond, "measured time of each part of a round")
	memory := flag.Int("memory", 1000, "redis clients for the memory measurement; 0: none")
	checks := flag.String("checks", "1000000,10000000", "sizes of histories to check, in calls; empty: none")
	lockbench := flag.String("lockbench", "bin/lockbench", "the command that checks them")
	flag.Parse()

	run, err := supervise.Begin("")
	if err != nil {
		return err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if e := run.End(end); err == nil {
			err = e
		}
	}()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	s := settings{run: run, self: self, warmup: 200 * time.Millisecond, window: *window, rounds: *rounds, processes: 2}
	if err := s.parse(*recipes, *clients); err != nil {
		return err
	}

	if *checks != "" {
		for _, n := range strings.Split(*checks, ",") {
			calls, err := strconv.Atoi(n)
			if err != nil || calls < 1000 {
				return fmt.Errorf("-checks %s: %q is not a number of calls, at least 1000", *checks, n)
			}
			if err := checking(ctx, *lockbench, run.Dir(), calls); err != nil {
				return err
			}
		}
	}
	if len(s.recipes) > 0 {
		s.header()
	}
	for _, id := range s.recipes {
		backend, _, _ := strings.Cut(id, "/")
		if err := onCluster(ctx, run, backend, func(c *cluster.Cluster) error {
			for _, n := range s.clients {
				if err := compare(ctx, s, c, id, n); err != nil {
					return fmt.Errorf("%s with %d clients: %w", id, n, err)
				}
			}
			return nil
		}); err != nil {
			return err
		}
	}
	if *memory == 0 {
		return nil
	}
	return onCluster(ctx, run, "redis", func(c *cluster.Cluster) error { return compareMemory(ctx, s, c, *memory) })
}

func (s settings) header() {
	fmt.Printf("uncontended pairs of acquire and release; %d rounds of %v each, in random order within a round\n", s.rounds, s.window)
	fmt.Println("ratio = lockbench / mean of two bare loops; control = bare loop / bare loop; median [min..max];")
	fmt.Println("extra CPU = what lockbench's clients spend on a pair beyond the bare loops'; CPU ratio and control = as ratio and control, of CPU time per pair; requests = per pair, by the servers' counters, bare / lockbench")
	fmt.Printf("%-20s %7s %9s %9s  %-22s %-22s %12s  %-22s %-22s %s\n", "recipe", "clients", "bare/s", "ours/s", "ratio", "control", "extra CPU", "CPU ratio", "CPU control", "requests")
}

// parse fills in what has the form of a list.
func (s *settings) parse(recipes, clients string) error {
	if recipes != "" {
		s.recipes = strings.Split(recipes, ",")
	}
	for _, n := range strings.Split(clients, ",") {
		count, err := strconv.Atoi(n)
		if err != nil || count < 1 {
			return fmt.Errorf("-clients %s: %q is not a number of clients", clients, n)
		}
		s.clients = append(s.clients, count)
	}
	return nil
}

// onCluster gives work a single server with production defaults.
func onCluster(ctx context.Context, run *supervise.Run, backend string, work func(*cluster.Cluster) error) error {
	c, err := cluster.Start(ctx, run, cluster.Spec{Backend: backend, Topology: "single", LogDir: run.Dir() + "/logs-" + backend, Clients: 1100})
	if err != nil {
		return fmt.Errorf("start %s: %w", backend, err)
	}
	workErr := work(c)
	if err := c.Stop(ctx); workErr == nil && err != nil {
		return fmt.Errorf("stop %s: %w", backend, err)
	}
	return workErr
}
