package backend

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/supervise"
)

// ended is a process that has ended.
func ended(t *testing.T) *supervise.Process {
	t.Helper()
	run, err := supervise.Begin("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.End(context.Background()); err != nil {
			t.Error(err)
		}
	})
	p, err := run.Start(supervise.Command{Name: "bystander", Path: "/bin/sh", Args: []string{"-c", "exit 1"}})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	return p
}

// The first lines name the fault, the last ones the end; what an earlier start
// wrote is not blamed on this one.
func TestLogLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	earlier := "an earlier start\n"
	text := earlier + "the fault\n"
	for range 5000 {
		text += "padding, and more of it\n"
	}
	text += "\n\nthe end\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := LogLines(path, int64(len(earlier)))
	if lines[0] != "the fault" || lines[len(lines)-1] != "the end" {
		t.Errorf("first %q, last %q", lines[0], lines[len(lines)-1])
	}
	if got := LogLines(filepath.Join(t.TempDir(), "none"), 0); got != nil {
		t.Errorf("of no file: %v", got)
	}
}

// A taken port is found wherever the log reports it, but not if an earlier start
// reported it.
func TestPortTaken(t *testing.T) {
	n := &Node{Name: "zookeeper", Process: ended(t)}
	stack := strings.Repeat("\tat some.java.Class(Class.java:1)\n", 40)
	for _, tt := range []struct {
		log   string
		from  int64
		taken bool
	}{
		{stack + "java.net.BindException: Address already in use\n" + stack, 0, true},
		{"java.net.BindException: Address already in use\n" + stack, 60, false},
		{stack, 0, false},
	} {
		n.Log, n.LogFrom = filepath.Join(t.TempDir(), "log"), tt.from
		if err := os.WriteFile(n.Log, []byte(tt.log), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := n.Died(); errors.Is(err, ErrPortTaken) != tt.taken || !errors.Is(err, ErrServer) {
			t.Errorf("taken is to be %t: %v", tt.taken, err)
		}
	}
}

// The error for a missing server names the command that installs it.
func TestMissing(t *testing.T) {
	s := Search{backend: "riddle", packages: Packages{Debian: "riddle-server", Brew: "riddle"}}
	_, err := s.Program("no-such-program-anywhere")
	m, ok := errors.AsType[*MissingError](err)
	if !errors.Is(err, ErrMissing) || !ok || m.Backend != "riddle" || !strings.Contains(m.Command, "riddle") || !strings.Contains(err.Error(), m.Command) {
		t.Errorf("%v", err)
	}
}
