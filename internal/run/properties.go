package run

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// properties measures the recipe's properties instead of a load, and leaves
// them in dir. Its client processes are this very executable, started again;
// the servers must be the scenario's alone, for some may be taken away.
func (r *runner) properties(ctx context.Context, sc scenario.Scenario, recipe impls.Recipe, s servers, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make the scenario's folder: %w", err)
	}
	if err := writeJSON(filepath.Join(dir, scenario.FileScenario), sc); err != nil {
		return err
	}
	subject := conformance.Subject{Recipe: recipe, Config: impls.Config{
		Addresses: s.addresses, Topology: sc.Topology, Directory: s.directory, Account: s.account, TTL: sc.TTL.D(), Timeout: sc.Timeout.D(),
	}}
	if s.cluster != nil { // a nil *Cluster would be a non-nil interface
		subject.Servers = s.cluster
	}
	findings, err := conformance.Measure(ctx, subject)
	if err != nil {
		return err
	}
	list := make([]scenario.Property, 0, len(findings))
	for _, f := range findings {
		p := scenario.Property{Property: string(f.Property), Promised: scenario.No, Measured: string(f.Measured), Evidence: f.Evidence}
		if f.Promised {
			p.Promised = scenario.Yes
		}
		for _, known := range impls.Properties() {
			if known.Property == f.Property {
				p.Claim = known.Claim
			}
		}
		list = append(list, p)
	}
	if err := s.healthy(ctx); err != nil {
		return fmt.Errorf("when the properties were measured the servers were not healthy: %w", err)
	}
	return writeJSON(filepath.Join(dir, scenario.FileProperties), list)
}
