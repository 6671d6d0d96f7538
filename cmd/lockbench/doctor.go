package main

import (
	"fmt"

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
			for _, f := range report.Backends {
				if !f.Works {
					a.code = exitInconclusive
				}
			}
			if format == "json" {
				return a.printJSON(map[string][]doctorFinding{"backends": findings(report.Backends), "machine": findings(report.Machine)})
			}
			fmt.Fprintln(a.stdout, "SERVERS")
			a.printFindings(report.Backends)
			fmt.Fprintln(a.stdout, "\nMACHINE")
			a.printFindings(report.Machine)
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

func (a *app) printFindings(list []cluster.Finding) {
	for _, f := range list {
		if f.Works {
			fmt.Fprintf(a.stdout, "  %-18s works   %s\n", f.Subject, f.Found)
			continue
		}
		fmt.Fprintf(a.stdout, "  %-18s cannot  %s\n", f.Subject, f.Why)
		if f.Mend != "" {
			fmt.Fprintf(a.stdout, "  %-18s         -> %s\n", "", f.Mend)
		}
	}
}
