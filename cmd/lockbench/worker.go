package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/workloads"
)

// workerCommand is the process that hosts clients. The controller starts it and
// communicates over stdin and stdout.
func (a *app) workerCommand() *cobra.Command {
	return &cobra.Command{
		Use: "worker", Short: "Host clients for a run (internal)", Hidden: true, Args: argCount(cobra.NoArgs, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := workloads.Main(cmd.Context(), a.stdin, a.protocol, a.stderr, find); err != nil {
				return fmt.Errorf("worker: %w", err)
			}
			return nil
		},
	}
}
