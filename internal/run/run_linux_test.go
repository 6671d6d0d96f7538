package run

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
	"github.com/lockbench/lockbench/internal/measure"
	"github.com/lockbench/lockbench/internal/netdrop"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
	"github.com/lockbench/lockbench/internal/testenv"
	"github.com/lockbench/lockbench/workloads"
)

// envController makes the test binary run scenarios as a process of its own,
// for tests that kill it.
const envController = "LOCKBENCH_TEST_CONTROLLER"

func TestMain(m *testing.M) {
	netdrop.MainIfProbe()
	workloads.MainIfWorker(findPlanted)
	conformance.MainIfClient(all.Find)
	if dir := os.Getenv(envController); dir != "" {
		os.Exit(controllerMain(dir))
	}
	os.Exit(m.Run())
}

// plan resolves an experiment as the command would.
func plan(t testing.TB, recipes []string, s scenario.Settings) []scenario.Scenario {
	t.Helper()
	var facts []scenario.RecipeFacts
	for _, r := range all.Recipes() {
		facts = append(facts, Facts(r))
	}
	s.Recipes = recipes
	list, err := scenario.File{Name: "test", Seed: 1, Scenarios: []scenario.Block{{Name: "t", Settings: s}}}.Expand(scenario.NewCatalogue(chaos.Actions(), facts...))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// faults is a schedule as a suite gives it.
func faults(list ...scenario.Fault) (specs []scenario.FaultSpec) {
	for _, f := range list {
		specs = append(specs, scenario.FaultSpec{Fault: f})
	}
	return specs
}

func options(t testing.TB, list []scenario.Scenario) Options {
	t.Helper()
	testenv.NeedsProcesses(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Suite: "test", Seed: 1, Scenarios: list, Out: t.TempDir(), Find: all.Find, Worker: []string{self}, Temp: t.TempDir(), Binaries: map[string]string{}}
}

// The controls, on real processes: the right lock is not accused, the broken
// one is caught, and every file of the folder is there.
func TestControls(t *testing.T) {
	list := plan(t, []string{"reference/mutex", "reference/broken"}, scenario.Settings{
		Clients: []int{8},
		Scenario: scenario.Scenario{
			Workload: scenario.Load{Kind: scenario.HotKey}, Warmup: scenario.Duration(200 * time.Millisecond),
			// One contended acquire in a hundred is granted twice, and on a busy
			// machine not every pair overlaps: the load goes on until one does.
			Poll:     scenario.Poll{Min: time.Millisecond, Max: 3 * time.Millisecond},
			Duration: long},
	})
	o, look := options(t, list), newOnlooker()
	o.Progress = look
	o.enough = func(sc scenario.Scenario, acquired uint64) bool {
		return acquired > 1000 && (sc.Recipe == "reference/mutex" || soFar(o.Out, sc).Overlaps > 0)
	}
	out, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{scenario.Safe, scenario.Unsafe} {
		r := out.Document.Scenarios[i]
		if want == scenario.Safe {
			look.saw(t, r)
		}
		if r.Status != scenario.StatusDone || r.Safety.Verdict != want || r.AsExpected == nil || !*r.AsExpected {
			t.Errorf("%s: %s %s, verdict %s (%v), want %s: %v", r.Recipe, r.Status, r.Reason, r.Safety.Verdict, r.Safety.Why, want, r.Surprises)
		}
		if r.Acquired == 0 || r.Acquire == nil || r.Throughput == nil {
			t.Errorf("%s: nothing was measured: %+v", r.Recipe, r)
		}
		for _, name := range []string{scenario.FileScenario, scenario.FileHistory, scenario.FileSamples, scenario.FileFaults, scenario.FileLatency} {
			if _, err := os.Stat(filepath.Join(out.Dir, scenario.DirScenarios, r.Name, name)); err != nil {
				t.Error(err)
			}
		}
	}
	for _, name := range []string{scenario.FileSuite, scenario.FileEnvironment, scenario.FileResult} {
		if _, err := os.Stat(filepath.Join(out.Dir, name)); err != nil {
			t.Error(err)
		}
	}
	if Live(out.Dir) {
		t.Error("a finished run still looks live")
	}
	again, err := scenario.ReadDocument(out.Dir)
	if err != nil || len(again.Scenarios) != 2 {
		t.Errorf("result.json: %d scenarios, %v", len(again.Scenarios), err)
	}
}

// The fault finds its holder, and the history proves it: the lease is outlived,
// the plain register damaged, the fenced one not.
func TestHolderPause(t *testing.T) {
	t.Parallel()
	// A long hold, so that the pause falls between the reads and the writes. On a
	// busy machine it may fall before or after them all the same: then another run
	// shows it.
	for try := 1; !holderPause(t, try < 5); try++ {
	}
}

// holderPause is one run. It answers false if the holder was paused outside of its
// reads and writes, and that may be.
func holderPause(t *testing.T, mayMiss bool) bool {
	t.Helper()
	list := plan(t, []string{"reference/mutex"}, scenario.Settings{
		Clients: []int{4},
		Faults:  faults(scenario.Fault{Kind: "holder-pause", At: scenario.Duration(300 * time.Millisecond)}), Scenario: scenario.Scenario{Workload: scenario.Load{Kind: scenario.GuardedCounter, Hold: scenario.Dist{Kind: scenario.DistConstant, A: 300 * time.Millisecond}},
			TTL: scenario.Duration(time.Second), Duration: long, Warmup: scenario.Duration(200 * time.Millisecond)},
	})
	o := options(t, list)
	o.enough = shown(o.Out)
	out, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r := out.Document.Scenarios[0]
	if len(r.Faults) != 1 || r.Faults[0].Status != "effective" {
		t.Fatalf("faults %+v, want one that was effective", r.Faults)
	}
	if r.Safety.Verdict != scenario.Unsafe || r.Safety.Promise != scenario.Kept || r.Safety.Overlaps == 0 {
		t.Errorf("verdict %s, promise %s, %d overlaps: %v", r.Safety.Verdict, r.Safety.Promise, r.Safety.Overlaps, r.Safety.Why)
	}
	if len(r.Safety.Registers) != 2 {
		t.Errorf("registers %+v, want both side by side", r.Safety.Registers)
	}
	for _, reg := range r.Safety.Registers {
		switch reg.Name {
		case scenario.GuardPlain:
			if reg.LostUpdates == 0 && mayMiss {
				return false
			}
			if reg.LostUpdates == 0 {
				t.Errorf("the plain register lost nothing: %+v", reg)
			}
		case scenario.GuardFenced:
			if reg.LostUpdates != 0 || reg.Rejected == 0 {
				t.Errorf("the fenced register: %+v, want nothing lost and a write rejected", reg)
			}
		}
	}
	return true
}

// Ctrl-C during a run: the records so far are measured, the rest is reported as not
// run, and no process or file stays behind.
func TestInterrupted(t *testing.T) {
	list := plan(t, []string{"reference/mutex"}, scenario.Settings{
		Clients: []int{4}, Scenario: scenario.Scenario{Workload: scenario.Load{Kind: scenario.HotKey}, Duration: scenario.Duration(time.Hour), Repeat: 2},
	})
	o := options(t, list)
	ctx, cancel := context.WithCancel(t.Context())
	o.Progress = &onTick{do: func(acquired uint64) {
		if acquired > 100 {
			cancel()
		}
	}}
	out, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	if !out.Document.Interrupted {
		t.Error("the document does not say that the run was interrupted")
	}
	first, second := out.Document.Scenarios[0], out.Document.Scenarios[1]
	if first.Status != scenario.StatusInterrupted || first.Acquired+first.Failed == 0 && first.Safety.ContendedGrants == 0 {
		t.Errorf("the scenario under way: %s, %d acquired, %+v", first.Status, first.Acquired, first.Safety)
	}
	if second.Status != scenario.StatusInterrupted || second.Acquired != 0 {
		t.Errorf("the scenario that never began: %+v", second)
	}
	nothingIn(t, o.Temp)
}

// onTick is a Progress that acts while a scenario runs.
type onTick struct {
	Silent
	mu sync.Mutex
	do func(acquired uint64)
}

func (p *onTick) Tick(_ scenario.Scenario, at Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.do(at.Acquired)
}

// nothingIn checks that no live run's folder is left.
func nothingIn(t testing.TB, temp string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(temp, "lockbench-*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range left {
		if st, err := os.Stat(path); err == nil && st.IsDir() {
			t.Errorf("%s was left behind", path)
		}
	}
}

// controllerMain is a run in a process of its own; it prints the run's folder
// once clients are at work.
func controllerMain(dir string) int {
	var list []scenario.Scenario
	data, err := os.ReadFile(filepath.Join(dir, "plan.json"))
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err == nil {
		err = EnterKernel(list)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	self, _ := os.Executable()
	shows := shown(filepath.Join(dir, "out"))
	_, err = Run(context.Background(), Options{
		Suite: "test", Seed: 1, Scenarios: list, Out: filepath.Join(dir, "out"), Temp: filepath.Join(dir, "tmp"),
		Find: func(id string) (impls.Recipe, bool) { return all.Find(id) }, Worker: []string{self},
		Progress: &onTick{do: func(acquired uint64) {
			if acquired > 200 {
				fmt.Println("working")
			}
		}},
		enough: func(sc scenario.Scenario, acquired uint64) bool {
			return len(sc.Faults) > 0 && shows(sc, acquired)
		},
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// controller prepares a run of the list in a process of its own.
func controller(t *testing.T, dir string, list []scenario.Scenario) *exec.Cmd {
	t.Helper()
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plan.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), envController+"="+dir)
	if etcd := clustertest.Binary(t, "etcd"); etcd != "" {
		cmd.Env = append(cmd.Env, "LOCKBENCH_SERVER_ETCD="+etcd)
	}
	return cmd
}

// kill -9 of the controller while real servers and workers are at work: they
// end at once, the sweep removes what is left, and the histories are readable.
func TestKillNine(t *testing.T) {
	testenv.NeedsServers(t, "etcd")
	dir := t.TempDir()
	// All five servers run from the start to the end of the run.
	list := plan(t, []string{"redis/token", "etcd/mutex", "zookeeper/sequence", "memcached/cas", "mysql/lease-row"}, scenario.Settings{
		Clients: []int{6}, Scenario: scenario.Scenario{Workload: scenario.Load{Kind: scenario.HotKey}, Workers: 3, Duration: scenario.Duration(time.Hour)},
	})
	cmd := controller(t, dir, list)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() || lines.Text() != "working" {
		_ = cmd.Process.Kill()
		t.Fatalf("the run did not get to work: %q, %v", lines.Text(), cmd.Wait())
	}
	children := descendants(t, cmd.Process.Pid)
	if len(children) < 8 { // five servers and three workers
		t.Errorf("only %v run under the controller: are all servers installed? `make servers` brings them", children)
	}
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	for _, pid := range children {
		awaitGone(t, pid)
	}
	if _, err := supervise.Sweep(filepath.Join(dir, "tmp")); err != nil {
		t.Fatal(err)
	}
	nothingIn(t, filepath.Join(dir, "tmp"))

	folders, err := filepath.Glob(filepath.Join(dir, "out", "*", scenario.DirScenarios, "*", scenario.DirClients))
	if err != nil || len(folders) != 1 {
		t.Fatalf("folders of histories: %v, %v", folders, err)
	}
	h, err := history.Read(folders[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Damage) > 0 || len(h.Calls) < 200 || len(h.Streams) != 6 {
		t.Errorf("%d calls of %d clients, damage %v", len(h.Calls), len(h.Streams), h.Damage)
	}

	// The rest proves nothing in favour of the lock, and a client's file that is
	// gone is noticed.
	recipe, _ := all.Find("redis/token")
	judged := func() scenario.Result {
		t.Helper()
		r, err := measure.Scenario(filepath.Dir(folders[0]), recipe.Info(), measure.Options{SkipLatencyFile: true})
		if err != nil {
			t.Fatal(err)
		}
		if r.Safety.Verdict == scenario.Safe || r.AsExpected != nil {
			t.Errorf("a dead run: verdict %s, as expected %v", r.Safety.Verdict, r.AsExpected)
		}
		return r
	}
	judged()
	if err := os.Remove(filepath.Join(folders[0], "client-000003.lbh")); err != nil {
		t.Fatal(err)
	}
	if r := judged(); len(r.Safety.Damage) != 1 || !strings.Contains(r.Safety.Damage[0], "1 of 6 streams are missing") {
		t.Errorf("without a client's file: damage %v", r.Safety.Damage)
	}
}

// descendants lists the processes under pid.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		t.Fatal(err)
	}
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		more, err := os.ReadFile(task)
		if err == nil {
			data = append(append(data, ' '), more...)
		}
	}
	seen := map[int]bool{}
	var list []int
	for _, f := range strings.Fields(string(data)) {
		var child int
		if _, err := fmt.Sscan(f, &child); err == nil && !seen[child] {
			seen[child] = true
			list = append(list, child)
		}
	}
	return list
}

// awaitGone waits until pid has ended; a zombie has.
func awaitGone(t *testing.T, pid int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if os.IsNotExist(err) {
			return
		}
		if i := strings.LastIndexByte(string(stat), ')'); i > 0 && strings.HasPrefix(string(stat[i:]), ") Z") {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d outlived its controller: %s", pid, stat)
		}
	}
}
