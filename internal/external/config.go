package external

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/lockbench/lockbench/impls"
)

// ErrConfig: the file, or one that it names, is not usable.
var ErrConfig = errors.New("the configuration of external servers is not usable")

// The defaults of Config.
const (
	DefaultPrefix     = "lb"
	DefaultMaxClients = 64
)

// Config describes the servers that lockbench may use.
type Config struct {
	// Prefix begins the names of all that a run creates.
	Prefix string `yaml:"prefix,omitempty"`
	// MaxClients is the most clients that a scenario may have.
	MaxClients int                 `yaml:"max_clients,omitempty"`
	Backends   map[string]*Servers `yaml:"backends"`
}

// Servers are those of one backend. Paths are relative to the file.
type Servers struct {
	Topology     string   `yaml:"topology,omitempty"` // default single
	Addresses    []string `yaml:"addresses"`
	Database     string   `yaml:"database,omitempty"`
	User         string   `yaml:"user,omitempty"`
	UserEnv      string   `yaml:"user_env,omitempty"`
	PasswordFile string   `yaml:"password_file,omitempty"`
	PasswordEnv  string   `yaml:"password_env,omitempty"`
	TLS          *TLS     `yaml:"tls,omitempty"`
	// Identities are, by address, those that permit faults on the servers.
	Identities []string `yaml:"identities,omitempty"`

	// Account and Security are the logins and certificates that were read.
	Account  impls.Account `yaml:"-"`
	Security *impls.TLS    `yaml:"-"`
}

// TLS names the files of certificates. Without a CA the system's are trusted.
type TLS struct {
	CA          string `yaml:"ca,omitempty"`
	Certificate string `yaml:"certificate,omitempty"`
	Key         string `yaml:"key,omitempty"`
	ServerName  string `yaml:"server_name,omitempty"`
}

// Load reads a file and all that it names. Passwords are, by backend, further
// sources of passwords, "env:NAME" or "file:PATH", which come first.
func Load(path string, passwords map[string]string) (*Config, error) {
	c, err := load(path, passwords)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return c, nil
}

func load(path string, passwords map[string]string) (*Config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var c Config
	if err := yaml.UnmarshalWithOptions(data, &c, yaml.Strict()); err != nil {
		// Without the source: a password may have been written there by mistake.
		return nil, fmt.Errorf("%s: %s (see docs/external.md)", path, firstLine(yaml.FormatError(err, false, false)))
	}
	c.Prefix, c.MaxClients = cmp.Or(c.Prefix, DefaultPrefix), cmp.Or(c.MaxClients, DefaultMaxClients)
	if strings.ContainsFunc(c.Prefix, notInPrefix) || len(c.Prefix) > 40 {
		return nil, fmt.Errorf("%s: prefix %q: use at most 40 letters, digits, dots, hyphens and underscores", path, c.Prefix)
	}
	if c.MaxClients < 1 {
		return nil, fmt.Errorf("%s: max_clients %d: write 1 or more", path, c.MaxClients)
	}
	if len(c.Backends) == 0 {
		return nil, fmt.Errorf("%s: no backends: write for example\nbackends: {redis: {addresses: [\"127.0.0.1:6379\"]}}", path)
	}
	for name := range passwords {
		if c.Backends[name] == nil {
			return nil, fmt.Errorf("--password for %q: %s has no such backend", name, path)
		}
	}
	var used []string
	for _, name := range slices.Sorted(maps.Keys(c.Backends)) {
		s := c.Backends[name]
		if s == nil {
			return nil, fmt.Errorf("%s: backends.%s: write addresses", path, name)
		}
		r := reader{filepath.Dir(path), &used}
		if err := s.read(name, r, passwords[name]); err != nil {
			return nil, fmt.Errorf("%s: backends.%s: %w", path, name, err)
		}
	}
	// Processes that lockbench starts do not inherit them. Not before, for several
	// backends may have the same.
	for _, name := range used {
		_ = os.Unsetenv(name)
	}
	return &c, nil
}

func notInPrefix(r rune) bool {
	return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", r)
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return s
}

// reader reads what a file names.
type reader struct {
	dir  string    // of the file
	used *[]string // environment variables that were read
}

// read fills in the defaults and reads the files and variables that s names.
func (s *Servers) read(backend string, r reader, password string) (err error) {
	s.Topology = cmp.Or(s.Topology, "single")
	if len(s.Addresses) == 0 {
		return errors.New("no addresses: write host:port of each server")
	}
	for _, a := range s.Addresses {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("address %q: write host:port", a)
		}
	}
	own := "LOCKBENCH_" + strings.ToUpper(backend) + "_"
	s.Account = impls.Account{User: s.User, Database: s.Database}
	if s.User == "" {
		if s.Account.User, err = r.variable(s.UserEnv, own+"USER"); err != nil {
			return fmt.Errorf("user_env: %w", err)
		}
	}
	if s.Account.Password, err = s.password(password, r, own+"PASSWORD"); err != nil {
		return err
	}
	if s.TLS == nil {
		return nil
	}
	s.Security = &impls.TLS{ServerName: s.TLS.ServerName}
	for _, f := range []struct {
		name, path string
		into       *string
	}{{"ca", s.TLS.CA, &s.Security.CA}, {"certificate", s.TLS.Certificate, &s.Security.Certificate}, {"key", s.TLS.Key, &s.Security.Key}} {
		if f.path == "" {
			continue
		}
		if *f.into, err = r.text(f.path); err != nil {
			return fmt.Errorf("tls.%s: %w", f.name, err)
		}
	}
	if _, err := s.Security.Config(); err != nil {
		return fmt.Errorf("tls: %w", err)
	}
	return nil
}

// password takes the first source that is given: the flag, the file's, the
// variable of the backend.
func (s *Servers) password(flag string, r reader, own string) (string, error) {
	kind, where, _ := strings.Cut(flag, ":")
	switch {
	case flag != "" && kind == "env" && where != "":
		return r.variable(where, "")
	case flag != "" && kind == "file" && where != "":
		return reader{}.text(where)
	case s.PasswordFile != "" && s.PasswordEnv != "":
		return "", errors.New("password_file and password_env: write one of them")
	case s.PasswordFile != "":
		return r.text(s.PasswordFile)
	}
	return r.variable(s.PasswordEnv, own)
}

// variable reads an environment variable that must be set, or else one that may
// be.
func (r reader) variable(name, otherwise string) (string, error) {
	value, set := os.LookupEnv(cmp.Or(name, otherwise))
	if name != "" && !set {
		return "", fmt.Errorf("the environment variable %s is not set", name)
	}
	*r.used = append(*r.used, cmp.Or(name, otherwise))
	return value, nil
}

// text is a file's content without the end of its line.
func (r reader) text(path string) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.dir, path)
	}
	data, err := os.ReadFile(path)
	return strings.TrimRight(string(data), "\r\n"), err
}

// ParsePasswords reads the values of --password: BACKEND=env:NAME or
// BACKEND=file:PATH. Errors do not repeat them: they may be passwords.
func ParsePasswords(values []string) (map[string]string, error) {
	sources := map[string]string{}
	for _, v := range values {
		backend, source, _ := strings.Cut(v, "=")
		kind, where, _ := strings.Cut(source, ":")
		if backend == "" || kind != "env" && kind != "file" || where == "" {
			return nil, errors.New("--password: write BACKEND=env:NAME or BACKEND=file:PATH; a password itself would be visible to other users of this machine")
		}
		sources[backend] = source
	}
	return sources, nil
}
