package run

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/netdrop"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/testenv"
)

// cutFor is long enough for a client to lose its lease.
const cutFor = scenario.Duration(4 * time.Second)

// faulted is a load of some clients under one fault, with leases that a slow
// machine does not outlast.
func faulted(recipe string, fault scenario.Fault, adjust ...func(*scenario.Settings)) trial {
	if fault.At == 0 {
		fault.At = scenario.Duration(300 * time.Millisecond)
	}
	s := scenario.Settings{
		Clients: []int{4}, Faults: faults(fault), Scenario: scenario.Scenario{Workload: scenario.Load{Kind: scenario.HotKey, Hold: scenario.Dist{Kind: scenario.DistConstant, A: 20 * time.Millisecond}},
			TTL: scenario.Duration(3 * time.Second), Wire: scenario.WireProxy,
			Duration: long},
	}
	for _, f := range adjust {
		f(&s)
	}
	return trial{name: recipe[strings.Index(recipe, "/")+1:] + "-" + fault.Kind, recipe: recipe, settings: s}
}

// hits checks that the fault of a scenario hit, and how.
func hits(t *testing.T, r scenario.Result, mechanism string) scenario.FaultResult {
	t.Helper()
	if len(r.Faults) != 1 {
		t.Fatalf("%d faults", len(r.Faults))
	}
	f := r.Faults[0]
	if f.Status != "effective" || !strings.Contains(f.Mechanism, mechanism) {
		t.Errorf("%s %s by %q, want it effective by %q: %s", f.Kind, f.Status, f.Mechanism, mechanism, f.Reason)
	}
	return f
}

// injected checks the injection in the log; whether it counts as a hit is checked
// elsewhere.
func injected(t *testing.T, out Outcome, name, how string) {
	t.Helper()
	for _, e := range faultEvents(t, filepath.Join(out.Dir, scenario.DirScenarios, name)) {
		if e.Event == "injected" && strings.Contains(e.How, how) {
			return
		}
	}
	t.Errorf("%s: the log knows of no fault by %q", name, how)
}

// Every way to a client and to a server, on real ones, whole runs through, side
// by side: the fault hits its target, the servers recover, and the probe finds
// the lock that a dead client left for ever, and no other.
func TestFaultsOfEveryWay(t *testing.T) {
	t.Parallel()
	lanes := &lanes{onlooker: newOnlooker(), of: map[string]string{}, busy: map[string]bool{}}
	clean := func(t *testing.T, r scenario.Result) {
		t.Helper()
		lanes.saw(t, r)
		if r.Safety.Orphans == nil || *r.Safety.Orphans != 0 || r.Safety.Verdict == scenario.Unsafe || r.Safety.Promise == scenario.Broken {
			t.Errorf("orphans %v, verdict %s, promise %s: %v", r.Safety.Orphans, r.Safety.Verdict, r.Safety.Promise, r.Safety.Why)
		}
	}
	orphans := func(want int64) func(*testing.T, scenario.Result) {
		return func(t *testing.T, r scenario.Result) {
			hits(t, r, "SIGKILL")
			if want > 0 && r.Safety.Liveness != scenario.Stuck {
				t.Errorf("liveness %s of a key that no client can get: %v", r.Safety.Liveness, r.Safety.Why)
			}
			lanes.saw(t, r)
			if r.Safety.Orphans == nil || *r.Safety.Orphans != want {
				t.Errorf("orphans %v, want %d", r.Safety.Orphans, want)
			}
		}
	}
	quorum := func(s *scenario.Settings) {
		s.Topology = []string{"quorum"}
	}
	trials := []trial{
		faulted("reference/mutex", scenario.Fault{Kind: "holder-cut", For: cutFor}),
		faulted("reference/mutex", scenario.Fault{Kind: "holder-reply-lost"}),
		faulted("reference/mutex", scenario.Fault{Kind: "holder-clock", For: scenario.Duration(time.Second)}),
		faulted("redis/token", scenario.Fault{Kind: "holder-cut-kill", For: scenario.Duration(time.Second)}),
		faulted("redis/watchdog", scenario.Fault{Kind: "leader-pause", For: scenario.Duration(500 * time.Millisecond)}, func(s *scenario.Settings) {
			s.Workload.Hold.A = 1500 * time.Millisecond // it is renewed after a third of the TTL
		}),
		faulted("etcd/mutex", scenario.Fault{Kind: "leader-kill", For: scenario.Duration(time.Second)}, quorum),
		faulted("mysql/insert", scenario.Fault{Kind: "holder-kill"}),
		faulted("mysql/lease-row", scenario.Fault{Kind: "holder-kill"}),
	}
	checks := []func(*testing.T, scenario.Result){
		func(t *testing.T, r scenario.Result) { hits(t, r, byProxy); clean(t, r) },
		clean,
		func(t *testing.T, r scenario.Result) { hits(t, r, "clock"); clean(t, r) },
		clean,
		func(t *testing.T, r scenario.Result) { hits(t, r, "SIGSTOP"); clean(t, r) },
		func(t *testing.T, r scenario.Result) {
			hits(t, r, "SIGKILL")
			clean(t, r)
			if r.RequestsPerAcquire != nil || !strings.Contains(r.Unmeasured["requests_per_acquire"], "started again") {
				t.Errorf("requests per acquire %v of a server that was started again: %v", r.RequestsPerAcquire, r.Unmeasured)
			}
		},
		orphans(1), orphans(0),
	}
	for i, check := range checks {
		trials[i].check = func(t *testing.T, r scenario.Result) {
			check(t, r)
			if !strings.Contains(strings.Join(r.Warnings, "\n"), scenario.WarnBeside) {
				t.Errorf("nothing warns of scenarios beside it: %v", r.Warnings)
			}
		}
	}
	out := tryWith(t, trials, func(o *Options) {
		o.Parallel, o.Progress = 4, lanes
		usual, killed := o.enough, time.Time{}
		o.enough = func(sc scenario.Scenario, acquired uint64) bool {
			if sc.Recipe != "mysql/insert" {
				return usual(sc, acquired)
			}
			// No client can acquire the dead holder's lock.
			if killed.IsZero() && faultLogged(o.Out, sc, "effective") > 0 {
				killed = time.Now()
			}
			return !killed.IsZero() && time.Since(killed) > 4*sc.TTL.D() // longer than any bound
		}
	})
	if lanes.most < 2 || lanes.most > 4 || lanes.twice != "" {
		t.Errorf("up to %d scenarios at once, two of them on %q", lanes.most, lanes.twice)
	}
	injected(t, out, "token-holder-cut-kill", byProxy)
	injected(t, out, "mutex-holder-reply-lost", byProxy)
	for i, tr := range trials {
		if got := out.Document.Scenarios[i].Name; got != tr.name {
			t.Errorf("result %d is of %s, want %s", i, got, tr.name)
		}
	}
	renewals(t, filepath.Join(out.Dir, scenario.DirScenarios, "watchdog-leader-pause"))
}

