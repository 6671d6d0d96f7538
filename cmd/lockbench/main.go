// Lockbench benchmarks and chaos-tests distributed locks on Redis, etcd,
// ZooKeeper, memcached and MySQL, and tells, with evidence, how fast each is,
// what it costs, and when it lets two clients hold one lock.
//
// Usage:
//
//	lockbench run [SUITE|FILE] [flags]   run a suite (default: quick), a suite file, or one experiment from flags
//	lockbench check DIR|FILE...          check a run, or anybody's history, again
//	lockbench report DIR...              rebuild the reports of a run; several runs side by side
//	lockbench list recipes|workloads|faults|suites
//	lockbench doctor                     what this machine has and lacks
//	lockbench heal                       end what dead runs left behind
//	lockbench version
//
// Results go to stdout, progress to stderr. The exit codes are listed by
// "lockbench help exit-codes".
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/internal/netdrop"
)

// quiet drops what a driver would print of failed connections: it is in the
// outcomes of the calls.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func main() {
	// Whether the kernel can drop packets is found out by this program, again.
	netdrop.MainIfProbe()
	redis.SetLogger(quiet{}) // the driver has no other switch
	// The conformance suite measures properties with processes of clients, which
	// are this program again.
	conformance.MainIfClient(find)
	// The first signal ends the run in order: faults are healed, the report is
	// written. The second ends it at once: whatever is left dies with this
	// process, by its parent-death signal, or by the next start's sweep.
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		fmt.Fprintln(os.Stderr, "lockbench: stopping; the report is still written (once more to stop at once)")
		cancel()
		<-signals
		os.Exit(int(exitInterrupted))
	}()
	os.Exit(int(execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)))
}
