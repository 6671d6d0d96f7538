//go:build unix

package history

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testenv"
)

// The test binary starts itself again as the process that is killed, or that
// runs on a full disk; the environment selects which.
const (
	envRole  = "LOCKBENCH_HISTORY_TEST"
	envPath  = "LOCKBENCH_HISTORY_TEST_PATH"
	envHang  = "LOCKBENCH_HISTORY_TEST_HANG"  // number of the call to stay in
	envParts = "LOCKBENCH_HISTORY_TEST_PARTS" // not empty: in small parts, which are compressed
)

func TestMain(m *testing.M) {
	switch role := os.Getenv(envRole); role {
	case "":
		os.Exit(m.Run())
	case "victim":
		fmt.Fprintln(os.Stderr, victim())
	case "full-disk":
		if err := onFullDisk(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(1)
}

// victim records calls and prints each half, once it is recorded, to stdout,
// until it is killed. The content of a call follows from its number alone.
func victim() error {
	hang, err := strconv.Atoi(os.Getenv(envHang))
	if err != nil {
		return err
	}
	o := Options{Client: 6, Clock: NewClock()}
	if os.Getenv(envParts) != "" {
		o.Packer, o.partRecords = NewPacker(), 200
	}
	w, err := Create(os.Getenv(envPath), o)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		op, r := scripted(i)
		at, err := w.Begin(&op)
		if err != nil {
			return err
		}
		if _, err := fmt.Printf("begin %d %d\n", i, at); err != nil {
			return err
		}
		if i == hang {
			// In the middle of the acquire, for good: stdin stays open.
			_, _ = os.Stdin.Read(make([]byte, 1))
		}
		if _, err := fmt.Printf("end %d %d\n", i, w.End(&r)); err != nil {
			return err
		}
	}
}

func scripted(i int) (Op, Result) {
	m := newMould(uint64(i))
	op := m.op()
	op.Kind = KindAcquire
	return op, m.result(op.Kind)
}

// Kill -9, again and again: every record that was completed is there, with
// every field; so is the invoke of the call in whose middle the kill came.
func TestKill(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	open, kills := 0, 30
	if testenv.Race { // what a kill leaves is read in one goroutine
		kills = 10
	}
	for i := range kills {
		hang, lines := -1, 1+rnd.IntN(6000)
		if i%5 == 0 { // a kill that surely comes within a call
			hang = rnd.IntN(1500)
			lines = 2*hang + 1
		}
		if killed(t, hang, lines, i%2 == 0) {
			open++
		}
	}
	if open < kills/5 {
		t.Errorf("%d of %d kills came in the middle of a call, at least %d must", open, kills, kills/5)
	}
}

// killed kills a victim, whose stream may be in parts, after so many lines, checks what it left, and reports
// whether its last call was open.
func killed(t *testing.T, hang, lines int, parts bool) bool {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "client-6")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRole+"=victim", envPath+"="+path, fmt.Sprintf("%s=%d", envHang, hang))
	if parts {
		cmd.Env = append(cmd.Env, envParts+"=1")
	}
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var calls []Call // as the victim printed them
	ended := -1
	in := bufio.NewScanner(stdout)
	for n := 1; in.Scan(); n++ {
		var what string
		var i int
		var at int64
		if _, err := fmt.Sscanf(in.Text(), "%s %d %d", &what, &i, &at); err != nil {
			break // the kill cut the line
		}
		op, r := scripted(i)
		if what == "begin" {
			calls = append(calls, begun(6, uint32(i), op, at))
		} else {
			calls[i] = expected(6, uint32(i), op, r, calls[i].Invoke, at)
			ended = i
		}
		if n == lines {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the victim was not killed: %v", err)
	}
	h := sound(t, dir)
	if st := h.Streams[0]; st.Sealed || st.Client != 6 {
		t.Errorf("stream %+v", st)
	}
	// There may be one half more than it printed: it was killed before printing.
	if len(h.Calls) < len(calls) || len(h.Calls) > len(calls)+1 {
		t.Fatalf("%d calls, the victim printed %d", len(h.Calls), len(calls))
	}
	for i, c := range h.Calls {
		op, r := scripted(i)
		want := begun(6, uint32(i), op, c.Invoke)
		if i <= ended || c.Outcome != Open {
			want = expected(6, uint32(i), op, r, c.Invoke, c.Return)
		}
		if i < len(calls) && (c.Invoke != calls[i].Invoke || i <= ended && c.Return != calls[i].Return) {
			t.Fatalf("stamps of %+v, printed %+v", c, calls[i])
		}
		if c != want {
			t.Fatalf("got %+v\nwant %+v", c, want)
		}
	}
	last := h.Calls[len(h.Calls)-1]
	if hang >= 0 && (int(last.Seq) != hang || last.Outcome != Open) {
		t.Fatalf("killed within call %d, got %+v", hang, last)
	}
	return last.Outcome == Open
}
