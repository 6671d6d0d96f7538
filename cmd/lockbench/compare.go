package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports/compare"
)

func (a *app) compareCommand() *cobra.Command {
	o := compare.Defaults()
	var rules []string
	var format string
	minChange := 100 * o.MinChange
	cmd := &cobra.Command{
		Use:   "compare BASE NEW",
		Short: "Compare two runs: what changed in safety and speed",
		Long: `Compare the runs in two folders, scenario by scenario. Scenarios are matched by name.

An answer that changed comes first. A change of speed is reported if a Mann-Whitney U test over
the repeats finds it: all tests together raise a false alarm with a chance of 0.2 %, which takes 8
repeats for 12 tests and 10 for 180. Changes below --min-change count as none, because a machine
is not equally fast at all times; "~ (23%)" is no change, of repeats that could have shown one
of 23 %. Scenarios with faults are compared by safety, and by the metrics of --fail-if.

The exit code is 3 if an answer became worse, 5 if a good answer became unknown or a rule of
--fail-if could not be decided, 4 if a rule is broken, else 0.`,
		Example: `  lockbench compare results/2026-01-31T120000-quick results/latest
  lockbench compare baseline results/latest --fail-if 'acquire.p99 > +20%' --format markdown`,
		Args: argCount(cobra.ExactArgs(2), "the folders of two runs"),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, text := range rules {
				rule, err := compare.ParseRule(text)
				if err != nil {
					return usage(fmt.Errorf("--fail-if: %w", err))
				}
				o.Rules = append(o.Rules, rule)
			}
			if o.MinChange = minChange / 100; !(o.MinChange >= 0) {
				return usage(fmt.Errorf("--min-change %v: write a percentage, 0 or more", minChange))
			}
			var docs [2]scenario.Document
			for i, dir := range args {
				var err error
				if docs[i], err = loadRun(dir); err != nil {
					return err
				}
			}
			c := compare.Documents(docs[0], docs[1], o)
			a.code = judgeComparison(c)
			switch format {
			case "markdown":
				return c.Markdown(a.stdout)
			case "json":
				return a.printJSON(c)
			}
			return c.Text(a.stdout)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&rules, "fail-if", nil, `fail on this change: "acquire.p99 > +20%" or "throughput < -10%"`)
	f.Float64Var(&minChange, "min-change", minChange, "ignore changes of a median below this percentage")
	f.BoolVar(&o.Anyway, "anyway", false, "compare speed although environments differ or the machine was busy")
	addFormat(cmd, &format, "text", "json", "markdown")
	return cmd
}

func judgeComparison(c compare.Comparison) exitCode {
	code := exitOK
	if c.Compared == 0 {
		code = exitInconclusive
	}
	for _, s := range c.Safety {
		switch {
		case s.Known != "" || s.Change == compare.Better:
		case s.Change == compare.Worse:
			code = graver(code, exitUnsafe)
		default:
			code = graver(code, exitInconclusive)
		}
	}
	for _, g := range c.Failed {
		if g.Open != "" {
			code = graver(code, exitInconclusive)
		} else {
			code = graver(code, exitThreshold)
		}
	}
	return code
}
