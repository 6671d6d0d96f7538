package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroups shows the flags of a command in groups.
type flagGroups struct {
	set    *pflag.FlagSet
	titles []string
	of     map[string]string // the title of each flag
}

// begin starts a group: it gets the flags that are added from here on.
func (g *flagGroups) begin(title string) {
	g.close()
	g.titles = append(g.titles, title)
}

// close puts the flags that have no group yet into the last one.
func (g *flagGroups) close() {
	if g.of == nil {
		g.of = map[string]string{}
	}
	g.set.VisitAll(func(f *pflag.Flag) {
		if _, ok := g.of[f.Name]; !ok && len(g.titles) > 0 {
			g.of[f.Name] = g.titles[len(g.titles)-1]
		}
	})
}

// usage prints the usage of a command, as cobra does, with the flags in groups.
func (g *flagGroups) usage(cmd *cobra.Command) error {
	g.close() // also the flags of cobra
	fmt.Fprintf(cmd.OutOrStderr(), "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
	for _, title := range g.titles {
		group := pflag.NewFlagSet(title, pflag.ContinueOnError)
		g.set.VisitAll(func(f *pflag.Flag) {
			if g.of[f.Name] == title {
				group.AddFlag(f)
			}
		})
		if _, err := fmt.Fprintf(cmd.OutOrStderr(), "\n%s:\n%s", title, group.FlagUsages()); err != nil {
			return err
		}
	}
	return nil
}
