package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports"
	"github.com/lockbench/lockbench/reports/claims"
)

func (a *app) claimsCommand() *cobra.Command {
	var only []string
	var format string
	cmd := &cobra.Command{
		Use:   "claims DIR...",
		Short: "Decide the documents' claims by runs of the suite claims",
		Long: `Print a verdict on each claim of the documents: confirmed, refuted, or
inconclusive with the reason. The rules are those of lockbench list claims. With
several folders their repeats count together, and two locks are compared within
each run.`,
		Example: `  lockbench run claims --only rank-performance,zk-slower
  lockbench claims results/2026-01-31T120000-claims`,
		Args: argCount(cobra.MinimumNArgs(1), "the folder of a run of the suite claims, or of several"),
		RunE: func(_ *cobra.Command, args []string) error {
			list, err := reports.Claims(args, only)
			if err != nil {
				return usage(err)
			}
			switch format {
			case "json":
				return a.printJSON(list)
			case "markdown":
				return reports.ClaimsMarkdown(a.stdout, list)
			}
			return reports.ClaimsText(a.stdout, list, a.textOptions())
		},
	}
	addOnly(cmd.Flags(), &only)
	addFormat(cmd, &format, "text", "json", "markdown")
	complete(cmd, map[string]func() []string{"only": claimIDs})
	return cmd
}

func addOnly(fl *pflag.FlagSet, only *[]string) {
	fl.StringSliceVar(only, "only", nil, "only these comma-separated claims (see lockbench list claims)")
}

func claimIDs() []string {
	all, _ := claims.All() // a test parses them
	var ids []string
	for _, c := range all {
		ids = append(ids, c.ID)
	}
	return ids
}

// claimsAsTheyAre rejects flags and files that change the scenarios of the suite
// claims: its rules hold for them as they are.
func claimsAsTheyAre(flags *pflag.FlagSet, args []string) error {
	if len(args) == 0 || args[0] != claims.Suite || isPath(args[0]) {
		return nil
	}
	var changing []string
	allowed := []string{"only", "recipe", "repeat", "budget", "parallel", "max-disk", "seed", "out", "format", "quiet", "dry-run", "server"}
	flags.Visit(func(f *pflag.Flag) {
		if !slices.Contains(allowed, f.Name) {
			changing = append(changing, "--"+f.Name)
		}
	})
	if len(changing) > 0 {
		return usage(fmt.Errorf("%s: the rules of the claims hold for the suite %s as it is; leave the flag out", strings.Join(changing, ", "), claims.Suite))
	}
	return nil
}

// forClaims keeps the scenarios that the claims in only need.
func (p *plan) forClaims(args, only []string) error {
	switch {
	case p.Suite == claims.Suite && p.file.Name != "" && isPath(args[0]):
		return usage(fmt.Errorf("%s: the name %q belongs to the built-in suite, whose rules would be applied; rename the suite", args[0], claims.Suite))
	case p.Suite != claims.Suite && len(only) > 0:
		return usage(fmt.Errorf("--only selects claims, which the suite %s does not decide; write lockbench run %s --only", p.Suite, claims.Suite))
	case len(only) == 0:
		return nil
	}
	all, err := claims.All()
	if err != nil {
		return err
	}
	picked, err := claims.ByID(all, only)
	if err != nil {
		return usage(err)
	}
	kept := p.Scenarios[:0]
	for _, sc := range p.Scenarios {
		if slices.ContainsFunc(picked, func(c claims.Claim) bool { return c.Needs(sc.Group, sc.Recipe, sc.Clients) }) {
			kept = append(kept, sc)
		}
	}
	p.Scenarios = kept
	return nil
}

// listedClaim is one claim of the list.
type listedClaim struct {
	ID         string   `json:"id"`
	Claim      string   `json:"claim"`
	Documents  []string `json:"documents"`
	Experiment string   `json:"experiment"`
	Rule       []string `json:"rule"`
	Limits     string   `json:"limits,omitempty"`
}

func (a *app) listClaims(format string, ids []string) error {
	all, err := claims.All()
	if err != nil {
		return err
	}
	var list []listedClaim
	var lines []scenario.Entry
	for _, c := range all {
		if len(ids) > 0 && !slices.Contains(ids, c.ID) {
			continue
		}
		l := listedClaim{c.ID, c.Claim, c.Documents, c.Experiment, c.Words(), c.Limits}
		list = append(list, l)
		text := fmt.Sprintf("%s (%s). Experiment: %s. Rule: %s.", c.Claim, strings.Join(c.Documents, ", "), c.Experiment, strings.Join(l.Rule, "; "))
		if c.Limits != "" {
			text += " Left open: " + c.Limits + "."
		}
		lines = append(lines, scenario.Entry{Name: c.ID, Summary: text})
	}
	if format == "json" {
		return a.printJSON(list)
	}
	return a.listEntries(format, lines)
}
