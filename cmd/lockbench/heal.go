package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/supervise"
)

func (a *app) healCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "heal",
		Short: "End what dead runs left behind",
		Long:  "Heal ends the processes and removes the temporary folders of runs that were killed. Runs that are\nstill going on are spared. Every run does the same when it starts.",
		Args:  argCount(cobra.NoArgs, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			swept, err := supervise.Sweep("")
			if err != nil {
				return fmt.Errorf("heal: %w", err)
			}
			for _, s := range swept {
				fmt.Fprintln(a.stdout, s)
			}
			if len(swept) == 0 {
				fmt.Fprintln(a.stdout, "nothing was left behind")
			}
			return nil
		},
	}
}
