package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports"
)

func (a *app) reportCommand() *cobra.Command {
	html := "single"
	cmd := &cobra.Command{
		Use:   "report DIR...",
		Short: "Rebuild the reports of runs",
		Long: `Rebuild report.html, report.md, junit.xml, bench.txt, annotations.json and the plots in the
folder of each run from its result.json, and print the text report of a single run.

report.html is one file. Where a server allows no style and script within a
page, as Jenkins does, --html split puts them beside it.`,
		Args: argCount(cobra.MinimumNArgs(1), "the folder of a run, or of several"),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, dir := range args {
				doc, err := loadRun(dir)
				if err != nil {
					return err
				}
				a.doubt(dir, doc)
				write := reports.Write
				if html == "split" {
					write = reports.WriteSplit
				}
				if err := write(dir); err != nil {
					return fmt.Errorf("report of %s: %w", dir, err)
				}
			}
			if len(args) > 1 {
				return nil
			}
			return reports.Text(a.stdout, args[0], a.textOptions())
		},
	}
	forms := []string{"single", "split"}
	cmd.Flags().Var(formatFlag{&html, forms}, "html", "write report.html as single file or split")
	complete(cmd, map[string]func() []string{"html": func() []string { return forms }})
	return cmd
}

// loadRun reads the results of a finished run.
func loadRun(dir string) (scenario.Document, error) {
	doc, err := scenario.ReadDocument(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s has no %s: it is not the folder of a finished run; use lockbench check to read its histories", dir, scenario.FileResult)
	}
	return doc, usage(err)
}

// doubt warns of scenarios whose histories no longer prove their result in
// result.json: the reports show that result, and the command exits as
// inconclusive.
func (a *app) doubt(dir string, doc scenario.Document) {
	for _, r := range doc.Scenarios {
		if r.Status != scenario.StatusDone || r.Workload.Kind == scenario.Properties {
			continue // it has no history
		}
		why := ""
		damage, err := history.Verify(filepath.Join(dir, scenario.DirScenarios, r.Name, scenario.FileHistory))
		switch {
		case err != nil:
			why = err.Error()
		case len(damage) > len(r.Safety.Damage):
			why = "its history was damaged after the run: " + damage[0].String()
		}
		if why != "" {
			fmt.Fprintf(a.stderr, "lockbench: %s: the reported result cannot be proved any more: %s; run lockbench check %s\n", r.Name, why, dir)
			a.code = exitInconclusive
		}
	}
}
