// Package testenv decides which tests "go test -short" leaves out: those that
// need real servers, and those that need minutes. Each is skipped with a line
// that names what it needs; "make short" counts these lines. Without -short no
// test is left out here: a missing server fails its test.
//
// It imports nothing of the module.
package testenv

import (
	"strings"
	"testing"
)

// NeedsServers skips the test in short mode. The names are those of backends;
// without names the test needs servers of several.
func NeedsServers(t testing.TB, backends ...string) {
	t.Helper()
	if len(backends) == 0 {
		backends = []string{"lock"}
	}
	leaveOut(t, "real "+strings.Join(backends, " and ")+" servers")
}

// NeedsProcesses skips a test in short mode that starts client processes and
// lets them run for seconds.
func NeedsProcesses(t testing.TB) {
	t.Helper()
	leaveOut(t, "client processes that run for seconds")
}

// NeedsTime skips a test in short mode that takes long by what it measures.
func NeedsTime(t testing.TB) {
	t.Helper()
	leaveOut(t, "more time than -short allows")
}

func leaveOut(t testing.TB, need string) {
	t.Helper()
	if testing.Short() {
		t.Skip("left out by -short: needs " + need)
	}
}
