package supervise

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// signalTree sends sig to a process and all its descendants. SIGSTOP goes from the
// top down and SIGCONT from the bottom up, so that no descendant is started that
// is not stopped; before a SIGKILL the whole tree is stopped for the same reason.
func signalTree(root *os.Process, sig os.Signal) error {
	switch sig {
	case syscall.SIGCONT:
		return errors.Join(signalDescendants(root.Pid, sig), root.Signal(sig))
	case syscall.SIGKILL:
		if err := signalTree(root, syscall.SIGSTOP); err != nil {
			return err
		}
		return errors.Join(signalDescendants(root.Pid, sig), root.Signal(sig))
	case syscall.SIGSTOP:
		if err := root.Signal(sig); err != nil {
			return err
		}
		return signalDescendants(root.Pid, sig)
	}
	return root.Signal(sig) // an orderly end is the program's own affair
}

// signalDescendants signals every descendant of a process, again until there is
// none that it has not signalled.
func signalDescendants(root int, sig os.Signal) error {
	signalled := map[int]bool{}
	for {
		list, err := descendants(root, false)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(pid int) bool { return signalled[pid] })
		if len(list) == 0 {
			return nil
		}
		for _, pid := range list {
			signalled[pid] = true
			if err := signalDescendant(root, pid, sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return fmt.Errorf("signal %v to pid %d, started by pid %d: %w", sig, pid, root, err)
			}
		}
	}
}

// signalDescendant holds on to the process before it looks whose it is, so that
// the signal cannot reach a later process with the same pid.
func signalDescendant(root, pid int, sig os.Signal) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	defer p.Release()
	list, err := descendants(root, false)
	if err != nil {
		return err
	}
	if !slices.Contains(list, pid) {
		return os.ErrProcessDone
	}
	return p.Signal(sig)
}

// descendants lists the living processes that a process started, and those that
// these started in turn; with ended, also those that have ended and were not
// waited for yet.
func descendants(root int, ended bool) ([]int, error) {
	folders, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list the processes started by pid %d: %w", root, err)
	}
	children := map[int][]int{}
	for _, f := range folders {
		pid, err := strconv.Atoi(f.Name())
		if err != nil {
			continue
		}
		fields, err := stat(pid)
		if err != nil || stateIn(fields) == 'Z' && !ended {
			continue
		}
		parent, err := strconv.Atoi(string(fields[1]))
		if err != nil {
			return nil, fmt.Errorf("look at pid %d: parent %q", pid, fields[1])
		}
		children[parent] = append(children[parent], pid)
	}
	var list []int
	for at := []int{root}; len(at) > 0; at = at[1:] {
		list = append(list, children[at[0]]...)
		at = append(at, children[at[0]]...)
	}
	return list, nil
}

// treeStopped reports whether every thread of a process and of its descendants
// was stopped by a signal.
func treeStopped(root int) (bool, error) {
	if still, err := stopped(root); !still || err != nil {
		return false, err
	}
	list, err := descendants(root, false)
	if err != nil {
		return false, err
	}
	for _, pid := range list {
		still, err := stopped(pid)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if !still || err != nil {
			return false, err
		}
	}
	return true, nil
}

// treeMembers lists the descendants of a process, by pid and start time.
func treeMembers(root int) map[int]string {
	list, _ := descendants(root, false) // what cannot be listed cannot be ended
	members := map[int]string{}
	for _, pid := range list {
		if start, err := startTime(pid); err == nil {
			members[pid] = start
		}
	}
	return members
}

// endLeft ends the members that are still there.
func endLeft(members map[int]string) {
	for pid, start := range members {
		if verify(pid, start) == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

// Descendants lists the living processes that a process started, and those that
// these started in turn, as far as the system lists them.
func Descendants(pid int) []int {
	list, _ := descendants(pid, false)
	return list
}

// TreeCPU is the CPU time of a process and of all processes that it or its
// descendants started, also of those that have ended.
func TreeCPU(root int) (time.Duration, error) {
	list, err := descendants(root, true)
	if err != nil {
		return 0, err
	}
	var ticks int64
	for _, pid := range append(list, root) {
		fields, err := stat(pid)
		if errors.Is(err, os.ErrNotExist) && pid != root {
			continue // its parent has waited for it, and has its time
		}
		if err != nil {
			return 0, err
		}
		// User and system time, its own and that of children it has waited for.
		for _, f := range fields[11:15] {
			n, err := strconv.ParseInt(string(f), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read the CPU time of pid %d: %w", pid, err)
			}
			ticks += n
		}
	}
	return time.Duration(ticks) * time.Second / 100, nil // a tick of /proc is 10 ms on every architecture
}
