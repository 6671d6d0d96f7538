package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/container"
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			containers, errContainers := container.Sweep(cmd.Context(), supervise.Dead)
			for _, c := range containers {
				fmt.Fprintf(a.stdout, "removed %s of a dead run\n", c)
			}
			swept, err := supervise.Sweep("")
			err = errors.Join(errContainers, err)
			for _, s := range swept {
				fmt.Fprintln(a.stdout, s)
			}
			if err != nil {
				return fmt.Errorf("heal: %w", err)
			}
			if len(swept)+len(containers) == 0 {
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
		RunE: func(cmd *cobra.Command, args []string) error {
			// A signal to every lockbench process must not end the watchdog.
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
			swept, err := supervise.Guard(args[0], a.stdin, func() error {
				this := func(run string) bool { return run == args[0] }
				removed, err := container.Sweep(context.WithoutCancel(cmd.Context()), this)
				for _, c := range removed {
					fmt.Fprintf(a.stderr, "lockbench: removed %s of the killed run\n", c)
				}
				return err
			})
			if swept != nil {
				fmt.Fprintf(a.stderr, "lockbench: cleaned up after %v\n", swept)
			}
			return err
		},
	}
}

// inContainerCommand is what lockbench does in a server's container.
func (a *app) inContainerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "in-container", Short: "Find or start a server in its container (internal)", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return cluster.InContainer(args) },
	}
}
