package zookeeper

import (
	"errors"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

func TestOutcomes(t *testing.T) {
	recipetest.Rules(t, rules(), recipetest.Themselves(
		zk.ErrNoServer, zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNotEmpty, zk.ErrNoAuth, zk.ErrAuthFailed, zk.ErrBadVersion,
		zk.ErrInvalidACL, zk.ErrBadArguments, zk.ErrInvalidPath, zk.ErrInvalidFlags, zk.ErrNoChildrenForEphemerals,
		zk.ErrSessionExpired, zk.ErrSessionMoved,
		// Doubts: each may be followed by the request's effect.
		zk.ErrConnectionClosed, zk.ErrClosing, zk.ErrUnknown, zk.ErrAPIError, zk.ErrNothing,
		errors.New("unknown error: -5"), // how the driver names codes that it does not know
	))
}

func TestParse(t *testing.T) {
	const a = "0123456789abcdef0123456789abcdef"
	type node struct {
		mark   string
		number int32
	}
	for name, want := range map[string]node{
		a + "-0000000000":       {"", 0},
		a + "-0000000017":       {"", 17},
		a + "-2147483647":       {"", 1<<31 - 1},
		a + "-read-0000000004":  {"read", 4},
		a + "-write-0000000005": {"write", 5},
	} {
		if mark, n, ok := parse(name); !ok || (node{mark, n}) != want {
			t.Errorf("%s: %q, %d, %t, want %v", name, mark, n, ok, want)
		}
	}
	for _, name := range []string{"", a, a + "-", a + "_0000000001", a + "--2147483648", a + "--1000000000", a + "-0000000-01", a + "-4294967296",
		a + "-2147483648", a + "-x", a + "x-0000000001", a + "--0000000001", a + "-+000000001", "lock-0000000001"} {
		if mark, n, ok := parse(name); ok {
			t.Errorf("%q: taken for number %d of %q", name, n, mark)
		}
	}
}
