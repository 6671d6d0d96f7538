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

func TestNumber(t *testing.T) {
	const a = "0123456789abcdef0123456789abcdef"
	for name, want := range map[string]int32{
		a + "-0000000000": 0,
		a + "-0000000017": 17,
		a + "-2147483647": 1<<31 - 1,
	} {
		if got, ok := number(name); !ok || got != want {
			t.Errorf("%s: %d, %t, want %d", name, got, ok, want)
		}
	}
	for _, name := range []string{"", a, a + "-", a + "_0000000001", a + "--2147483648", a + "-4294967296", a + "-x", "lock-0000000001"} {
		if got, ok := number(name); ok {
			t.Errorf("%q: taken for number %d", name, got)
		}
	}
}
