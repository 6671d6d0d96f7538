package main

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/supervise"
)

func (a *app) healCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "heal",
		Short: "Clean up after killed runs",
		Long: `End the processes and remove the temporary folders of killed runs, and print the faults that were
in force. Running runs are left alone. Every run has a watchdog that does the same when the run's
process is gone, and cleans up after earlier runs when it starts.`,
		Args: argCount(cobra.NoArgs, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			swept, err := supervise.Sweep("")
			for _, s := range swept {
				fmt.Fprintln(a.stdout, s)
			}
			if err != nil {
				return fmt.Errorf("heal: %w", err)
			}
			if len(swept) == 0 {
				fmt.Fprintln(a.stdout, "nothing to clean up")
			}
			return nil
		},
	}
}

// watchdogCommand is the process that cleans up a run whose process was killed.
// The run starts it and communicates over stdin.
func (a *app) watchdogCommand() *cobra.Command {
	return &cobra.Command{
		Use: "watchdog DIR", Short: "Clean up a run when its process is gone (internal)", Hidden: true,
		Args: argCount(cobra.ExactArgs(1), "the folder of a run"),
		RunE: func(_ *cobra.Command, args []string) error {
			// A signal to every lockbench process must not end the watchdog.
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
			swept, err := supervise.Guard(args[0], a.stdin)
			if swept != nil {
				fmt.Fprintf(a.stderr, "lockbench: cleaned up after %v\n", swept)
			}
			return err
		},
	}
}
