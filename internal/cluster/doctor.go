package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/backend/all"
	"github.com/lockbench/lockbench/internal/container"
)

// Report is what Diagnose found out.
type Report struct {
	Backends []Finding // in the order of Backends
	Machine  []Finding
}

// Finding is one fact about this machine.
type Finding struct {
	Subject string `json:"subject"` // redis, "temporary files"
	Works   bool   `json:"works"`
	Found   string `json:"found,omitempty"` // what is there: a version, a path, a number
	Why     string `json:"why,omitempty"`   // it does not work
	Mend    string `json:"mend,omitempty"`  // what to do about it: a command where there is one
}

// Diagnose looks for every backend's server (overrides name some, as the flag
// --server does) and checks the other requirements of experiments. It changes
// nothing.
func Diagnose(ctx context.Context, overrides map[string]string) Report {
	probes := []func(context.Context) Finding{
		probeProcessor, probeMemory, probeRoot, probeInstall, probeClock, probeDisk, probeOrphans, probeDocker,
	}
	r := Report{Backends: make([]Finding, len(Backends())), Machine: make([]Finding, len(probes))}
	var wg sync.WaitGroup
	for i, name := range Backends() {
		wg.Go(func() { r.Backends[i] = diagnoseBackend(name, overrides[name]) })
	}
	for i, probe := range probes {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			r.Machine[i] = probe(ctx)
		})
	}
	wg.Wait()
	return r
}

func diagnoseBackend(name, override string) Finding {
	f := Finding{Subject: name}
	b, err := Find(name, override)
	if err != nil {
		f.Why = err.Error()
		f.Mend = "name another server by --server " + name + "=PATH, or none"
		if m, ok := errors.AsType[*backend.MissingError](err); ok {
			f.Why, f.Mend = m.What, m.Command
		}
		return f
	}
	f.Works = true
	// A topology may need more than the server.
	topologies, lacks := []string{}, ""
	for _, topology := range Topologies(name) {
		if m, ok := errors.AsType[*backend.MissingError](require(name, b, topology)); ok {
			lacks += fmt.Sprintf("; no %s, for %s: %s", topology, m.What, m.Command)
		} else {
			topologies = append(topologies, topology)
		}
	}
	f.Found = b.String() + " (" + strings.Join(topologies, ", ") + lacks + ")"
	return f
}

// require returns what a topology lacks with this server, or nil.
func require(name string, b backend.Binary, topology string) error {
	found, err := all.Find(name)
	if r, ok := found.(backend.Requiring); err == nil && ok {
		return r.Require(b, topology)
	}
	return err
}

func probeProcessor(context.Context) Finding {
	f := Finding{Subject: "processors", Works: true, Found: fmt.Sprint(runtime.NumCPU())}
	if runtime.NumCPU() < 2 {
		f.Works, f.Why = false, "clients and servers share one processor: figures say little about either"
		f.Mend = "use a machine with two or more"
	}
	return f
}

func probeRoot(context.Context) Finding {
	f := Finding{Subject: "root", Works: os.Geteuid() == 0}
	if f.Works {
		f.Found = "yes"
		return f
	}
	f.Why = "we run as an ordinary user: enough for all servers and process faults, not for installing them or for faults of the host's network"
	f.Mend = "run as root if you need those"
	return f
}

func probeInstall(context.Context) Finding {
	f := Finding{Subject: "installing servers", Mend: "install what is missing by hand: see each backend's command"}
	if runtime.GOOS == "darwin" {
		f.Why = "`make servers` knows apt-get only; etcd it builds all the same"
		return f
	}
	apt, err := exec.LookPath("apt-get")
	switch {
	case err != nil:
		f.Why = "there is no apt-get; etcd can be built all the same"
	case os.Geteuid() != 0:
		f.Why, f.Mend = "apt-get wants root; etcd can be built all the same", "sudo make servers"
	default:
		f.Works, f.Found, f.Mend = true, apt, ""
	}
	return f
}

// probeDisk measures how long a flush to disk takes in the servers' data folder. It
// takes no time on a memory disk, where servers that flush look too fast.
func probeDisk(context.Context) Finding {
	dir := os.TempDir()
	f := Finding{Subject: "temporary files", Found: dir}
	cost, err := fsyncCost(dir)
	if err != nil {
		f.Why, f.Mend = err.Error(), "name a folder that can be written by the variable TMPDIR"
		return f
	}
	f.Found = fmt.Sprintf("%s, a flush to disk takes %v", dir, cost.Round(10*time.Microsecond))
	if kind := memoryDisk(dir); kind != "" {
		f.Why = "the folder is on a memory disk (" + kind + "), where a flush costs nothing: servers that flush look faster than they are"
		f.Mend = "name a folder on a real disk by the variable TMPDIR"
		return f
	}
	f.Works = true
	return f
}

// fsyncCost is the median of a few small appends, each flushed.
func fsyncCost(dir string) (time.Duration, error) {
	file, err := os.CreateTemp(dir, "lockbench-fsync-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	var costs []time.Duration
	for range 9 {
		began := time.Now()
		if _, err := file.Write(make([]byte, 512)); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
		costs = append(costs, time.Since(began))
	}
	slices.Sort(costs)
	return costs[len(costs)/2], nil
}

func probeDocker(ctx context.Context) Finding {
	f := Finding{Subject: "docker"}
	e, err := container.Open(ctx, "")
	if err != nil {
		f.Why = strings.TrimPrefix(err.Error(), container.ErrEngine.Error()+": ")
		f.Mend = "only --env docker needs it; its socket is for root and the group docker"
		return f
	}
	defer e.Close() // nothing was asked of it that could fail now
	f.Works, f.Found = true, e.String()
	return f
}
