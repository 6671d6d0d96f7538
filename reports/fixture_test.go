package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/internal/scenario"
)

// The runs in this file are made up: no server was measured. They only have
// the shape of real ones.

const (
	msec = int64(time.Millisecond)
	sec  = int64(time.Second)
)

func ptr[T any](v T) *T { return &v }

// kind is one invented recipe.
type kind struct {
	recipe, backend, server, version, durability, bound, waits string
	base                                                       float64 // ns of an acquire alone
	fenced                                                     bool
}

func kinds() []kind {
	poll := "poll 5ms..15ms"
	return []kind{
		{"redis/token", "redis", "redis", "7.0.15", "appendonly=no: memory only, a restart forgets locks", "ttl", poll, 61e3, true},
		{"etcd/mutex", "etcd", "etcd", "3.7.3", "fsync of the log before each answer", "session", "woken by the server", 1.9e6, true},
		{"zookeeper/sequence", "zookeeper", "ZooKeeper", "3.8.0", "forceSync=yes: fsync before each answer", "session", "woken by the server", 2.6e6, true},
		{"memcached/cas", "memcached", "memcached", "1.6.18", "memory only, evictable", "ttl", poll, 48e3, false},
		{"mysql/lease-row", "mysql", "MariaDB", "10.11.6", "innodb_flush_log_at_trx_commit=1: fsync at each commit", "ttl", poll, 2.1e6, true},
	}
}

func synthetic(k kind, group string, load scenario.Load, clients, repeat int) scenario.Result {
	return scenario.Result{
		Name:  fmt.Sprintf("%s-%s-%dc-r%d", group, slug(k.recipe), clients, repeat),
		Group: group, Repeat: repeat, Recipe: k.recipe, Backend: k.backend, Topology: "single", Environment: "process",
		Status: scenario.StatusDone, Server: k.server, Version: k.version, Durability: k.durability, Bound: k.bound, WaitPolicy: k.waits,
		Settings: map[string]string{"invented": "yes", "durability": k.durability},
		Workload: load, Seed: 7, TTL: scenario.Duration(4 * time.Second), TTLApplies: k.bound != "connection", Clients: clients, Workers: 2,
		Safety: scenario.Safety{Verdict: scenario.Safe, Promise: scenario.Kept, Liveness: scenario.Live, Causes: []scenario.Cause{},
			Why: map[string]string{
				"verdict": "No overlap and no damage in 1234 contended grants.", "promise": "Every grant fits the model.", "liveness": "No wait outlived the takeover bound."}},
		AsExpected: ptr(true), Warnings: []string{}, Faults: []scenario.FaultResult{}, Unmeasured: map[string]string{},
	}
}

func lat(p50 float64) *scenario.Latency {
	return &scenario.Latency{P50: int64(p50), P90: int64(p50 * 1.6), P95: int64(p50 * 2), P99: int64(p50 * 3.3), P999: int64(p50 * 8), Max: int64(p50 * 21), Mean: p50 * 1.15, Count: 48211}
}

