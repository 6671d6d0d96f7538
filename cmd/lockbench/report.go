package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/run"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports"
)

func (a *app) reportCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "report DIR...",
		Short: "Rebuild the reports of a run, or compare several runs",
		Long: `Rebuild report.html, report.md, junit.xml, bench.txt and the plots in a run's folder from its
result.json, and print the text report. With several folders, also write a report.html and a
report.md with the runs side by side into the folder --out, and print its path.`,
		Args: argCount(cobra.MinimumNArgs(1), "the folder of a run, or of several"),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, dir := range args {
				if !exists(filepath.Join(dir, scenario.FileResult)) {
					return usage(fmt.Errorf("%s has no %s: it is not the folder of a finished run; use lockbench check to read its histories", dir, scenario.FileResult))
				}
			}
			for _, dir := range args {
				if _, err := run.LoadDocument(dir); err != nil {
					return usage(err)
				}
			}
			for _, dir := range args {
				a.doubt(dir)
			}
			for _, dir := range args {
				if err := reports.Write(dir); err != nil {
					return fmt.Errorf("report of %s: %w", dir, err)
				}
			}
			if len(args) == 1 {
				return reports.Text(a.stdout, args[0], a.textOptions())
			}
			if err := os.MkdirAll(out, 0o755); err != nil {
				return fmt.Errorf("create the folder for the reports: %w", err)
			}
			if err := reports.Several(args, out); err != nil {
				return err
			}
			fmt.Fprintln(a.stdout, "report:", shorten(filepath.Join(out, reports.FileHTML)))
			return nil
		},
	}
	cmd.Flags().StringVar(&out, "out", "results/side-by-side", "folder for the report of several runs")
	return cmd
}

// doubt warns of scenarios whose histories no longer prove their result in
// result.json: the reports show that result, and the command exits as
// inconclusive.
func (a *app) doubt(dir string) {
	doc, err := run.LoadDocument(dir)
	if err != nil {
		return // writing the report returns the error
	}
	for _, r := range doc.Scenarios {
		if r.Status != scenario.StatusDone || r.Workload.Kind == scenario.Properties {
			continue // it has no history
		}
		why := ""
		h, err := history.Read(filepath.Join(dir, scenario.DirScenarios, r.Name, scenario.FileHistory))
		switch {
		case err != nil:
			why = err.Error()
		case len(h.Damage) > len(r.Safety.Damage):
			why = "its history was damaged after the run: " + h.Damage[0].String()
		}
		if why != "" {
			fmt.Fprintf(a.stderr, "lockbench: %s: the reported result cannot be proved any more: %s; run lockbench check %s\n", r.Name, why, dir)
			a.code = exitInconclusive
		}
	}
}
