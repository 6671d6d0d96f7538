package supervise

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sysProcAttr gives the child a process group of its own, so that the
// terminal's Ctrl-C reaches us alone, and if wanted the signal that ends it
// with us. The shell that watches over a family must not get that one: it is
// still needed for a moment.
func sysProcAttr(endsWithUs bool) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if endsWithUs {
		attr.Pdeathsig = syscall.SIGKILL
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
	if len(fields[0]) != 1 {
		return 0, fmt.Errorf("state of pid %d: unexpected %q", pid, fields[0])
	}
	return fields[0][0], nil
}

// stat returns the fields of /proc/pid/stat from the third, the state, on.
// The second is the program's name in brackets and may hold anything, brackets
// too, so the last bracket counts.
func stat(pid int) ([][]byte, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
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
