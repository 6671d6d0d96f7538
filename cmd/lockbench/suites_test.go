package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/testenv"
	"github.com/lockbench/lockbench/suites"
)

// expanded is a built-in suite with the recipes as they are.
func expanded(t *testing.T, name string) []scenario.Scenario {
	t.Helper()
	f, err := suites.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	list, err := f.Expand(catalogue())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// Every built-in suite can be run with the existing recipes, and those about all
// recipes leave none out.
func TestSuitesKnowTheRecipes(t *testing.T) {
	for _, name := range suites.Names() {
		ran := map[string]bool{}
		for _, sc := range expanded(t, name) {
			ran[sc.Recipe] = true
		}
		if !slices.Contains([]string{"safety", "properties", "cost", "takeover"}, name) {
			continue
		}
		for _, r := range all.Recipes() {
			if info := r.Info(); info.Backend != "reference" && !ran[info.ID] {
				t.Errorf("the suite %s leaves out %s", name, info.ID)
			}
		}
	}
}

// Every lock of the documents fails as documented, each time, and the sound ones
// do not fail. Shares of the suite run side by side, each on its own servers.
// Scenarios with a warning of a busy machine run again, alone.
func TestKnownFailures(t *testing.T) {
	testenv.NeedsServers(t)
	t.Parallel()
	env := os.Environ()
	if etcd := clustertest.Binary(t, "etcd"); etcd != "" {
		env = append(env, "LOCKBENCH_SERVER_ETCD="+etcd)
	}
	// They wait most of their time, so more of them run at once than the
	// machine has processors.
	var wg sync.WaitGroup
	outcomes := map[string]*outcome{}
	for name, recipes := range shares(expanded(t, "known-failures")) {
		o, out := &outcome{}, t.TempDir()
		outcomes[name] = o
		wg.Go(func() { *o = runKnownFailures(t.Context(), env, out, recipes) })
	}
	wg.Wait()
	for name, o := range outcomes {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				again := o.undecided()
				if len(again) == 0 {
					break
				}
				t.Logf("the machine was too busy to decide %v:\n%v\n%s", again, o.err, o.stderr)
				*o = runKnownFailures(t.Context(), env, t.TempDir(), again)
			}
			if o.err != nil {
				t.Errorf("%v\n%s", o.err, o.stderr)
			}
			for _, r := range o.doc.Scenarios {
				if surprising(r) {
					t.Errorf("%s: %s %s\n%s", r.Name, r.Status, r.Reason, strings.Join(r.Surprises, "\n"))
				}
			}
		})
	}
}

// outcome is what a run of the command came to.
type outcome struct {
	doc    scenario.Document
	stderr string
	err    error
}

func runKnownFailures(ctx context.Context, env []string, out string, recipes []string) (o outcome) {
	o.doc, o.stderr, o.err = runCommand(ctx, env, "run", "known-failures", "--recipe", strings.Join(recipes, ","), "--out", out, "--format", "json", "--quiet")
	return o
}

func surprising(r scenario.Result) bool {
	return r.Status != scenario.StatusDone || r.AsExpected == nil || !*r.AsExpected
}

// undecided are the recipes of scenarios that were not as expected on a machine
// that was busy, according to a warning of lockbench: then times depend on the
// machine more than on the lock. None if anything else was wrong: a sound lock
// that was unsafe, or broke its guarantee, always counts as wrong.
func (o *outcome) undecided() []string {
	var recipes []string
	for _, r := range o.doc.Scenarios {
		if !surprising(r) {
			continue
		}
		busy := slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, scenario.WarnBusy) })
		broken := r.Safety.Verdict == scenario.Unsafe && r.Expect.Verdict == scenario.Safe ||
			r.Safety.Promise == scenario.Broken && r.Expect.Promise == scenario.Kept
		if r.Status != scenario.StatusDone || !busy || broken {
			return nil
		}
		if !slices.Contains(recipes, r.Recipe) {
			recipes = append(recipes, r.Recipe)
		}
	}
	return recipes
}

// shares divides the recipes of a suite: by backend, and in two where that
// takes long.
func shares(list []scenario.Scenario) map[string][]string {
	const long = 40 * time.Second
	takes := map[string]time.Duration{} // by recipe, and by backend
	byBackend := map[string][]string{}
	for _, sc := range list {
		backend, _, _ := strings.Cut(sc.Recipe, "/")
		if takes[sc.Recipe] == 0 {
			byBackend[backend] = append(byBackend[backend], sc.Recipe)
		}
		planned := (sc.Warmup + sc.Duration).D()
		takes[sc.Recipe] += planned
		takes[backend] += planned
	}
	divided := map[string][]string{}
	for backend, recipes := range byBackend {
		// The longest first, each to the part with less work.
		slices.SortFunc(recipes, func(a, b string) int { return cmp.Compare(takes[b], takes[a]) })
		var first, second time.Duration
		for _, r := range recipes {
			if takes[backend] <= long || first <= second {
				first += takes[r]
				divided[backend] = append(divided[backend], r)
			} else {
				second += takes[r]
				divided[backend+"-2"] = append(divided[backend+"-2"], r)
			}
		}
	}
	return divided
}

// runCommand runs the command that TestMain provides for scripts, in a process
// of its own, and reads the result document that it prints.
func runCommand(ctx context.Context, env []string, args ...string) (d scenario.Document, stderr string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "lockbench", args...)
	cmd.Env = env
	cmd.WaitDelay = time.Minute
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		err = fmt.Errorf("lockbench %s: %w", strings.Join(args, " "), err)
		_ = json.Unmarshal(out.Bytes(), &d) // what there is of it, to say why
		return d, errs.String(), err
	}
	if err := json.Unmarshal(out.Bytes(), &d); err != nil {
		return d, errs.String(), fmt.Errorf("lockbench %s: its result cannot be read: %w", strings.Join(args, " "), err)
	}
	return d, errs.String(), nil
}
