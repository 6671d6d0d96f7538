package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/netdrop"
	"github.com/lockbench/lockbench/internal/run"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/testenv"
)

// scrape is what Prometheus reads.
func scrape(url string) (string, error) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if res.StatusCode != http.StatusOK {
		err = errors.Join(err, errors.New(res.Status))
	}
	return string(text), err
}

// The endpoint serves what the run has reported, and names as they may be printed.
func TestMetrics(t *testing.T) {
	listener, err := listenMetrics(":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		t.Errorf("an address without a host is %v, want the loopback", listener.Addr())
	}
	m := newMetrics(nil, 2)
	go m.serve(listener)
	sc := scenario.Scenario{Name: "a\x1b]0;b", Recipe: "redis/token", Faults: []scenario.Fault{{Kind: "holder-pause"}, {Kind: "holder-kill"}}}
	m.Begin(1, 2, sc)
	m.Tick(sc, run.Status{Elapsed: time.Second, Total: time.Minute, DoubleHolds: 1})
	m.Tick(sc, run.Status{Elapsed: 2 * time.Second, Total: time.Minute, DoubleHolds: 3})
	for _, c := range []history.Call{
		{Kind: history.KindAcquire, Outcome: history.Held, Return: 5e6, Flags: history.FlagWarmup},
		{Kind: history.KindTry, Outcome: history.Held, Return: 5e6},
		{Kind: history.KindTry, Outcome: history.Busy, Return: 5e6},
		{Kind: history.KindWrite, Outcome: history.Accepted, Flags: history.FlagStale},
		{Kind: history.KindEnqueued, Outcome: history.Accepted},
	} {
		m.Call(sc, &c)
	}
	for _, inForce := range []bool{true, true, false} { // one of two is healed
		m.InForce(sc, "holder-pause", inForce)
	}
	m.Done(scenario.Result{Name: sc.Name, Status: scenario.StatusDone, Safety: scenario.Safety{Verdict: scenario.Unsafe}})
	text, err := scrape(fmt.Sprintf("http://%v/metrics", listener.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	of := func(more string) string {
		return fmt.Sprintf(`{backend="redis",%srecipe="redis/token",scenario="a\\u001b]0;b"} `, more)
	}
	for _, want := range []string{
		"lockbench_scenarios 2", `lockbench_scenarios_done_total{status="done",verdict="unsafe"} 1`,
		"lockbench_grants_total" + of("") + "2", "lockbench_double_holds_total" + of("") + "3", "lockbench_stale_writes_total" + of("") + "1",
		"lockbench_load_elapsed_seconds" + of("") + "2", "lockbench_load_seconds" + of("") + "60",
		"lockbench_fault_active" + of(`fault="holder-pause",`) + "1", "lockbench_fault_active" + of(`fault="holder-kill",`) + "0",
		"lockbench_wait_seconds_sum" + of("") + "0.005", "lockbench_wait_seconds_count" + of("") + "1",
		"lockbench_calls_total" + of(`operation="try",outcome="busy",`) + "1", "lockbench_calls_total" + of(`operation="write",outcome="accepted",`) + "1",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("lacks %s", want)
		}
	}
	if strings.Contains(text, "\x1b") || strings.Contains(text, "enqueued") {
		t.Error("has a control character, or an event that is no call")
	}
	if t.Failed() {
		t.Log(text)
	}
}

// An address that cannot be served ends the run before it starts anything.
func TestMetricsAddressThatCannotBeUsed(t *testing.T) {
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	_, port, _ := net.SplitHostPort(used.Addr().String())
	for address, want := range map[string]struct {
		code exitCode
		text string
	}{
		":" + port: {exitInternal, "address already in use (choose another port; 0 stands for any free one)\n"},
		port:       {exitUsage, `lockbench: --metrics "` + port + `": want :PORT or HOST:PORT` + "\n"},
	} {
		out := t.TempDir()
		var stderr bytes.Buffer
		code := execute(t.Context(), []string{"run", "--recipe", "reference/mutex", "--workload", "hot-key", "--metrics", address, "--out", out}, strings.NewReader(""), io.Discard, &stderr)
		if text := stderr.String(); code != want.code || !strings.HasSuffix(text, want.text) || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: exit code %d, %s", address, code, text)
		}
		if made, err := os.ReadDir(out); err != nil || len(made) > 0 {
			t.Errorf("%s: it made %v, %v", address, made, err)
		}
	}
}

// A run serves its metrics with its output piped, also from a network of its own,
// and no longer once Ctrl-C has ended it.
func TestMetricsOfARun(t *testing.T) {
	testenv.NeedsServers(t)
	t.Parallel()
	out := t.TempDir()
	cmd := exec.Command("lockbench", "run", "--recipe", "reference/mutex", "--workload", "hot-key", "--fault", "holder-cut", "--ttl", "3s", "--hold", "20ms",
		"--clients", "2", "--warmup", "1ms", "--duration", "5m", "--fault-for", "4m", "--metrics", ":0", "--out", out)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	url := ""
	lines := bufio.NewScanner(stderr)
	for url == "" && lines.Scan() {
		_, url, _ = strings.Cut(lines.Text(), "metrics: ")
	}
	rest := make(chan string)
	go func() {
		var b strings.Builder
		for lines.Scan() {
			b.WriteString(lines.Text() + "\n")
		}
		rest <- b.String()
	}()
	served := regexp.MustCompile(`(?s)lockbench_fault_active\{[^}]*fault="holder-cut"[^}]*\} 1\n.*lockbench_grants_total\{[^}]*\} [1-9]`)
	text, deadline := "", time.Now().Add(2*time.Minute)
	for !served.MatchString(text) {
		if text, err = scrape(url); err != nil || time.Now().After(deadline) {
			t.Fatalf("no grant beside a fault: %v\n%s", err, text)
		}
		time.Sleep(50 * time.Millisecond)
	}
	outside, _ := os.Readlink("/proc/self/ns/net")
	inside, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", cmd.Process.Pid))
	if err := netdrop.Available(); err == nil && outside == inside {
		t.Error("the run has no network of its own")
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	t.Log(<-rest)
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != int(exitInterrupted) {
		t.Errorf("ended with %v", err)
	}
	if text, err := scrape(url); err == nil {
		t.Errorf("still served after the run: %s", text)
	}
	doc, err := scenario.ReadDocument(filepath.Join(out, "latest"))
	if err != nil {
		t.Fatal(err)
	}
	// Annotations are placed by the wall clock of the window.
	if at := doc.Scenarios[0].WindowAt; !at.After(doc.Started) || !at.Before(doc.Finished) {
		t.Errorf("the window began at %v, the run took from %v to %v", at, doc.Started, doc.Finished)
	}
}
