package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/external"
	"github.com/lockbench/lockbench/internal/scenario"
)

// externalFlags name the servers of --env external.
type externalFlags struct {
	config    string
	passwords []string
	// allowDestructive permits faults on the servers themselves.
	allowDestructive bool
	loaded           *external.Config // nil: no configuration is given
}

func (f *externalFlags) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.config, "config", "", "with --env external: the file that names the servers")
	fl.StringArrayVar(&f.passwords, "password", nil, "read a password: BACKEND=env:NAME or BACKEND=file:PATH")
	fl.BoolVar(&f.allowDestructive, "allow-destructive", false, "permit faults on pinned and marked servers (see docs/external.md)")
}

// load reads the servers of the user's, if a configuration is given. The topology
// is that of the servers, unless the user gives one or runs a suite.
func (f *externalFlags) load(cmd *cobra.Command, args, recipes []string) error {
	if f.config == "" {
		if len(f.passwords) > 0 {
			return usage(errors.New("--password needs --config FILE, which names the servers"))
		}
		if f.allowDestructive {
			return usage(errors.New("--allow-destructive needs --config FILE, which names the servers"))
		}
		return nil
	}
	passwords, err := external.ParsePasswords(f.passwords)
	if err != nil {
		return usage(err)
	}
	c, err := external.Load(f.config, passwords)
	if err != nil {
		return usage(err)
	}
	f.loaded = c
	topologies := map[string]bool{}
	for _, id := range recipes {
		backend, _, _ := strings.Cut(id, "/")
		if s := c.Backends[backend]; s != nil {
			topologies[s.Topology] = true
		}
	}
	if len(topologies) == 1 && len(args) == 0 && !cmd.Flags().Changed("topology") {
		return cmd.Flags().Set("topology", slices.Collect(maps.Keys(topologies))[0])
	}
	return nil
}

// checkExternal rejects scenarios that the configuration does not allow.
func checkExternal(c *external.Config, file string, scenarios []scenario.Scenario) error {
	outside := false
	for _, sc := range scenarios {
		if sc.Environment != scenario.EnvExternal {
			continue
		}
		outside = true
		switch {
		case c == nil:
			return usage(errors.New("--env external needs --config FILE, which names the servers (see docs/external.md)"))
		case sc.Clients > c.MaxClients:
			return usage(fmt.Errorf("%s has %d clients, and external servers get %d at most: lower --clients, or set max_clients in %s", sc.Name, sc.Clients, c.MaxClients, file))
		}
	}
	if c != nil && !outside {
		return usage(errors.New("--config needs --env external: no scenario uses external servers"))
	}
	return nil
}

// loadLimits describes how much load external servers get at most.
func loadLimits(c *external.Config, scenarios []scenario.Scenario) string {
	clients, rates := 0, map[string]bool{}
	for _, sc := range scenarios {
		clients = max(clients, sc.Clients)
		switch l := sc.Workload; {
		case l.MaxRate > 0:
			rates[fmt.Sprintf("%v acquires/s", l.MaxRate)] = true
		case l.Rate > 0:
			rates[fmt.Sprintf("%v arrivals/s", l.Rate)] = true
		default:
			rates["no limit of the rate"] = true
		}
	}
	return fmt.Sprintf("external servers: up to %d clients (at most %d), %s; change them with --clients and --max-rate",
		clients, c.MaxClients, strings.Join(slices.Sorted(maps.Keys(rates)), ", "))
}
