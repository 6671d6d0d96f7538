package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/testenv"
)

var (
	killCount   = flag.Int("kills", 3, "TestKilledRunLeavesNothing: how many runs it kills")
	killProgram = flag.String("kill-program", "lockbench", "the lockbench that it kills; by default this test binary")
	killFaults  = flag.String("kill-faults", "holder-pause,holder-kill,step-pause", "comma-separated faults, one per run in turn")
	killRecipes = flag.String("kill-recipes", "redis/token", "comma-separated recipes, one per run in turn; after a colon the topology, if not single")
	killSuite   = flag.String("kill-suite", "", "a suite or a suite file to run instead")
	killSpread  = flag.Duration("kill-spread", 20*time.Second, "of a suite: kill it within this time of its start")
	killSeed    = flag.Uint64("kill-seed", 1, "decides the moments")
	killWithin  = flag.Duration("kill-within", 30*time.Second, "how soon nothing may be left")
)

// killMoment is when a run is killed: after what it has to come to, and up to
// how long after that.
type killMoment struct {
	name string
	come func(results string) bool
	upTo time.Duration
}

func killMoments() []killMoment {
	if *killSuite != "" {
		return []killMoment{{"any", func(string) bool { return true }, *killSpread}}
	}
	return []killMoment{
		{"in a fault", faultInForce, time.Second},
		{"at work", atWork, 2 * time.Second},
		{"in a fault", faultInForce, 200 * time.Millisecond},
		{"starting", func(string) bool { return true }, 1500 * time.Millisecond},
	}
}

// killed is one line of the table.
type killed struct {
	what, moment string
	after        time.Duration // from the start to the kill
	clear        time.Duration // from the kill until nothing was left
	processes    int           // that there were when it was killed
	checks       []string      // exit codes, by scenario
	faults       []string      // faults in force, as the watchdog reported
	network      bool          // it had a network of its own
	refused      string        // why there was nothing to kill
	wrong        []string
}

// TestKilledRunLeavesNothing kills lockbench by SIGKILL during its faults, and
// looks for leftovers: processes, network namespaces, mounts, temporary files.
// The history must be readable. Each run has its own folder for temporary files,
// which marks all processes that it starts.
//
// make prove-heal runs it at length.
func TestKilledRunLeavesNothing(t *testing.T) {
	testenv.NeedsServers(t)
	rng := rand.New(rand.NewPCG(*killSeed, 0))
	var table []killed
	refused := map[string]string{} // by fault: why the last run with it was
	kills := map[string]int{}      // by fault
	for i := 0; len(table) < *killCount && i < 4**killCount+16; i++ {
		fault, what, args := nextRun(i)
		moments := killMoments()
		moment := moments[rng.IntN(len(moments))]
		k, err := killOne(args, moment, time.Duration(rng.Int64N(int64(moment.upTo))))
		if err != nil {
			t.Fatalf("kill %d (%s): %v", len(table)+1, what, err)
		}
		if k.refused != "" {
			refused[fault] = what + ": " + k.refused
			t.Logf("%s cannot be killed: %s", what, k.refused)
			continue
		}
		kills[fault]++
		k.what = what
		table = append(table, k)
		for _, w := range k.wrong {
			t.Errorf("kill %d (%s, %s): %s", len(table), what, k.moment, w)
		}
	}
	t.Log("\n" + killTable(table))
	for fault, why := range refused {
		if kills[fault] == 0 {
			t.Errorf("no run was killed during %s; the last one was rejected: %s", fault, why)
		}
	}
	if len(table) < *killCount {
		t.Errorf("only %d runs were killed, of %d", len(table), *killCount)
	}
}

// nextRun is the i-th run: each fault comes with each recipe before any pair
// comes again.
func nextRun(i int) (fault, what string, args []string) {
	if *killSuite != "" {
		return *killSuite, *killSuite, []string{"run", *killSuite}
	}
	faults, recipes := strings.Split(*killFaults, ","), strings.Split(*killRecipes, ",")
	fault, recipe := faults[i%len(faults)], recipes[i/len(faults)%len(recipes)]
	return fault, recipe + " " + fault, oneFault(recipe, fault)
}

// oneFault are the arguments of a short run with a fault in its middle.
func oneFault(recipe, fault string) []string {
	recipe, topology, ok := strings.Cut(recipe, ":")
	if !ok {
		topology = "single"
	}
	args := []string{
		"run", "--recipe", recipe, "--topology", topology, "--workload", "hot-key", "--fault", fault,
		"--clients", "4", "--hold", "20ms", "--ttl", "4s", "--warmup", "200ms", "--duration", "1m",
	}
	if strings.HasPrefix(fault, "step-") {
		args = append(args, "--step", "held")
	}
	return args
}

func killTable(list []killed) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "kill\trun\tmoment\tat\tprocesses\town network\tfaults in force\tnothing left after\tcheck exits\t")
	for i, k := range list {
		word := "well"
		if len(k.wrong) > 0 {
			word = "NOT WELL, see above"
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%v\t%d\t%v\t%d\t%v\t%s\t%s\n", i+1, k.what, k.moment, k.after.Round(time.Millisecond),
			k.processes, k.network, len(k.faults), k.clear.Round(time.Millisecond), strings.Join(k.checks, " "), word)
	}
	w.Flush()
	return b.String()
}

