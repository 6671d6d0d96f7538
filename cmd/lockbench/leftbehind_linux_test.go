package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// leftBehind lists what is left of a run that was killed: processes that it had
// started, and any others with its mark.
func leftBehind(temp, network string, started []process) ([]string, error) {
	left, err := belonging(temp)
	if err != nil {
		return nil, err
	}
	for _, p := range started {
		if now, ok := lookAt(p.pid); ok && now.start == p.start {
			left = append(left, fmt.Sprintf("pid %d, a descendant", p.pid))
		}
	}
	if own, err := os.Readlink("/proc/self/ns/net"); err != nil || network == own {
		network = "" // not one of the run's
	}
	if network != "" {
		members, _ := filepath.Glob("/proc/[0-9]*/ns/net")
		for _, m := range members {
			if ns, err := os.Readlink(m); err == nil && ns == network {
				left = append(left, "the network namespace lives in "+m)
			}
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, temp) || network != "" && strings.Contains(line, network) {
			left = append(left, "mount "+strings.TrimSpace(line))
		}
	}
	// The lock that all runs of a user share stays.
	err = filepath.WalkDir(temp, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // just being removed
		}
		if err == nil && path != temp && filepath.Dir(path) != temp && d.Name() != "gate" {
			left = append(left, "file "+path)
		}
		return err
	})
	return left, err
}

// belonging lists the processes that bear the mark of a folder: in their
// environment, their arguments, or as the folder in which they work.
func belonging(temp string) ([]string, error) {
	all, err := processes()
	var list []string
	for _, p := range all {
		proc := filepath.Join("/proc", strconv.Itoa(p.pid))
		environ, _ := os.ReadFile(filepath.Join(proc, "environ"))
		line, _ := os.ReadFile(filepath.Join(proc, "cmdline"))
		cwd, _ := os.Readlink(filepath.Join(proc, "cwd"))
		if bytes.Contains(environ, []byte(temp)) || bytes.Contains(line, []byte(temp)) || strings.HasPrefix(cwd, temp) {
			list = append(list, fmt.Sprintf("pid %d (%s)", p.pid, bytes.TrimSpace(bytes.ReplaceAll(line, []byte{0}, []byte(" ")))))
		}
	}
	return list, err
}

// process is one that has not ended.
type process struct {
	pid, parent int
	start       string
}

func lookAt(pid int) (process, bool) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, false
	}
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 20 || fields[0] == "Z" {
		return process{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	return process{pid, parent, fields[19]}, err == nil
}

func processes() ([]process, error) {
	folders, err := os.ReadDir("/proc")
	var list []process
	for _, f := range folders {
		if pid, err := strconv.Atoi(f.Name()); err == nil {
			if p, ok := lookAt(pid); ok {
				list = append(list, p)
			}
		}
	}
	return list, err
}

// descendants are the processes that pid has started, and those that these have.
func descendants(pid int) []process {
	all, _ := processes()
	var list []process
	for parents := []int{pid}; len(parents) > 0; parents = parents[1:] {
		for _, p := range all {
			if p.parent == parents[0] {
				list, parents = append(list, p), append(parents, p.pid)
			}
		}
	}
	return list
}

// What the test above looks for it also finds.
func TestLeftBehindIsSeen(t *testing.T) {
	temp, err := os.MkdirTemp("/tmp", "lbkill-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(temp)
	if left, err := leftBehind(temp, "", nil); err != nil || len(left) != 0 {
		t.Fatalf("before: %v, %v", left, err)
	}
	for name, mark := range map[string]func(*exec.Cmd){
		"environment": func(c *exec.Cmd) { c.Env = []string{"TMPDIR=" + temp} },
		"arguments":   func(c *exec.Cmd) { c.Args = append(c.Args, temp) },
		"folder":      func(c *exec.Cmd) { c.Dir = temp },
		"descendant":  func(*exec.Cmd) {},
	} {
		// The shell reads its input, and ends with it.
		cmd := exec.Command("/bin/sh", "-c", "echo; read line; true", "sh")
		mark(cmd)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Error(err)
		}
		var started []process
		if name == "descendant" {
			started = descendants(os.Getpid())
		}
		if left, err := leftBehind(temp, "", started); err != nil || len(left) == 0 || !strings.Contains(strings.Join(left, " "), fmt.Sprintf("pid %d", cmd.Process.Pid)) {
			t.Errorf("%s: %v, %v", name, left, err)
		}
		in.Close()
		_ = cmd.Wait()
		if left, err := leftBehind(temp, "", nil); err != nil || len(left) != 0 {
			t.Errorf("%s, after its end: %v, %v", name, left, err)
		}
	}
	if err := os.MkdirAll(filepath.Join(temp, "lockbench-0", "r00000000"), 0o700); err != nil {
		t.Fatal(err)
	}
	if left, err := leftBehind(temp, "", nil); err != nil || len(left) != 1 {
		t.Errorf("a run's folder: %v, %v", left, err)
	}
}
