package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// killOrphans kills the descendants that the processes of a dead run left
// behind: a parent-death signal reaches a child, but not the child's children.
// An orphan is in the process group of a child in the journal. The group's
// number alone proves nothing, since it is reused after all its members have
// ended; so an orphan must also have started no earlier than the child, and
// have the mark of the run: in its environment, or, since some programs
// overwrite theirs, as its working folder. For a child whose processes have
// sessions of their own, the mark and the start time suffice.
func killOrphans(dir string, processes []entry) ([]entry, error) {
	leaders := map[int]entry{}
	var trees []entry
	for _, p := range processes {
		leaders[p.PID] = p
		if p.Tree {
			trees = append(trees, p)
		}
	}
	folders, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("look for orphans: %w", err)
	}
	var killed []entry
	for _, f := range folders {
		pid, err := strconv.Atoi(f.Name())
		if err != nil {
			continue
		}
		fields, err := stat(pid)
		if err != nil || stateIn(fields) == 'Z' {
			continue // it has ended
		}
		group, _ := strconv.Atoi(string(fields[2]))
		leader, known := leaders[group]
		start, err := startTime(pid)
		if !known && len(trees) > 0 {
			leader, known = trees[len(trees)-1], true // the first that was started
		}
		if !known || pid == leader.PID || err != nil || !notBefore(start, leader.StartTime) || !marked(pid, dir) {
			continue
		}
		o := entry{PID: pid, StartTime: start, Name: "started by " + leader.Name}
		if verify(pid, start) != nil {
			continue
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return killed, fmt.Errorf("kill %v: %w", o, err)
		}
		killed = append(killed, o)
	}
	return killed, nil
}

// notBefore compares two start times of one boot.
func notBefore(a, b string) bool {
	bootA, ticksA, okA := strings.Cut(a, "/")
	bootB, ticksB, okB := strings.Cut(b, "/")
	if !okA || !okB || bootA != bootB {
		return false
	}
	na, errA := strconv.ParseUint(ticksA, 10, 64)
	nb, errB := strconv.ParseUint(ticksB, 10, 64)
	return errA == nil && errB == nil && na >= nb
}

// marked reports whether a process has the mark of the run in dir.
func marked(pid int, dir string) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	if cwd, err := os.Readlink(filepath.Join(proc, "cwd")); err == nil && (cwd == dir || strings.HasPrefix(cwd, dir+"/")) {
		return true
	}
	environ, err := os.ReadFile(filepath.Join(proc, "environ"))
	return err == nil && bytes.Contains(append([]byte{0}, environ...), []byte("\x00"+envRun+"="+dir+"\x00"))
}
