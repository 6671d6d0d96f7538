package run

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/scenario"
)

// childNamed finds the child process of this one whose command line holds the
// text, or 0.
func childNamed(t *testing.T, text string) int {
	t.Helper()
	for _, pid := range descendants(t, os.Getpid()) {
		line, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		if err == nil && strings.Contains(string(line), text) {
			return pid
		}
	}
	return 0
}

// killAtWork kills, when the clients of the first scenario are at work, the child
// whose command line holds the text. It lets this scenario go on until clients
// have acquired so many more locks, and the others until they have acquired some.
func killAtWork(t *testing.T, text string, more uint64) func(scenario.Scenario, uint64) bool {
	const some = 200
	first, at := "", uint64(0)
	return func(sc scenario.Scenario, acquired uint64) bool {
		switch {
		case acquired < some:
			return false
		case first == sc.Name:
			return acquired >= at+more
		case first != "":
			return true
		}
		first, at = sc.Name, acquired
		if pid := childNamed(t, text); pid == 0 {
			t.Errorf("no child %q to kill", text)
		} else if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Error(err)
		}
		return false
	}
}

// again judges the scenario's folder a second time, as lockbench check does.
func again(t *testing.T, dir string, r scenario.Result) scenario.Result {
	t.Helper()
	recipe, _ := all.Find(r.Recipe)
	res, err := measure.Scenario(filepath.Join(dir, scenario.DirScenarios, r.Name), recipe.Info(), measure.Options{SkipLatencyFile: true})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// A worker is killed from outside: the others go on, and their records are true,
// but prove nothing.
func TestWorkerKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	list := plan(t, []string{"reference/mutex"}, scenario.Settings{
		Clients: []int{4},
		Scenario: scenario.Scenario{
			Workload: scenario.Load{Kind: scenario.HotKey}, Workers: 2, TTL: scenario.Duration(time.Second),
			Duration: long, Warmup: scenario.Duration(100 * time.Millisecond)},
	})
	o := options(t, list)
	o.enough = killAtWork(t, filepath.Base(self), 200)
	out, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r := out.Document.Scenarios[0]
	for _, r := range []scenario.Result{r, again(t, out.Dir, r)} {
		if r.AsExpected != nil || r.Safety.Verdict != scenario.Undecided || len(r.Surprises) == 0 || r.Acquired == 0 {
			t.Errorf("%s %s, verdict %s, as expected %v, %d acquired: %v", r.Status, r.Reason, r.Safety.Verdict, r.AsExpected, r.Acquired, r.Surprises)
		}
	}
}

// A server is killed from outside: the scenario fails; the scenarios after it get
// a new server, and those of the other backend go on.
func TestServerKilled(t *testing.T) {
	list := plan(t, []string{"redis/token", "reference/mutex"}, scenario.Settings{
		Clients: []int{4},
		Scenario: scenario.Scenario{
			Workload: scenario.Load{Kind: scenario.HotKey}, TTL: scenario.Duration(time.Second), Timeout: scenario.Duration(500 * time.Millisecond),
			Duration: long, Warmup: scenario.Duration(100 * time.Millisecond), Repeat: 2},
	})
	o := options(t, list)
	o.enough = killAtWork(t, "redis-server", 0)
	out, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range out.Document.Scenarios {
		if r.Backend == BackendReference {
			if r.Status != scenario.StatusDone || r.AsExpected == nil || !*r.AsExpected {
				t.Errorf("%s: %s %s %v", r.Name, r.Status, r.Reason, r.Surprises)
			}
			continue
		}
		if i > 0 {
			if r.Status != scenario.StatusDone || r.AsExpected == nil || !*r.AsExpected {
				t.Errorf("%s, on a new server: %s %s %v", r.Name, r.Status, r.Reason, r.Surprises)
			}
			continue
		}
		if !strings.Contains(r.Reason, "killed") {
			t.Errorf("the reason does not show how the server ended: %s", r.Reason)
		}
		for _, r := range []scenario.Result{r, again(t, out.Dir, r)} {
			if r.Status != scenario.StatusFailed || r.Safety.Verdict == scenario.Safe || r.AsExpected != nil {
				t.Errorf("%s: %s, verdict %s, as expected %v", r.Name, r.Status, r.Safety.Verdict, r.AsExpected)
			}
		}
	}
	var env scenario.Environment
	readJSON(t, filepath.Join(out.Dir, scenario.FileEnvironment), &env)
	if len(env.Clusters) != 2 {
		t.Errorf("the record names %d servers, want the dead one and the new one", len(env.Clusters))
	}
}

// A fault that would stop more than the one client is refused, also where no
// validation stood in the way.
func TestPauseOfTwoClientsIsRefused(t *testing.T) {
	t.Parallel()
	list := plan(t, []string{"reference/mutex"}, scenario.Settings{
		Clients: []int{4},
		Faults:  faults(scenario.Fault{Kind: "holder-pause", At: scenario.Duration(100 * time.Millisecond)}), Scenario: scenario.Scenario{Workload: scenario.Load{Kind: scenario.HotKey, Hold: scenario.Dist{Kind: scenario.DistConstant, A: 20 * time.Millisecond}},
			// A key counts as stuck once it was free for longer than the lease: a long
			// one, so that no stall of the machine is that.
			TTL: scenario.Duration(10 * time.Second), Duration: long, Warmup: scenario.Duration(100 * time.Millisecond)},
	})
	list[0].Workers = 2
	o := options(t, list)
	o.enough = shown(o.Out)
	out, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r := out.Document.Scenarios[0]
	if len(r.Faults) != 1 || r.Faults[0].Status != "missed" || !strings.Contains(r.Faults[0].Reason, "hosts 2 clients") || r.Safety.Verdict != scenario.Undecided || r.AsExpected != nil {
		t.Errorf("faults %+v, safety %+v, surprises %v, warnings %v", r.Faults, r.Safety, r.Surprises, r.Warnings)
	}
}

// With registers the controller's own stream counts too: without it the
// history is damaged.
func TestControllerStreamIsMissed(t *testing.T) {
	list := plan(t, []string{"reference/mutex"}, scenario.Settings{
		Clients: []int{2}, Scenario: scenario.Scenario{Workload: scenario.Load{Kind: scenario.GuardedCounter},
			Duration: long, Warmup: scenario.Duration(50 * time.Millisecond)},
	})
	o := options(t, list)
	o.enough = shown(o.Out)
	out, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r := out.Document.Scenarios[0]
	if r.AsExpected == nil || !*r.AsExpected {
		t.Fatalf("before: %v", r.Surprises)
	}
	path := filepath.Join(out.Dir, scenario.DirScenarios, r.Name, scenario.FileHistory)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	// The merged file without its last stream, and without the frames that
	// would show it: the clients' own headers must suffice.
	at := strings.LastIndex(string(data), "LBMERGED")
	from := strings.Index(string(data), "LBSTREAM")
	next := strings.Index(string(data[from:]), "LBMERGED") + from
	dir := t.TempDir()
	for name, part := range map[string][]byte{"0.lbh": data[from:next], "1.lbh": data[next+64 : at]} {
		if err := os.WriteFile(filepath.Join(dir, name), part, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	h, err := history.Read(dir)
	if err != nil && !errors.Is(err, history.ErrNoRecords) {
		t.Fatal(err)
	}
	if len(h.Streams) != 2 || len(h.Damage) != 1 || !strings.Contains(h.Damage[0].What, "1 of 3 streams are missing") {
		t.Errorf("%d streams, damage %v", len(h.Streams), h.Damage)
	}
}