// quickDoc is a run of something like the quick suite, where memcached is
// missing.
func quickDoc() scenario.Document {
	d := scenario.Document{
		Schema: scenario.SchemaVersion, Lockbench: "v0.0.0-invented", Suite: "quick", Seed: 42,
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Finished: time.Date(2026, 1, 2, 3, 7, 30, 0, time.UTC), DiskBytes: 73 << 20,
		Host: scenario.Host{OS: "linux", Arch: "amd64", Kernel: "6.1.0", CPUs: 4, CPUModel: "Invented CPU @ 3.0 GHz", MemoryB: 16 << 30, GoVersion: "go1.26", Root: true},
	}
	zero, ms := scenario.Constant(0), scenario.Constant(time.Millisecond)
	for _, n := range []int{1, 8, 32} {
		for _, k := range kinds() {
			r := synthetic(k, "uncontended", scenario.Load{Kind: "uncontended", Keys: n, Hold: zero, Think: zero, Arrival: "closed"}, n, 1)
			each := k.base * (1 + float64(n)/11)
			r.Acquire, r.Release, r.Response = lat(each), lat(each*0.9), lat(each)
			r.Throughput = ptr(float64(n) * 1e9 / (2.3 * each))
			r.DurationNS, r.Acquired = 2*sec, int64(*r.Throughput*2)
			r.RequestsPerAcquire, r.ServerCPU, r.ClientCPU = ptr(2.0), ptr(k.base/4e6), ptr(0.041)
			r.Expect = scenario.Expect{Promise: scenario.Kept}
			r.Safety.Verdict, r.Safety.Liveness = scenario.Undecided, scenario.Undecided
			r.Safety.Why = map[string]string{"verdict": "no contended grant: nothing was proved"}
			r.Unmeasured["handoff_ns"] = "the key is never handed to another client"
			if k.backend == "zookeeper" && n == 32 {
				r.Warnings = []string{"the machine was busy: 0.97 of its processor time was used"}
			}
			d.Scenarios = append(d.Scenarios, r)
		}
	}
	for rep := 1; rep <= 3; rep++ {
		for _, k := range kinds() {
			r := synthetic(k, "contended", scenario.Load{Kind: "hot-key", Keys: 1, Hold: ms, Think: ms, Arrival: "closed"}, 16, rep)
			gapNS := k.base * 1.3
			if k.waits != "woken by the server" {
				gapNS += 1.1e6
			}
			each := gapNS * (1 + 0.02*float64(rep))
			r.Throughput = ptr(1e9 / (1.1e6 + each))
			r.Acquire, r.Handoff, r.Release = lat(16e9 / *r.Throughput), lat(each), lat(k.base)
			r.DurationNS, r.Acquired = 2500*msec, int64(*r.Throughput*2.5)
			r.FairnessJain, r.RequestsPerAcquire = ptr(0.993-0.003*float64(rep)), ptr(2+each/1e6)
			r.ServerCPU, r.ClientCPU = ptr(k.base/3e6), ptr(0.12)
			if k.backend == "zookeeper" {
				r.RequestsPerAcquire, r.Unmeasured["requests_per_acquire"] = nil, "the server's counters could not be read: mntr is not on its whitelist"
			}
			r.Expect = scenario.Expect{Verdict: scenario.Safe, Promise: scenario.Kept, Liveness: scenario.Live}
			d.Scenarios = append(d.Scenarios, r)
		}
	}
	getLock := kind{"mysql/get-lock", "mysql", "MariaDB", "10.11.6", "innodb_flush_log_at_trx_commit=1: fsync at each commit", "connection", "woken by the server", 90e3, false}
	fifty := scenario.Constant(50 * time.Millisecond)
	for _, k := range append(kinds(), getLock) {
		d.Scenarios = append(d.Scenarios, pausedResult(k, fifty))
	}
	for i, r := range d.Scenarios {
		if r.Backend == "memcached" {
			d.Scenarios[i] = scenario.Result{Name: r.Name, Group: r.Group, Repeat: r.Repeat, Recipe: r.Recipe, Backend: r.Backend, Topology: r.Topology,
				Environment: r.Environment, Workload: r.Workload, Clients: r.Clients, TTL: r.TTL, Status: scenario.StatusMissing,
				Reason: "no memcached found on this machine; install it with: apt-get install memcached", Expect: r.Expect}
		}
	}
	return d
}

