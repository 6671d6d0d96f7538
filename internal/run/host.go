package run

import (
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/lockbench/lockbench/internal/scenario"
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

// cpuTimes reads how much CPU time the machine has used and has had, in ticks;
// ok is false where the system does not report it.
func cpuTimes() (busy, total int64, ok bool) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, false
	}
	line, _, _ := strings.Cut(string(data), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, 0, false
	}
	// user nice system idle iowait irq softirq steal: what was stolen was
	// wanted and not had, so it counts as busy.
	for i, f := range fields[1:9] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0, false
		}
		total += n
		if i != 3 && i != 4 {
			busy += n
		}
	}
	return busy, total, true
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
	}
	versions := map[string]string{}
	for _, m := range info.Deps {
		if wanted[m.Path] {
			versions[m.Path] = m.Version
		}
	}
	return versions
}
