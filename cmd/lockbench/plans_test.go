package main

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/suites"
)

var updatePlans = flag.Bool("update", false, "rewrite suites/testdata/plans")

// A plan must not change by accident: results are compared by scenario name, and
// a seed must keep its meaning. Each line of a fixture is the name of a scenario
// and a hash of its JSON, as --dry-run --format json prints it.
func TestPlansStayTheSame(t *testing.T) {
	for _, name := range suites.Names() {
		seeds := []uint64{1, 2, 7}
		if name == "safety" {
			seeds = seeds[:1] // 3000 scenarios
		}
		for _, seed := range seeds {
			t.Run(fmt.Sprintf("%s-%d", name, seed), func(t *testing.T) {
				file := filepath.Join("..", "..", "suites", "testdata", "plans", fmt.Sprintf("%s-%d.txt", name, seed))
				got := planHashes(t, name, seed)
				if *updatePlans {
					if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
					return
				}
				want, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				reportPlanChanges(t, string(want), got)
			})
		}
	}
}

func planHashes(t *testing.T, suite string, seed uint64) string {
	t.Helper()
	f, err := suites.Load(suite)
	if err != nil {
		t.Fatal(err)
	}
	f.Seed = seed
	plan, err := f.Expand(catalogue())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, sc := range plan {
		data, err := json.Marshal(sc)
		if err != nil {
			t.Fatal(err)
		}
		hash := sha256.Sum256(data)
		fmt.Fprintf(&b, "%s %x\n", sc.Name, hash[:8])
	}
	return b.String()
}

// reportPlanChanges names every scenario that was added, removed, changed or moved.
func reportPlanChanges(t *testing.T, want, got string) {
	t.Helper()
	if want == got {
		return
	}
	hashes := func(text string) map[string]string {
		byName := map[string]string{}
		for line := range strings.Lines(text) {
			name, hash, _ := strings.Cut(line, " ")
			byName[name] = hash
		}
		return byName
	}
	before, now := hashes(want), hashes(got)
	for name, hash := range before {
		switch {
		case now[name] == "":
			t.Errorf("%s: missing from the plan", name)
		case now[name] != hash:
			t.Errorf("%s: the plan changed", name)
		}
	}
	for name := range now {
		if before[name] == "" {
			t.Errorf("%s: new in the plan", name)
		}
	}
	if !t.Failed() {
		t.Error("the order of the scenarios changed")
	}
	t.Log("run go test ./cmd/lockbench -run TestPlansStayTheSame -update if this is intended")
}
