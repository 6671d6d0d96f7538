package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sysProcAttr gives the child its own process group, so that the terminal's
// Ctrl-C reaches only our process, and a parent-death signal. The shell of a
// family must not get that signal: it still has to kill the group.
func (c Command) sysProcAttr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if !c.Family {
		attr.Pdeathsig = syscall.SIGKILL
	}
	if c.Account != nil {
		attr.Credential = &syscall.Credential{Uid: c.Account.UID, Gid: c.Account.GID}
	}
	if c.OwnIPC {
		attr.Cloneflags = syscall.CLONE_NEWIPC
	}
	return attr
}

// ownSession gives a child its own session, so that no signal of the terminal
// reaches it, and no parent-death signal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// waitEnded returns nil when our child pid has ended, without releasing its pid.
func waitEnded(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// startTime is the machine's boot id and the clock ticks from boot to the start
// of the process: after a reboot another process could have the same ticks.
func startTime(pid int) (string, error) {
	fields, err := stat(pid)
	if err != nil {
		return "", err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot id: %w", err)
	}
	return string(bytes.TrimSpace(boot)) + "/" + string(fields[19]), nil
}

func state(pid int) (byte, error) {
	fields, err := stat(pid)
	if err != nil {
		return 0, err
	}
	return stateIn(fields), nil
}

// stateIn is the state in the fields of stat.
func stateIn(fields [][]byte) byte { return fields[0][0] }

// stopped reports whether a signal has stopped every thread of a process. A
// thread that stops later than others may have started another one, so the list
// of threads must be the same before and after.
func stopped(pid int) (bool, error) {
	before, err := threads(pid)
	if err != nil {
		return false, err
	}
	for _, t := range before {
		fields, err := threadStat(pid, t)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil // it has ended, and the others may run
		}
		if err != nil || stateIn(fields) != 'T' {
			return false, err
		}
	}
	after, err := threads(pid)
	return slices.Equal(before, after), err
}

// threads lists the threads of a process.
func threads(pid int) ([]string, error) {
	folders, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	if err != nil {
		return nil, fmt.Errorf("list the threads of pid %d: %w", pid, err)
	}
	var list []string
	for _, f := range folders {
		list = append(list, f.Name())
	}
	return list, nil
}

// stat returns the fields of /proc/pid/stat from the third, the state, on.
func stat(pid int) ([][]byte, error) { return fieldsOf("/proc/"+strconv.Itoa(pid)+"/stat", pid) }

func threadStat(pid int, thread string) ([][]byte, error) {
	return fieldsOf("/proc/"+strconv.Itoa(pid)+"/task/"+thread+"/stat", pid)
}

// fieldsOf reads a stat file of a process. The second field is the program's
// name in brackets, which may contain brackets, so the last bracket counts.
func fieldsOf(path string, pid int) ([][]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, syscall.ESRCH) {
			err = os.ErrNotExist
		}
		return nil, fmt.Errorf("read the status of pid %d: %w", pid, err)
	}
	_, rest, _ := bytes.Cut(data[max(0, bytes.LastIndexByte(data, ')')):], []byte(" "))
	fields := bytes.Fields(rest)
	if len(fields) < 20 {
		return nil, fmt.Errorf("read the status of pid %d: unexpected %q", pid, data)
	}
	return fields, nil
}

// cpuTime reads the process's CPU clock, which counts nanoseconds; /proc counts
// hundredths of a second. The clock's id is derived from the pid as in the
// kernel's clock_getcpuclockid: all bits inverted, shifted by three, and 2 for
// scheduler time.
func cpuTime(pid int) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}
