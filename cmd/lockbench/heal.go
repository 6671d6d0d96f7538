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
		Short: "End what dead runs left behind",
		Long: `Heal ends the processes and removes the temporary folders of runs that were killed, and tells which
faults were in force. Runs that are still going on are spared. Every run has a watchdog that does the
same as soon as its process is gone, and does the same for earlier runs when it starts.`,
		Args: argCount(cobra.NoArgs, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			swept, err := supervise.Sweep("")
			for _, s := range swept {
				fmt.Fprintln(a.stdout, s)
			}
			if err != nil {
				return fmt.Errorf("heal: %w", err)
			}
			if len(swept) == 0 {
				fmt.Fprintln(a.stdout, "nothing was left behind")
			}
			return nil
		},
	}
}

// watchdogCommand is the process that clears a run away when the run's own was
// killed. The run starts it and speaks to it over stdin.
func (a *app) watchdogCommand() *cobra.Command {
	return &cobra.Command{
		Use: "watchdog DIR", Short: "Clear a run away when its process is gone (started by lockbench itself)", Hidden: true,
		Args: argCount(cobra.ExactArgs(1), "the folder of a run"),
		RunE: func(_ *cobra.Command, args []string) error {
			// A signal for everything called lockbench must not end the one that is
			// to clear up after the others.
			signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
			swept, err := supervise.Guard(args[0], a.stdin)
			if swept != nil {
				fmt.Fprintf(a.stderr, "lockbench: cleared away after %v\n", swept)
			}
			return err
		},
	}
}
