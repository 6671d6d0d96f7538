package conformance_test

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/reference"
)

// TestYours is all that a team writes to test a lock of its own: a Recipe that
// opens it (see impls.Recipe; impls/reference is a short one) and the servers'
// addresses.
func TestYours(t *testing.T) {
	mylock, addresses := reference.Recipes()[0], []string{newReference(t).path}
	conformance.Run(t, conformance.Subject{
		Recipe: mylock,
		Config: impls.Config{Addresses: addresses, TTL: time.Second},
	})
}
