package external_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/external"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The flag comes before the file's sources, and these before the variable of the
// backend. No process that is started later inherits a variable that was read.
func TestPasswordsComeFromTheFirstSource(t *testing.T) {
	one := write(t, "one", "from a file\n")
	for _, c := range []struct{ login, flag, want string }{
		{"", "", "of the backend"},
		{"password_env: OTHER", "", "of another variable"},
		{"password_file: " + one, "", "from a file"},
		{"password_file: " + one, "redis=env:OTHER", "of another variable"},
		{"", "redis=file:" + one, "from a file"},
	} {
		t.Setenv("LOCKBENCH_REDIS_PASSWORD", "of the backend")
		t.Setenv("LOCKBENCH_REDIS_USER", "bench")
		t.Setenv("OTHER", "of another variable")
		path := write(t, "c.yaml", "backends:\n  redis:\n    addresses: [\"127.0.0.1:1\"]\n    "+c.login+"\n")
		var flags []string
		if c.flag != "" {
			flags = []string{c.flag}
		}
		sources, err := external.ParsePasswords(flags)
		if err != nil {
			t.Fatal(err)
		}
		config, err := external.Load(path, sources)
		if err != nil {
			t.Fatal(err)
		}
		if got := config.Backends["redis"].Account; got.Password != c.want || got.User != "bench" {
			t.Errorf("%q %q: %+v, want the password %q", c.login, c.flag, got, c.want)
		}
		for _, name := range map[string][]string{"of the backend": {"LOCKBENCH_REDIS_PASSWORD"}, "of another variable": {"OTHER"}}[c.want] {
			if _, set := os.LookupEnv(name); set {
				t.Errorf("%q %q: %s is still set", c.login, c.flag, name)
			}
		}
	}
}

func TestConfigurationErrorsShowNoValues(t *testing.T) {
	const secret = "hunter2"
	for text, want := range map[string]string{
		"backends:\n  redis:\n    addresses: [\"127.0.0.1:1\"]\n    password: " + secret + "\n": "unknown field \"password\"",
		"backends: {redis: {addresses: []}}":                                                    "no addresses",
		"backends: {redis: {addresses: [localhost]}}":                                           "write host:port",
		"backends: {}":                       "no backends",
		"backends: {redis: }":                "write addresses",
		"prefix: a/b\nbackends: {redis: {}}": "prefix \"a/b\"",
		"max_clients: -1\nbackends: {a: {}}": "max_clients -1",
		"backends: {a: {addresses: [\"a:1\"], password_env: NO_SUCH_VARIABLE}}":                        "NO_SUCH_VARIABLE is not set",
		"backends: {a: {addresses: [\"a:1\"], password_env: A, password_file: b}}":                     "write one of them",
		"backends: {a: {addresses: [\"a:1\"], tls: {ca: none.pem}}}":                                   "tls.ca",
		"backends: {a: {addresses: [\"a:1\"], tls: {ca: " + write(t, "x.pem", secret) + "}}}":          "no certificate in PEM",
		"backends: {a: {addresses: [\"a:1\"], tls: {certificate: " + write(t, "y.pem", secret) + "}}}": "certificate and key",
	} {
		_, err := external.Load(write(t, "c.yaml", text), nil)
		if !errors.Is(err, external.ErrConfig) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%s\n%v; want %q", text, err, want)
		}
	}
	for _, flag := range []string{secret, "redis=" + secret, "redis=env:", "=env:A", "redis=pass:" + secret} {
		if _, err := external.ParsePasswords([]string{flag}); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("--password %s: %v", flag, err)
		}
	}
}