// renewals checks that holds that were renewed behind their clients' backs show
// it.
func renewals(t *testing.T, dir string) {
	t.Helper()
	extended := 0
	h, err := history.Read(filepath.Join(dir, scenario.FileHistory))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range h.Damage {
		t.Errorf("damage: %+v", d)
	}
	for _, c := range h.Calls {
		if c.Kind == history.KindExtend && c.Outcome == history.Extended {
			extended++
		}
	}
	if extended == 0 {
		t.Error("no renewal is on record")
	}
}

// lanes watches which scenarios run at the same time.
type lanes struct {
	*onlooker
	mu    sync.Mutex
	of    map[string]string // backend, by scenario
	busy  map[string]bool   // backends
	now   int
	most  int
	twice string
}

func (l *lanes) Begin(_, _ int, sc scenario.Scenario) {
	l.mu.Lock()
	defer l.mu.Unlock()
	backend, _, _ := strings.Cut(sc.Recipe, "/")
	if l.busy[backend] {
		l.twice = backend
	}
	l.of[sc.Name], l.busy[backend] = backend, true
	l.now++
	l.most = max(l.most, l.now)
}

func (l *lanes) Done(r scenario.Result) {
	l.onlooker.Done(r)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.busy[l.of[r.Name]] = false
	l.now--
}

// A fault that the servers or this machine do not support is missing, with the
// reason, and never counts as survived.
func TestFaultsThatCannotBe(t *testing.T) {
	list := plan(t, []string{"reference/mutex"}, scenario.Settings{Clients: []int{2}, Scenario: scenario.Scenario{Workload: load(scenario.HotKey), Repeat: 4}})
	list[0].Faults = []scenario.Fault{{Kind: "leader-kill"}}
	list[1].Faults = []scenario.Fault{{Kind: "holder-cut-kill"}}
	list[2].Faults, list[2].Wire = []scenario.Fault{{Kind: "holder-cut"}}, scenario.WireKernel
	list[3].Faults = []scenario.Fault{{Kind: "holder-tickle"}}
	out, err := Run(t.Context(), options(t, list))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"no server", "socket", "network", "holder-tickle"} {
		r := out.Document.Scenarios[i]
		if r.Status != scenario.StatusMissing || !strings.Contains(r.Reason, want) || r.AsExpected != nil {
			t.Errorf("%v: %s, %q, as expected %v", list[i].Faults, r.Status, r.Reason, r.AsExpected)
		}
	}
}

// A run in a network of its own: the kernel drops what the holder sends and
// gets, and no other client's packets.
func TestFaultByTheKernel(t *testing.T) {
	testenv.NeedsServers(t, "redis")
	if err := netdrop.Available(); err != nil {
		t.Skipf("THE KERNEL'S CUTS ARE NOT TRIED IN A RUN: %v", err)
	}
	t.Parallel()
	tr := faulted("redis/token", scenario.Fault{Kind: "holder-cut", For: cutFor})
	tr.settings.Wire = scenario.WireKernel
	dir := t.TempDir()
	cmd := controller(t, dir, plan(t, []string{tr.recipe}, tr.settings))
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	dirs, err := filepath.Glob(filepath.Join(dir, "out", "*"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("folders %v, %v", dirs, err)
	}
	doc, err := scenario.ReadDocument(dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	r := doc.Scenarios[0]
	if r.Status != scenario.StatusDone {
		t.Fatalf("%s: %s", r.Status, r.Reason)
	}
	if f := hits(t, r, byKernel); !strings.Contains(f.Effect, "packets were dropped") {
		t.Errorf("what it did: %q", f.Effect)
	}
	if r.Safety.Promise != scenario.Kept || r.Safety.Orphans == nil || *r.Safety.Orphans != 0 {
		t.Errorf("promise %s, orphans %v", r.Safety.Promise, r.Safety.Orphans)
	}
}