func pausedResult(k kind, hold scenario.Dist) scenario.Result {
	guard := "plain"
	if k.fenced {
		guard = "both"
	}
	r := synthetic(k, "paused", scenario.Load{Kind: "guarded-counter", Keys: 1, Hold: hold, Think: hold, Arrival: "closed", Guard: guard}, 6, 1)
	r.Workers, r.DurationNS = 6, 20*sec
	f := scenario.FaultResult{ID: "f1", Kind: "holder-pause", Status: "effective", Target: "client 3 (pid 4711)", Mechanism: "SIGSTOP",
		ArmedNS: sec, InjectedNS: sec + 4*msec, HealedNS: 11*sec + 4*msec, FirstGrantNS: 11*sec + 9*msec}
	per := make([]int64, 20)
	for i := range per {
		if i < 1 || i >= 11 || k.bound != "connection" && i >= 5 {
			per[i] = 18
		}
	}
	r.PerSecond = per
	for _, n := range per {
		r.Acquired += n
	}
	r.Throughput = ptr(float64(r.Acquired) / 20)
	r.Acquire = lat(60e6)
	reg := scenario.Register{Name: "plain", Acknowledged: r.Acquired, Final: r.Acquired - 117, LostUpdates: 117}
	if k.bound == "connection" {
		f.LongestWaitNS, r.UnavailableNS = 10*sec+51*msec, ptr(10*sec)
		reg.LostUpdates, reg.Final = 0, r.Acquired
		r.Expect = scenario.Expect{Verdict: scenario.Safe, Promise: scenario.Kept, Liveness: scenario.Live}
	} else {
		f.OthersGrantedNS, f.LongestWaitNS = 5*sec+12*msec, 4*sec+11*msec
		r.UnavailableNS = ptr(4 * sec)
		r.Expect = scenario.Expect{Verdict: scenario.Unsafe, Promise: scenario.Kept, Liveness: scenario.Live}
		r.Safety.Verdict = scenario.Unsafe
		r.Safety.Overlaps, r.Safety.OverlapIncidents, r.Safety.OverlapNS = 113, 1, 6*sec
		r.Safety.Why["verdict"] = "113 pairs of clients held k0 at the same time; the plain register lost 117 updates."
		r.Safety.Causes = []scenario.Cause{{Cause: "lease outlived by a paused holder", Count: 113}}
		r.Safety.Witnesses = []scenario.Witness{{
			Class: "overlap", Key: 0, LengthNS: 51 * msec, Cause: "lease outlived by a paused holder",
			Sentence: "Client 3 was granted k0 at 1.001s and still held it when client 5 was granted it at 5.012s; both held it for 51ms; client 3 was paused from 1.004s to 11.004s.",
			Calls: []scenario.WitnessCall{
				{Client: 3, Seq: 40, Kind: "acquire", Outcome: "held", Attempt: "aa", Fence: 19, InvokeNS: 940 * msec, ReturnNS: 1001 * msec},
				{Client: 3, Seq: 43, Kind: "release", Outcome: "lost", Attempt: "aa", InvokeNS: 11006 * msec, ReturnNS: 11007 * msec},
				{Client: 5, Seq: 38, Kind: "acquire", Outcome: "held", Attempt: "bb", Fence: 20, InvokeNS: 1010 * msec, ReturnNS: 5012 * msec},
				{Client: 5, Seq: 41, Kind: "release", Outcome: "released", Attempt: "bb", InvokeNS: 5063 * msec, ReturnNS: 5064 * msec},
			}}}
	}
	if k.fenced {
		r.Safety.TokenRegressions, reg.StaleWrites = ptr(int64(0)), ptr(int64(1))
		r.Safety.Registers = []scenario.Register{reg, {Name: "fenced", Acknowledged: r.Acquired - 1, Final: r.Acquired - 1, StaleWrites: ptr(int64(0)), Rejected: 1}}
	} else {
		r.Safety.Registers = []scenario.Register{reg}
	}
	r.Safety.LostUpdates, r.Safety.StaleWrites = ptr(reg.LostUpdates), reg.StaleWrites
	r.Faults = []scenario.FaultResult{f}
	if k.recipe == "mysql/lease-row" { // one that misses, so that the report can be seen to say so
		r.Faults[0].Status, r.Faults[0].Reason = "missed", "the hold ended before the stop took effect"
		r.Safety.Verdict, r.Safety.Overlaps, r.Safety.OverlapIncidents, r.Safety.Witnesses = scenario.Undecided, 0, 0, nil
		reg.LostUpdates, reg.Final, reg.StaleWrites = 0, reg.Acknowledged, ptr(int64(0))
		r.Safety.Registers[0] = reg
		r.Safety.Why["verdict"] = "The fault missed: nothing was proved."
		r.AsExpected, r.Surprises = nil, []string{"verdict is unknown where unsafe was expected: the fault missed"}
	}
	return r
}

