package backend

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrMissing: this machine has no such server; the message explains how to install
// it.
var ErrMissing = errors.New("not installed")

// ErrBinary: the server that the user named cannot be used.
var ErrBinary = errors.New("the named server cannot be used")

// Binary is a server's program.
type Binary struct {
	Path    string // of the executable; for ZooKeeper, of java
	Product string // redis, Valkey, MariaDB
	Version string // as the program, or its archive, reports it; "" if it does not
	// Extra is what else was found, by names of the backend's own.
	Extra map[string]string
	// At is its location, for doctor, if the path does not show it.
	At string
}

// String is the product, its version and where it is.
func (b Binary) String() string {
	at := b.At
	if at == "" {
		at = b.Path
	}
	return strings.TrimSpace(b.Product+" "+b.Version) + " at " + at
}

// Find searches a backend's server. The first that applies: override, the
// environment variable LOCKBENCH_SERVER_<BACKEND> (LOCKBENCH_SERVER_REDIS), the
// folder of our own executable and bin/ in it, PATH, the usual folders. For
// ZooKeeper, override is a folder with its jars (or lib/ with them).
//
// The error is ErrMissing if there is none, ErrBinary if the named one cannot be
// used.
func Find(b Backend, override string) (Binary, error) {
	d := b.Describe()
	s := Search{backend: d.Name, packages: d.Packages, Named: override, by: "--server " + d.Name + "=" + override}
	if override == "" {
		name := "LOCKBENCH_SERVER_" + strings.ToUpper(d.Name)
		s.Named = os.Getenv(name)
		s.by = name + "=" + s.Named
	}
	return b.Find(s)
}

// Search is one search for a server.
type Search struct {
	Named string // by the user; ""

	backend  string
	packages Packages
	by       string // how the user named it
}

// Program finds an executable by its names, best first.
func (s Search) Program(names ...string) (string, error) {
	if s.Named != "" {
		path, err := filepath.Abs(s.Named)
		if err == nil {
			err = Executable(path)
		}
		if err != nil {
			return "", s.Unusable(err)
		}
		return path, nil
	}
	if path := Lookup(names...); path != "" {
		return path, nil
	}
	return "", s.Missing(strings.Join(names, " or ") + " was not found")
}

// Unusable is the error for a server that the user named.
func (s Search) Unusable(err error) error {
	return fmt.Errorf("%s: %w: %w", s.by, ErrBinary, err)
}

// Missing is the error for a server that is not installed.
func (s Search) Missing(what string) error { return s.MissingPart(what, s.packages.Command()) }

// MissingPart is Missing, where another command installs the part that lacks.
func (s Search) MissingPart(what, command string) error {
	return &MissingError{Backend: s.backend, What: what, Command: command}
}

// MissingError is the ErrMissing of a backend, or of one of its topologies.
type MissingError struct {
	Backend  string
	Topology string // the one that lacks it; "" is any
	What     string // was not found
	Command  string // that installs it
}

// Error names what is missing, and what to do next.
func (e *MissingError) Error() string {
	subject := strings.TrimSpace(e.Backend + " " + e.Topology)
	return fmt.Sprintf("%s is %v: %s; install it with `%s`, or name one by --server %s=PATH", subject, ErrMissing, e.What, e.Command, e.Backend)
}

// Is makes it an ErrMissing.
func (e *MissingError) Is(target error) bool { return target == ErrMissing }

// Lookup finds the first of the programs beside our executable, on PATH or in
// the usual folders; "" if there is none.
func Lookup(names ...string) string {
	var before []string
	if self, err := os.Executable(); err == nil {
		dir := filepath.Dir(self)
		before = []string{dir, filepath.Join(dir, "bin")}
	}
	// Debian keeps mysqld and others in folders that are not on users' PATH.
	after := []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/usr/libexec", "/opt/homebrew/bin", "/opt/homebrew/sbin"}
	for _, name := range names {
		for _, dir := range before {
			if path := filepath.Join(dir, name); Executable(path) == nil {
				return path
			}
		}
		if path, err := exec.LookPath(name); err == nil {
			if path, err = filepath.Abs(path); err == nil {
				return path
			}
		}
		for _, dir := range after {
			if path := filepath.Join(dir, name); Executable(path) == nil {
				return path
			}
		}
	}
	return ""
}

// Executable is nil for the path of an executable file.
func Executable(path string) error {
	st, err := os.Stat(path)
	if err != nil {
		return err
	}
	if st.IsDir() || st.Mode().Perm()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file", path)
	}
	return nil
}

// VersionOf runs a program for its version.
func VersionOf(path string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	text := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w: %.200s", path, err, text)
	}
	return text, nil
}
