package conformance_test

import (
	"os"
	"testing"
	"time"

	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/reference"
)

// TestMain and TestYours are all that a team writes to test a lock of its own:
// a Recipe that opens it (see impls.Recipe; impls/reference is a short one),
// how it is found by its id, and the servers' addresses. (Theirs calls the hook
// in any case.)
func TestMain(m *testing.M) {
	if os.Getenv(envNoHook) == "" {
		conformance.MainIfClient(find)
	}
	os.Exit(m.Run())
}

func TestYours(t *testing.T) {
	t.Parallel()
	mylock, addresses := reference.Recipes()[0], []string{newReference(t).path}
	conformance.Run(t, conformance.Subject{
		Recipe: mylock,
		Config: impls.Config{Addresses: addresses, TTL: time.Second},
	})
}
