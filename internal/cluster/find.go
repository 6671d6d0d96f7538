package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// ErrMissing: this machine has no such server; the message says how to get it.
var ErrMissing = errors.New("not installed")

// ErrBinary: the server that the user named cannot be used.
var ErrBinary = errors.New("the named server cannot be used")

// Binary is a server's program.
type Binary struct {
	Path    string // of the executable; for zookeeper, of java
	Product string // redis, Valkey, etcd, Apache ZooKeeper, memcached, MariaDB, MySQL
	Version string // as the program, or its archive, says; "" if it does not
	// Extra is what else was found: "classpath" and "java" (zookeeper),
	// "install" (the program that makes a MariaDB data folder).
	Extra map[string]string
}

// Find searches a backend's server. The first that applies: override, the
// environment variable LOCKBENCH_SERVER_<BACKEND> (LOCKBENCH_SERVER_REDIS), the
// folder of our own executable and bin/ in it, PATH, the usual folders. For
// zookeeper, override is a folder with its jars (or lib/ with them).
//
// The error is ErrMissing if there is none, ErrBinary if the one that was named
// is none, ErrSpec if there is no such backend.
func Find(backend, override string) (Binary, error) {
	d, err := driverOf(backend)
	if err != nil {
		return Binary{}, err
	}
	s := search{backend: backend, named: override, by: "--server " + backend + "=" + override}
	if override == "" {
		name := "LOCKBENCH_SERVER_" + strings.ToUpper(backend)
		s.named = os.Getenv(name)
		s.by = name + "=" + s.named
	}
	return d.find(s)
}

// search is one search for a server.
type search struct {
	backend string
	named   string // by the user; ""
	by      string // how the user named it
}

// program finds an executable by its names, best first.
func (s search) program(names ...string) (string, error) {
	if s.named != "" {
		path, err := filepath.Abs(s.named)
		if err == nil {
			err = executable(path)
		}
		if err != nil {
			return "", s.unusable(err)
		}
		return path, nil
	}
	if path := lookup(names...); path != "" {
		return path, nil
	}
	return "", s.missing(strings.Join(names, " or ")+" was not found", packages(s.backend))
}

func (s search) unusable(err error) error {
	return fmt.Errorf("%s: %w: %w", s.by, ErrBinary, err)
}

// missing is the error for a server that is not there.
func (s search) missing(what, command string) error {
	return &MissingError{Backend: s.backend, What: what, Command: command}
}

// MissingError is the ErrMissing of a backend, or of one of its topologies.
type MissingError struct {
	Backend  string
	Topology string // the one that lacks it; "" is any
	What     string // was not found
	Command  string // that brings it
}

// Error says what is missing, and what to do next.
func (e *MissingError) Error() string {
	subject := strings.TrimSpace(e.Backend + " " + e.Topology)
	return fmt.Sprintf("%s is %v: %s; get it by `%s`, or name one by --server %s=PATH", subject, ErrMissing, e.What, e.Command, e.Backend)
}

// Is makes it an ErrMissing.
func (e *MissingError) Is(target error) bool { return target == ErrMissing }

// packages is the command that brings a backend's server.
func packages(backend string) string {
	if backend == "etcd" {
		return "make servers" // it needs nothing but Go
	}
	if runtime.GOOS == "darwin" {
		return "brew install " + map[string]string{"redis": "redis", "memcached": "memcached", "zookeeper": "zookeeper", "mysql": "mariadb"}[backend]
	}
	return "apt-get install --no-install-recommends " + map[string]string{
		"redis": "redis-server", "memcached": "memcached", "zookeeper": "zookeeper default-jre-headless", "mysql": "mariadb-server",
	}[backend]
}

// lookup finds the first of the programs beside our executable, on PATH or in
// the usual folders; "" if there is none.
func lookup(names ...string) string {
	var before []string
	if self, err := os.Executable(); err == nil {
		dir := filepath.Dir(self)
		before = []string{dir, filepath.Join(dir, "bin")}
	}
	// Debian keeps mysqld where users have no PATH to.
	after := []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/usr/libexec", "/opt/homebrew/bin", "/opt/homebrew/sbin"}
	for _, name := range names {
		for _, dir := range before {
			if path := filepath.Join(dir, name); executable(path) == nil {
				return path
			}
		}
		if path, err := exec.LookPath(name); err == nil {
			if path, err = filepath.Abs(path); err == nil {
				return path
			}
		}
		for _, dir := range after {
			if path := filepath.Join(dir, name); executable(path) == nil {
				return path
			}
		}
	}
	return ""
}

func executable(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.IsDir() || st.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file", path)
	}
	return nil
}

// versionOf runs a program for its version.
func versionOf(path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w: %.200s", path, err, text)
	}
	return text, nil
}

// between is what stands in s behind before and ahead of the first of the stop
// characters; "" if before is not there.
func between(s, before, stop string) string {
	_, s, ok := strings.Cut(s, before)
	if !ok {
		return ""
	}
	if i := strings.IndexAny(s, stop); i >= 0 {
		s = s[:i]
	}
	return s
}