// selfTestDoc is a run of the controls, 20 seeds each.
func selfTestDoc() scenario.Document {
	d := quickDoc()
	d.Suite, d.Scenarios = "self-test", nil
	ms := scenario.Constant(time.Millisecond)
	for rep := 1; rep <= 20; rep++ {
		for _, name := range []string{"reference/mutex", "reference/broken"} {
			k := kind{name, "reference", "lockbench", "v0", "memory only", "ttl", "woken by the server", 30e3, true}
			r := synthetic(k, "controls", scenario.Load{Kind: "hot-key", Keys: 1, Hold: ms, Think: ms, Arrival: "closed"}, 8, rep)
			r.Throughput, r.Acquire, r.Handoff, r.DurationNS, r.Acquired = ptr(880.0+float64(rep)), lat(7e6), lat(41e3), 1500*msec, 1300
			r.FairnessJain, r.RequestsPerAcquire, r.ServerCPU, r.ClientCPU = ptr(0.999), ptr(2.0), ptr(0.02), ptr(0.05)
			r.Expect = scenario.Expect{Verdict: scenario.Safe, Promise: scenario.Kept}
			if name == "reference/broken" {
				r.Expect = scenario.Expect{Verdict: scenario.Unsafe, Promise: scenario.Broken}
				r.Safety.Verdict, r.Safety.Promise = scenario.Unsafe, scenario.Broken
				r.Safety.Overlaps, r.Safety.OverlapIncidents, r.Safety.Breaches = int64(8+rep%5), int64(7+rep%5), 9
			}
			d.Scenarios = append(d.Scenarios, r)
		}
	}
	return d
}

func slug(s string) string { return string(bytes.ReplaceAll([]byte(s), []byte("/"), []byte("-"))) }

func environmentOf(d scenario.Document) scenario.Environment {
	e := scenario.Environment{Host: d.Host, Lockbench: d.Lockbench, Started: d.Started, Drivers: map[string]string{"invented/driver": "v1.2.3"},
		Missing: map[string]string{"memcached": "no memcached found on this machine; install it with: apt-get install memcached"}}
	for _, k := range kinds() {
		e.Clusters = append(e.Clusters, scenario.ClusterInfo{Backend: k.backend, Topology: "single", Environment: "process", Product: k.server, Version: k.version, Binary: k.server,
			Durability: k.durability, Settings: map[string]string{"maxclients": "10000", "durability": k.durability}, ReadyMS: 812,
			Nodes: []scenario.NodeInfo{{Name: k.backend + "-1", Address: "127.0.0.1:1", PID: 1, Command: []string{k.server, "--port", "1"}, Log: "servers/" + k.backend + "-1.log"}}})
	}
	return e
}

// writeRun makes a run's folder out of a document.
func writeRun(tb testing.TB, dir string, d scenario.Document) {
	tb.Helper()
	putJSON(tb, filepath.Join(dir, scenario.FileResult), d)
	putJSON(tb, filepath.Join(dir, scenario.FileEnvironment), environmentOf(d))
	for i, r := range d.Scenarios {
		if r.Status != scenario.StatusDone || r.Acquire == nil {
			continue
		}
		path := filepath.Join(dir, scenario.DirScenarios, r.Name, scenario.FileLatency)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			tb.Fatal(err)
		}
		writeLatencies(tb, path, float64(r.Acquire.P50), uint64(i))
	}
}

func putJSON(tb testing.TB, path string, v any) {
	tb.Helper()
	data, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		err = os.WriteFile(path, data, 0o644)
	}
	if err != nil {
		tb.Fatal(err)
	}
}

// writeLatencies writes two intervals of log-normal values around a median.
func writeLatencies(tb testing.TB, path string, median float64, seed uint64) {
	tb.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	w := hdrhistogram.NewHistogramLogWriter(f)
	for _, err := range []error{w.OutputLogFormatVersion(), w.OutputStartTime(1000), w.OutputLegend()} {
		if err != nil {
			tb.Fatal(err)
		}
	}
	for i := range int64(2) {
		for _, tag := range []string{tagAcquire, "release"} {
			h := hdrhistogram.New(1000, 3600*sec, 3)
			for range 4000 {
				if err := h.RecordValue(int64(median * math.Exp(rng.NormFloat64()*0.45))); err != nil {
					tb.Fatal(err)
				}
			}
			h.SetTag(tag)
			h.SetStartTimeMs(1000 * i)
			h.SetEndTimeMs(1000 * (i + 1))
			if err := w.OutputIntervalHistogram(h); err != nil {
				tb.Fatal(err)
			}
		}
	}
}
