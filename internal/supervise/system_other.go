//go:build !linux

package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// sysProcAttr gives the child its own process group. There is no parent-death
// signal here: the journal and the sweep replace it.
func (c Command) sysProcAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if c.Account != nil {
		attr.Credential = &syscall.Credential{Uid: c.Account.UID, Gid: c.Account.GID}
	}
	return attr
}

// ownSession gives a child its own session, so that no signal of the terminal
// reaches it.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// killOrphans does nothing: here the run of a process is not certain when the
// leader of its group is gone.
func killOrphans(string, []entry) ([]entry, error) { return nil, nil }

// waitEnded: this system cannot wait without releasing the pid.
func waitEnded(int) error { return errors.ErrUnsupported }

func startTime(pid int) (string, error) { return ps(pid, "lstart") }

func state(pid int) (byte, error) {
	s, err := ps(pid, "state")
	if err != nil {
		return 0, err
	}
	return s[0], nil
}

// stopped: this system does not show single threads, and stops them together.
func stopped(pid int) (bool, error) {
	st, err := state(pid)
	return st == 'T', err
}

// cpuTime has a resolution of 10 ms here: [[dd-]hh:]mm:ss.cc.
func cpuTime(pid int) (time.Duration, error) {
	s, err := ps(pid, "time")
	if err != nil {
		return 0, err
	}
	days, clock, hasDays := strings.Cut(s, "-")
	if !hasDays {
		days, clock = "0", s
	}
	total, err := strconv.ParseFloat(days, 64)
	if err != nil {
		return 0, fmt.Errorf("CPU time of pid %d: unexpected %q", pid, s)
	}
	total *= 24
	parts := strings.Split(clock, ":")
	for len(parts) < 3 {
		parts = append([]string{"0"}, parts...)
	}
	for i, part := range parts {
		f, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return 0, fmt.Errorf("CPU time of pid %d: unexpected %q", pid, s)
		}
		if i > 0 {
			total *= 60
		}
		total += f
	}
	return time.Duration(total * float64(time.Second)), nil
}

func ps(pid int, field string) (string, error) {
	cmd := exec.Command("/bin/ps", "-o", field+"=", "-p", strconv.Itoa(pid))
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC"}
	out, err := cmd.Output()
	s := strings.TrimSpace(string(out))
	if s == "" {
		if _, exited := errors.AsType[*exec.ExitError](err); err == nil || exited {
			err = os.ErrNotExist
		}
		return "", fmt.Errorf("read the status of pid %d: %w", pid, err)
	}
	return s, nil
}
