package measure

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// A folder, written and read as a run does it; twice with the same result, and
// then with the files of a run that died.
func TestFolder(t *testing.T) {
	run := t.TempDir()
	dir := filepath.Join(run, scenario.DirScenarios, "s")
	clients := filepath.Join(dir, scenario.DirClients)
	if err := os.MkdirAll(clients, 0o755); err != nil {
		t.Fatal(err)
	}
	clock := history.NewClock()
	first := clock.Now()
	var files []string
	writers := make([]*history.Writer, 2)
	for c := range writers {
		files = append(files, filepath.Join(clients, fmt.Sprintf("%d.lbh", c)))
		w, err := history.Create(files[c], history.Options{Client: uint32(c), Worker: uint32(c), Clock: clock})
		if err != nil {
			t.Fatal(err)
		}
		writers[c] = w
	}
	do := func(w *history.Writer, op history.Op, res history.Result) {
		if _, err := w.Begin(&op); err != nil {
			t.Fatal(err)
		}
		w.End(&res)
	}
	id := func(c, i int) (a history.Attempt) { a[0], a[1], a[2] = byte(c+1), byte(i), byte(i>>8); return a }
	for i := range 400 {
		c := i % 2
		do(writers[c], history.Op{Kind: history.KindAcquire, Attempt: id(c, i)}, history.Result{Outcome: history.Held, Fence: uint64(i + 1)})
		do(writers[c], history.Op{Kind: history.KindRelease, Attempt: id(c, i)}, history.Result{Outcome: history.Released})
	}
	for _, w := range writers {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	info := leased()
	writeJSON(t, dir, scenario.FileScenario, scenario.Scenario{Name: "s", Recipe: info.ID, Clients: 2, Workers: 2, Topology: "single", TTL: scenario.Duration(2 * time.Second),
		Poll: scenario.Poll{Min: 5 * time.Millisecond, Max: 15 * time.Millisecond}, Workload: scenario.Load{Hold: scenario.Dist{Kind: "constant"}, Think: scenario.Dist{Kind: "constant"}}})

	// As a run that died leaves it.
	died, err := Scenario(dir, info, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if died.Status != scenario.StatusInterrupted || died.Reason == "" || died.Acquired == 0 || died.AsExpected != nil || died.Safety.Verdict == scenario.Safe {
		t.Errorf("a run that died: %s (%s), acquired %d, verdict %s", died.Status, died.Reason, died.Acquired, died.Safety.Verdict)
	}

	if err := history.Merge(filepath.Join(dir, scenario.FileHistory), files...); err != nil {
		t.Fatal(err)
	}
	writeJSON(t, dir, scenario.FileSamples, scenario.Samples{Start: first, End: clock.Now()})
	writeJSON(t, dir, filepath.Join("..", "..", scenario.FileEnvironment), scenario.Environment{Host: scenario.Host{CPUs: 3},
		Clusters: []scenario.ClusterInfo{{Backend: "test", Topology: "single", Product: "Testbase", Version: "1"}}})
	if err := os.WriteFile(filepath.Join(dir, scenario.FileFaults), []byte(`{"id":"x","event":"armed"}`+"\n"+`{"id":"x","ev`), 0o644); err != nil {
		t.Fatal(err)
	}
	a, err := Scenario(dir, info, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if a.Acquired != 400 || a.Server != "Testbase" || a.Status != scenario.StatusDone {
		t.Errorf("acquired %d from %q, %s", a.Acquired, a.Server, a.Status)
	}
	log, err := os.ReadFile(filepath.Join(dir, scenario.FileLatency))
	if err != nil {
		t.Fatal(err)
	}
	b, err := Scenario(dir, info, Options{})
	if err != nil {
		t.Fatal(err)
	}
	again, err := os.ReadFile(filepath.Join(dir, scenario.FileLatency))
	if err != nil || string(log) != string(again) || !reflect.DeepEqual(a, b) {
		t.Errorf("the second time it came out otherwise: %v", err)
	}
	counts := map[string]int64{}
	f, err := os.Open(filepath.Join(dir, scenario.FileLatency))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := hdr.NewHistogramLogReader(f); ; {
		h, err := r.NextIntervalHistogram()
		if err != nil {
			t.Fatal(err)
		}
		if h == nil {
			break
		}
		counts[h.Tag()] += h.TotalCount()
	}
	if counts["acquire"] != a.Acquire.Count || counts["release"] != a.Release.Count || counts["hold"] != a.HoldNS.Count {
		t.Errorf("the latency log holds %v", counts)
	}

	// A history cut short is read as far as it goes, and proves nothing.
	data, err := os.ReadFile(filepath.Join(dir, scenario.FileHistory))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, scenario.FileHistory), data[:len(data)*2/3], 0o644); err != nil {
		t.Fatal(err)
	}
	cut, err := Scenario(dir, info, Options{SkipLatencyFile: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(cut.Safety.Damage) == 0 || cut.Safety.Verdict != scenario.Undecided || cut.Safety.Promise == scenario.Kept || cut.AsExpected != nil {
		t.Errorf("cut short: damage %v, verdict %s", cut.Safety.Damage, cut.Safety.Verdict)
	}
	if err := os.WriteFile(filepath.Join(dir, scenario.FileHistory), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Scenario(dir, info, Options{}); !errors.Is(err, history.ErrNoRecords) {
		t.Errorf("nothing readable: %v", err)
	}
}

// writeJSON writes a file of a scenario's folder.
func writeJSON(t *testing.T, dir, name string, v any) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
		t.Fatal(err)
	}
}
