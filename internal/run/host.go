package run

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
)

// describeHost describes this machine.
func describeHost() scenario.Host {
	h := scenario.Host{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(),
		GoVersion: runtime.Version(), Root: os.Geteuid() == 0,
	}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = unix.ByteSliceToString(u.Release[:])
	}
	h.CPUModel = procField("/proc/cpuinfo", "model name")
	if kb, _, ok := strings.Cut(procField("/proc/meminfo", "MemTotal"), " "); ok {
		n, _ := strconv.ParseInt(kb, 10, 64)
		h.MemoryB = n << 10
	}
	return h
}

// procField is the first "name : value" of a file under /proc; empty where
// there is none.
func procField(path, name string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// machineCPU is the CPU time that the machine has had, what was used of it, and what
// this process and those that it started used.
type machineCPU struct{ total, used, own time.Duration }

// readMachineCPU fails where the system does not report CPU times.
func readMachineCPU() (m machineCPU, err error) {
	if m.own, err = supervise.TreeCPU(os.Getpid()); err != nil {
		return m, err
	}
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return m, err
	}
	line, _, _ := strings.Cut(string(data), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return m, fmt.Errorf("/proc/stat begins with %q", line)
	}
	// user nice system idle iowait irq softirq steal: what was stolen was
	// wanted and not had, so it counts as used.
	for i, f := range fields[1:9] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return m, fmt.Errorf("/proc/stat begins with %q", line)
		}
		d := time.Duration(n) * time.Second / 100
		m.total += d
		if i != 3 && i != 4 {
			m.used += d
		}
	}
	return m, nil
}

// since is which share of the machine's CPU time was used after before, and which
// share by other processes than this run's; nil where no time has passed.
func (m machineCPU) since(before machineCPU) (used, others *float64) {
	total := m.total - before.total
	if total <= 0 {
		return nil, nil
	}
	all := float64(m.used-before.used) / float64(total)
	rest := max(0, all-float64(m.own-before.own)/float64(total))
	return &all, &rest
}

// driverVersions are the versions of the client libraries built in.
func driverVersions() map[string]string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return nil
	}
	wanted := map[string]bool{
		"github.com/redis/go-redis/v9":   true,
		"go.etcd.io/etcd/client/v3":      true,
		"github.com/go-zookeeper/zk":     true,
		"github.com/bradfitz/gomemcache": true,
		"github.com/go-sql-driver/mysql": true,
		"github.com/jackc/pgx/v5":        true,
	}
	versions := map[string]string{}
	for _, m := range info.Deps {
		if wanted[m.Path] {
			versions[m.Path] = m.Version
		}
	}
	return versions
}
