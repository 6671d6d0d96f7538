package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/netdrop"
	"github.com/lockbench/lockbench/internal/scenario"
)

func (a *app) doctorCommand() *cobra.Command {
	var servers []string
	var format string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check this machine for servers and tools",
		Long: `Look for the server of every backend and test what else the experiments need. Nothing is changed.
The exit code is 0 if every backend is available, else 5.`,
		Args: argCount(cobra.NoArgs, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			binaries, err := serverFlags(servers)
			if err != nil {
				return err
			}
			report := cluster.Diagnose(cmd.Context(), binaries)
			faults := faultFindings()
			width := 0
			for _, f := range slices.Concat(report.Backends, report.Machine, faults) {
				width = max(width, len(f.Subject))
			}
			for _, f := range report.Backends {
				if !f.Works {
					a.code = exitInconclusive
				}
			}
			if format == "json" {
				return a.printJSON(map[string][]cluster.Finding{"backends": report.Backends, "machine": report.Machine, "faults": faults})
			}
			fmt.Fprintln(a.stdout, "SERVERS")
			a.printFindings(report.Backends, width)
			fmt.Fprintln(a.stdout, "\nMACHINE")
			a.printFindings(report.Machine, width)
			fmt.Fprintln(a.stdout, "\nFAULTS that need support from the machine")
			a.printFindings(faults, width)
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&servers, "server", nil, "use this server binary: BACKEND=PATH")
	addFormat(cmd, &format, "text", "json")
	return cmd
}

// faultFindings reports whether faults that need support from the machine are
// available.
func faultFindings() []cluster.Finding {
	missing := func(subject, found, mend string, err error) cluster.Finding {
		if err == nil {
			return cluster.Finding{Subject: subject, Works: true, Found: found}
		}
		why := strings.TrimPrefix(err.Error(), cluster.ErrMachine.Error()+": ")
		return cluster.Finding{Subject: subject, Why: why, Mend: mend}
	}
	return []cluster.Finding{
		missing("packets dropped", "by the kernel, in the run's own network namespace", "optional: proxies cut connections instead, and the report shows it", netdrop.Available()),
		missing("cut-peers, cut", "by proxies on the links between the servers", "leave out the faults that cut links between servers", cluster.Missing(scenario.AbilityLinks)),
		missing("clock of a server", "by a preloaded library, compiled here", "without it a suite with this fault is inconclusive; clock faults on clients still work", cluster.Missing(scenario.AbilityClock)),
		missing("slow-disk", "by delaying the server's system calls", "without it a suite with this fault is inconclusive", cluster.Missing(scenario.AbilitySlowDisk)),
	}
}

// printFindings writes a line per finding; the subjects are a column of the given
// width.
func (a *app) printFindings(list []cluster.Finding, width int) {
	for _, f := range list {
		if f.Works {
			fmt.Fprintf(a.stdout, "  %-*s  works   %s\n", width, f.Subject, f.Found)
			continue
		}
		fmt.Fprintf(a.stdout, "  %-*s  cannot  %s\n", width, f.Subject, f.Why)
		if f.Mend != "" {
			fmt.Fprintf(a.stdout, "  %-*s          -> %s\n", width, "", f.Mend)
		}
	}
}
