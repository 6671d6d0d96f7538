package cluster

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/scenario"
)

// shimSource is a library of ours for servers written in C or C++, and for the
// JVM: preloaded, it sets their wall clock and delays their flushes to disk by
// the values in a file. A C compiler builds it once in a run.
//
//go:embed shim/shim.c
var shimSource []byte

// shimFile names a node's file in its folder; the variable holds its path for the
// library. The file stays when the node is started again, as a machine's clock
// does when a program is started again.
const (
	shimFile     = "shim"
	shimVariable = "LOCKBENCH_SHIM"
)

// shimState is what the file holds; shim.c has the same.
type shimState struct {
	ahead   atomic.Int64 // of the wall clock, in nanoseconds
	late    atomic.Int64 // by which each flush is, in nanoseconds
	read    atomic.Int64 // readings of the wall clock
	flushed atomic.Int64 // flushes that were late
}

const shimSize = int(unsafe.Sizeof(shimState{}))

// shim is the library of a cluster.
type shim struct {
	once sync.Once
	path string
	err  error // it could not be made, and nothing was preloaded
}

// serverEnv is the environment that a node is started with; nil is our own. With
// Spec.Clock the library is preloaded. If it cannot be built the node starts
// without it, and Can returns the reason.
func (c *Cluster) serverEnv(n *Node, env []string) []string {
	if n.Role != backend.RoleNode || !c.preloaded() {
		return env
	}
	file, err := openShim(n)
	if err != nil {
		return env
	}
	file.Close()
	if env == nil {
		env = os.Environ()
	}
	preload := c.shim.path
	// Of two variables of a name the first would count.
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		theirs, is := strings.CutPrefix(kv, "LD_PRELOAD=")
		if is && theirs != "" {
			preload += ":" + theirs
		}
		return is
	})
	return append(env, "LD_PRELOAD="+preload, shimVariable+"="+filepath.Join(n.Dir, shimFile))
}

// preloaded reports whether servers are started with the library, and builds it if
// necessary.
func (c *Cluster) preloaded() bool {
	if !c.spec.Clock || Supports(c.spec.Backend, c.spec.Topology, scenario.AbilityClock) != nil {
		return false
	}
	_, err := c.shimPath()
	return err == nil
}

// shimPath is the library, made if need be.
func (c *Cluster) shimPath() (string, error) {
	c.shim.once.Do(func() { c.shim.path, c.shim.err = makeShim(c.run.Dir()) })
	return c.shim.path, c.shim.err
}

// makeShim compiles the library into a run's folder, unless it is there.
func makeShim(dir string) (string, error) {
	path := filepath.Join(dir, "shim.so")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := missingShim(); err != nil {
		return "", err
	}
	work, err := os.MkdirTemp(dir, "shim-")
	if err != nil {
		return "", fmt.Errorf("make the clock's library: %w", err)
	}
	defer os.RemoveAll(work)
	source, made := filepath.Join(work, "shim.c"), filepath.Join(work, "shim.so")
	if err := os.WriteFile(source, shimSource, 0o600); err != nil {
		return "", fmt.Errorf("make the clock's library: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	out, err := exec.CommandContext(ctx, compiler(), "-shared", "-fPIC", "-O2", "-pthread", "-o", made, source).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: the library that sets a server's clock cannot be compiled: %w: %.500s; try: apt-get install gcc libc6-dev", ErrMachine, err, out)
	}
	// Another cluster of the run may have been faster; its file is the same.
	if err := os.Rename(made, path); err != nil {
		return "", fmt.Errorf("make the clock's library: %w", err)
	}
	return path, nil
}

func compiler() string { return backend.Lookup("cc", "gcc", "clang") }

// missingShim returns what this machine lacks to build the library.
func missingShim() error {
	switch {
	case runtime.GOOS != "linux":
		return fmt.Errorf("%w: a server's clock can be set on Linux only", ErrMachine)
	case strconv.IntSize != 64:
		return fmt.Errorf("%w: a server's clock can be set on 64-bit systems only", ErrMachine)
	case compiler() == "":
		return fmt.Errorf("%w: no C compiler: apt-get install gcc libc6-dev", ErrMachine)
	}
	return nil
}

// shimmed is nil if the node runs with the library.
func (c *Cluster) shimmed(n *Node) error {
	if !c.spec.Clock {
		return fmt.Errorf("%w: the servers were started without the library that sets their clocks; set Spec.Clock", ErrUnsupported)
	}
	path, err := c.shimPath()
	if err != nil {
		return err
	}
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", n.Process.PID()))
	if err != nil {
		return fmt.Errorf("look whether %s has loaded the clock's library: %w", n.Name, err)
	}
	if !strings.Contains(string(maps), path) || !strings.Contains(string(maps), filepath.Join(n.Dir, shimFile)) {
		return fmt.Errorf("%w: %s at %s did not load the clock's library, as one that is linked statically or changes its user does not", ErrUnsupported, n.Name, c.servers.Binary.Path)
	}
	return nil
}

// withShim calls f with the node's file mapped, making it if need be.
func withShim(n *Node, f func(*shimState) error) (err error) {
	file, err := openShim(n)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := unix.Mmap(int(file.Fd()), 0, shimSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map %s: %w", file.Name(), err)
	}
	defer func() { err = errors.Join(err, unix.Munmap(data)) }()
	return f((*shimState)(unsafe.Pointer(&data[0])))
}

// openShim opens the node's file, and creates it if necessary: it exists before
// the server starts. It is filled rather than extended, because access to a page
// that a full disk has no space for kills the process.
func openShim(n *Node) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(n.Dir, shimFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	st, err := file.Stat()
	if err == nil && st.Size() < int64(shimSize) {
		_, err = file.WriteAt(make([]byte, shimSize), 0)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
