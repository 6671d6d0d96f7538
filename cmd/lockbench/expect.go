package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/lockbench/lockbench/internal/scenario"
)

// expectFlags are the flags that decide what passes.
type expectFlags struct {
	words []string
	known string
}

func (f *expectFlags) add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.words, "expect", nil, `require of every scenario: safe, kept, live, "acquire.p99 < 20ms"`)
	fl.StringVar(&f.known, "known", "", "accept the failures of the scenarios that this file names")
}

// apply puts --expect over the plan's expectations, and reads --known.
func (f expectFlags) apply(p *plan) error {
	e, err := scenario.ParseExpect(f.words)
	if err != nil {
		return usage(fmt.Errorf("--expect: %w", err))
	}
	if len(f.words) > 0 {
		for i := range p.Scenarios {
			p.Scenarios[i] = p.Scenarios[i].Require(e)
		}
	}
	if (e.Verdict != "" || e.Liveness != "") && !slices.ContainsFunc(p.Scenarios, scenario.Scenario.Competes) {
		return usage(fmt.Errorf("--expect: no two clients compete in %s, so there will be no evidence of safety; use --workload hot-key with several clients", p.Suite))
	}
	if f.known == "" {
		return nil
	}
	data, err := os.ReadFile(f.known)
	if err != nil {
		return usage(fmt.Errorf("--known: %w", err))
	}
	if p.known, err = scenario.ParseKnownFailures(f.known, data); err != nil {
		return usage(fmt.Errorf("--known: %w", err))
	}
	return nil
}

// warnOfLeases prints which recipes may lose the lock to another client because a
// hold lasts longer than its lease.
func (a *app) warnOfLeases(scenarios []scenario.Scenario) {
	warned := map[string]bool{}
	for _, sc := range scenarios {
		r, _ := find(sc.Recipe) // the expansion has checked it
		if why := sc.OutlivesLease(string(r.Info().Bound)); why != "" && !warned[why] {
			warned[why] = true
			fmt.Fprintf(a.stderr, "lockbench: warning: %s\n", why)
		}
	}
}

// wouldExit prints, for a run without --expect, what --expect safe would have
// changed: an unsafe lock that behaves as documented exits with 0.
func (a *app) wouldExit(d scenario.Document) {
	unsafe, competed := 0, 0
	d.Scenarios = slices.Clone(d.Scenarios)
	for i := range d.Scenarios {
		r := &d.Scenarios[i]
		if r.Status != scenario.StatusDone || !r.Competed() {
			continue
		}
		competed++
		r.Expect.Verdict = scenario.Safe
		switch r.Safety.Verdict {
		case scenario.Unsafe:
			unsafe++
			r.AsExpected = new(bool)
		case scenario.Undecided:
			if r.AsExpected != nil && *r.AsExpected {
				r.AsExpected = nil
			}
		}
	}
	switch code := judge(d); {
	case competed == 0 || d.Interrupted:
	case code == a.code:
		fmt.Fprintf(a.stderr, "lockbench: exit code %d, with --expect safe too\n", code)
	default:
		fmt.Fprintf(a.stderr, "lockbench: exit code %d; with --expect safe it would be %d (unsafe in %d of %s)\n", a.code, code, unsafe, scenariosText(competed))
	}
}
