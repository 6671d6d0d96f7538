package cluster

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend"
)

// Errors of drivers, as they were seen, and what lockbench makes of them: one line
// each.
func TestExternalErrorsSayWhatIsWrong(t *testing.T) {
	e := External{TLS: &impls.TLS{}, servers: &backend.Cluster{Backend: "mysql"}}
	for text, want := range map[string]string{
		"Error 1045 (28000): Access denied for user 'bench'@'127.0.0.1' (using password: YES)": "wrong user or password",
		"Error 1044 (42000): Access denied for user 'weak'@'127.%' to database 'bench'":        "missing privilege",
		"NOPERM User weak has no permissions to run the 'set' command":                         "missing privilege",
		"READONLY You can't write against a read only replica.":                                "it is read-only",
		"dial tcp 127.0.0.1:1: connect: connection refused":                                    "it cannot be reached",
		"write tcp 127.0.0.1:2->127.0.0.1:1: write: connection reset by peer":                  "perhaps for want of a client's certificate",
		"x509: certificate has expired or is not yet valid: current time":                      "its certificate has expired",
		"two\nlines": "two lines",
	} {
		err := e.explain("127.0.0.1:1", errors.New(text))
		if got := err.Error(); !errors.Is(err, ErrExternal) || !strings.Contains(got, "mysql at 127.0.0.1:1: ") || !strings.Contains(got, want) || strings.Contains(got, "\n") {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
