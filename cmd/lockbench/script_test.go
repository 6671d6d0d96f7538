package main

import (
	"context"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/internal/netdrop"
)

// TestMain makes the test binary double as the command, for the scripts and
// for the worker processes they start.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"lockbench": func() {
			netdrop.MainIfProbe()
			conformance.MainIfClient(find)
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			os.Exit(int(execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)))
		},
	})
}

// TestScripts runs the command as a user would: stdout, stderr, exit codes,
// bad input. Scripts that start servers use the real ones.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			// The servers that "make servers" built stand in the module's bin.
			if etcd := os.Getenv("LOCKBENCH_SERVER_ETCD"); etcd != "" {
				env.Setenv("LOCKBENCH_SERVER_ETCD", etcd)
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// exits CODE ARGS...: run lockbench, which must end with that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE lockbench ARGS...")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := "0"
	if err != nil {
		code = "signal"
		if e, ok := err.(interface{ ExitCode() int }); ok {
			code = strconv.Itoa(e.ExitCode())
		}
	}
	if code != args[0] {
		ts.Fatalf("%v ended with %s (%v), want %s", args[1:], code, err, args[0])
	}
}
