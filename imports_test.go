package lockbench

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/lockbench/lockbench"

// layers lists the packages from the top down, as ARCHITECTURE.md draws them.
// A package may import only what stands below its own line.
var layers = []string{
	"cmd/lockbench",
	"internal/perf",
	"suites",
	"internal/run",
	"conformance",
	"reports/compare",
	"reports/advise",
	"reports",
	"reports/claims",
	"internal/measure",
	"checker",
	"chaos",
	"workloads",
	"internal/cluster/clustertest",
	"internal/cluster",
	"internal/container",
	"internal/external",
	"internal/worker",
	"internal/backend/all",
	"internal/backend/redis", "internal/backend/etcd", "internal/backend/zookeeper", "internal/backend/memcached", "internal/backend/mysql", "internal/backend/postgres",
	"internal/backend",
	"internal/supervise",
	"internal/netdrop",
	"impls/all",
	"impls/internal/recipetest",
	"impls/redis", "impls/etcd", "impls/zookeeper", "impls/memcached", "impls/mysql", "impls/postgres", "impls/reference",
	"impls",
	"internal/faultnet",
	"internal/scenario",
	"history/historytest",
	"history",
	"internal/printable",
	"internal/testenv",
	"tools/plainenglish",
	"tools/typecheck",
}

// forbidden lists what some packages may not import although it stands below
// them: the packages that judge must not know the servers.
var forbidden = map[string][]string{
	"checker": {"internal/cluster", "impls", "chaos", "workloads", "internal/faultnet", "internal/scenario"},
	"history": {"*"},
	"impls":   {"internal/cluster", "internal/scenario", "internal/faultnet"},
	"reports": {"internal/cluster", "workloads", "internal/run"},
	// The verdicts on claims depend on results alone.
	"reports/claims": {"internal/cluster", "workloads", "internal/measure", "checker", "chaos", "impls"},
}

func TestImportsPointDownwards(t *testing.T) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	rank := map[string]int{}
	for i, p := range layers {
		rank[p] = i
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	seen := 0
	for dec.More() {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := dec.Decode(&p); err != nil {
			t.Fatal(err)
		}
		from, ok := strings.CutPrefix(p.ImportPath, module+"/")
		if !ok {
			continue // the root, which holds only this test
		}
		seen++
		own, ok := rank[from]
		if !ok {
			t.Errorf("package %s has no place in the layers: give it one here and in ARCHITECTURE.md", from)
			continue
		}
		for _, imported := range p.Imports {
			to, ok := strings.CutPrefix(imported, module+"/")
			if !ok {
				continue
			}
			if rank[to] <= own {
				t.Errorf("%s imports %s, which stands above or beside it", from, to)
			}
			for _, f := range forbidden[from] {
				if f == "*" || to == f || strings.HasPrefix(to, f+"/") {
					t.Errorf("%s imports %s, which it must not know", from, to)
				}
			}
		}
	}
	if seen < len(layers)/2 {
		t.Fatalf("go list named only %d packages of ours: the check checks nothing", seen)
	}
}
