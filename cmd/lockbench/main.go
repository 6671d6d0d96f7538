// Lockbench benchmarks and chaos-tests distributed locks on Redis, etcd,
// ZooKeeper, memcached, MySQL and PostgreSQL. It shows, with evidence, how fast each lock is,
// what it costs, and when it lets two clients hold it at once.
//
// Usage:
//
//	lockbench run [SUITE|FILE] [flags]   run a suite (default: quick), a suite file, or one experiment from flags
//	lockbench check DIR|FILE...          check a run or any history again
//	lockbench report DIR...              rebuild the reports of runs
//	lockbench compare BASE NEW           what changed from one run to another
//	lockbench advise                     which lock fits a need, from measured scenarios
//	lockbench list recipes|workloads|faults|suites
//	lockbench doctor                     check this machine for servers and tools
//	lockbench up|down TOPOLOGY...        start servers and leave them running; stop them
//	lockbench heal                       clean up after killed runs
//	lockbench version
//
// Results go to stdout, progress to stderr. The exit codes are listed by
// "lockbench help exit-codes".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/internal/netdrop"
)

// quiet drops the driver's messages about failed connections: the outcomes of the
// calls have them.
type quiet struct{}

func (quiet) Printf(context.Context, string, ...any) {}

func main() {
	// This program runs itself to find out whether the kernel can drop packets.
	netdrop.MainIfProbe()
	redis.SetLogger(quiet{}) // the driver has no other switch
	// This program is also the client process of the conformance suite.
	conformance.MainIfClient(find)
	// The first signal ends the run cleanly: faults are healed, the report is
	// written. The second ends it at once: its processes die with this one, by
	// their parent-death signal, or in the sweep of the next start.
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(int(exitInterrupted))
	}()
	os.Exit(int(execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)))
}
