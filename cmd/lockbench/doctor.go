package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/cluster"
)

// doctorFinding is one line of doctor's JSON.
type doctorFinding struct {
	Subject string `json:"subject"`
	Works   bool   `json:"works"`
	Found   string `json:"found,omitempty"`
	Why     string `json:"why,omitempty"`
	Mend    string `json:"mend,omitempty"`
}

func (a *app) doctorCommand() *cobra.Command {
	var servers []string
	var format string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "What this machine has and lacks",
		Long: `Doctor looks for every backend's server, and tries what else experiments may need. It changes nothing.
It ends with 0 if every backend can be had, else with 5.`,
		Args: argCount(cobra.NoArgs, "no argument"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "text" && format != "json" {
				return usage(fmt.Errorf("--format %s: want text or json", format))
			}
			binaries, err := serverFlags(servers)
			if err != nil {
				return err
			}
			report := cluster.Diagnose(cmd.Context(), binaries)
			width := 0
			for _, f := range slices.Concat(report.Backends, report.Machine) {
				width = max(width, len(f.Subject))
			}
			for _, f := range report.Backends {
				if !f.Works {
					a.code = exitInconclusive
				}
			}
			if format == "json" {
				return a.printJSON(map[string][]doctorFinding{"backends": findings(report.Backends), "machine": findings(report.Machine)})
			}
			fmt.Fprintln(a.stdout, "SERVERS")
			a.printFindings(report.Backends, width)
			fmt.Fprintln(a.stdout, "\nMACHINE")
			a.printFindings(report.Machine, width)
			return nil
		},
	}
	cmd.Flags().StringArrayVar(&servers, "server", nil, "a server binary to use, as BACKEND=PATH")
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
}

func findings(list []cluster.Finding) []doctorFinding {
	var out []doctorFinding
	for _, f := range list {
		out = append(out, doctorFinding(f))
	}
	return out
}

// printFindings writes a line per finding, with the subjects in a column of the
// given width.
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