// killOne starts lockbench, kills it at the moment, and looks around.
func killOne(args []string, moment killMoment, delay time.Duration) (k killed, err error) {
	base, err := os.MkdirTemp("/tmp", "lbkill-")
	if err != nil {
		return k, err
	}
	defer os.RemoveAll(base)
	temp, results := filepath.Join(base, "t"), filepath.Join(base, "results")
	log, err := os.Create(filepath.Join(base, "log"))
	if err != nil {
		return k, err
	}
	defer log.Close()
	if err := os.Mkdir(temp, 0o700); err != nil {
		return k, err
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.Command(*killProgram, args...)
		cmd.Env = append(os.Environ(), "TMPDIR="+temp)
		return cmd
	}
	cmd := command(append(args, "--out", results, "--quiet")...)
	cmd.Stdout, cmd.Stderr = log, log
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		return k, err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill(); <-ended }()

	k.moment = moment.name
	var due time.Time
	for due.IsZero() || time.Now().Before(due) {
		select {
		case <-ended:
			text, _ := os.ReadFile(log.Name())
			why := fmt.Sprintf("it ended by itself, %v: %s", cmd.ProcessState, text[max(0, len(text)-1000):])
			switch exitCode(cmd.ProcessState.ExitCode()) {
			case exitUsage, exitInconclusive: // there is no such fault here, or it missed
				k.refused = why
				return k, nil
			}
			return k, errors.New(why)
		case <-time.After(time.Millisecond):
		}
		if due.IsZero() && moment.come(results) {
			due = time.Now().Add(delay)
		}
	}
	started := descendants(cmd.Process.Pid)
	network, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", cmd.Process.Pid))
	own, _ := os.Readlink("/proc/self/ns/net")
	k.network = network != own
	if err := cmd.Process.Kill(); err != nil {
		return k, err
	}
	at := time.Now()
	<-ended
	k.after, k.processes = at.Sub(begun), len(started)
	if len(started) == 0 {
		// Its watchdog was not running yet, so its folder is for the next start.
		if out, err := command("heal").CombinedOutput(); err != nil {
			return k, fmt.Errorf("lockbench heal: %w: %s", err, out)
		}
	}
	for {
		left, err := leftBehind(temp, network, started)
		if err != nil {
			return k, err
		}
		if k.clear = time.Since(at); len(left) == 0 {
			break
		}
		if k.clear > *killWithin {
			k.wrong = left
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if text, err := os.ReadFile(log.Name()); err == nil {
		for _, part := range strings.Split(string(text), "; ") {
			if strings.Contains(part, " was still in force: ") {
				k.faults = append(k.faults, part)
			}
		}
	}
	k.readHistories(command, results)
	if left, err := leftBehind(temp, network, started); err != nil || len(left) > 0 && len(k.wrong) == 0 {
		k.wrong = append(k.wrong, fmt.Sprintf("a moment later: %v, %v", left, err))
	}
	// Once more finds nothing, and does no harm.
	out, err := command("heal").CombinedOutput()
	if err != nil || string(out) != "nothing to clean up\n" {
		k.wrong = append(k.wrong, fmt.Sprintf("lockbench heal: %v, %s", err, out))
	}
	return k, nil
}

// readHistories checks what the run recorded. It may be unsafe or undecided,
// but never unreadable; a scenario without a single record had not begun.
func (k *killed) readHistories(command func(...string) *exec.Cmd, results string) {
	folders, _ := filepath.Glob(filepath.Join(results, "*", scenario.DirScenarios, "*"))
	for _, f := range folders {
		out, err := command("check", f).CombinedOutput()
		code := exitOK
		if e, ok := errors.AsType[*exec.ExitError](err); ok {
			code = exitCode(e.ExitCode())
		} else if err != nil {
			code = exitInternal
		}
		k.checks = append(k.checks, strconv.Itoa(int(code)))
		fine := []exitCode{exitOK, exitUnsafe, exitInconclusive}
		if !recorded(f) {
			fine = append(fine, exitUsage)
		}
		if !slices.Contains(fine, code) {
			k.wrong = append(k.wrong, fmt.Sprintf("check %s ended with %d: %s", filepath.Base(f), code, out))
		}
	}
}

// atWork: clients record.
func atWork(results string) bool { return recorded(results) }

// recorded reports whether below a folder there is a history with a record:
// something beyond the headers, in a file that was all zeros.
func recorded(dir string) (found bool) {
	const headers = 192
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".lbh" {
			return nil
		}
		data, err := os.ReadFile(path)
		if err == nil && len(bytes.Trim(data[min(headers, len(data)):], "\x00")) > 0 {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// faultInForce reports whether a fault log has a fault that was injected.
func faultInForce(results string) bool {
	logs, _ := filepath.Glob(filepath.Join(results, "*", scenario.DirScenarios, "*", scenario.FileFaults))
	return slices.ContainsFunc(logs, func(f string) bool {
		data, err := os.ReadFile(f)
		return err == nil && bytes.Contains(data, []byte(`"event":"injected"`))
	})
}
