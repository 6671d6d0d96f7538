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

// sysProcAttr gives the child a process group of its own, so that the
// terminal's Ctrl-C reaches us alone, and the signal that ends it with us. The
// shell that watches over a family must not get that one: it is still needed for
// a moment.
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

// apart gives a child a session of its own, so that nothing of the terminal's
// reaches it, and no signal when we end.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// waitEnded returns nil when our child pid has ended, without taking its pid.
func waitEnded(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// startTime is the machine's boot and the clock ticks from it to the start of
// the process: after a reboot the ticks alone could be another's.
func startTime(pid int) (string, error) {
	fields, err := stat(pid)
	if err != nil {
		return "", err
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read the boot's id: %w", err)
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

// stateIn is the state among the fields of stat.
func stateIn(fields [][]byte) byte { return fields[0][0] }

// stopped tells whether every thread of a process was stopped by a signal. A
// thread that was stopped later than others may have started one more, so that
// the threads must be the same after the look as before it.
func stopped(pid int) (bool, error) {
	before, err := threads(pid)
	if err != nil {
		return false, err
	}
	for _, t := range before {
		fields, err := threadStat(pid, t)
		if errors.Is(err, os.ErrNotExist) {
			return false, nil // it has ended meanwhile, and the others may run
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

// fieldsOf reads a stat file of a process. The second field is the program's name
// in brackets and may hold anything, brackets too, so the last bracket counts.
func fieldsOf(path string, pid int) ([][]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, syscall.ESRCH) {
			err = os.ErrNotExist
		}
		return nil, fmt.Errorf("look at pid %d: %w", pid, err)
	}
	_, rest, _ := bytes.Cut(data[max(0, bytes.LastIndexByte(data, ')')):], []byte(" "))
	fields := bytes.Fields(rest)
	if len(fields) < 20 {
		return nil, fmt.Errorf("look at pid %d: unexpected %q", pid, data)
	}
	return fields, nil
}

// cpuTime reads the process's CPU clock, which counts nanoseconds; /proc counts
// hundredths of a second. The clock's id is made of the pid as the kernel's
// clock_getcpuclockid does: all bits of the pid inverted, shifted by three, and
// 2 for "scheduler time".
func cpuTime(pid int) (time.Duration, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|2), &ts); err != nil {
		return 0, err
	}
	return time.Duration(ts.Nano()), nil
}
