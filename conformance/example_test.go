package conformance_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/lockbench/lockbench/conformance"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/reference"
)

// One property of a lock, measured with client processes. TestMain calls
// MainIfClient, so that this program can be started again as a client.
func ExampleMeasure() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "lock.sock")
	server, err := reference.NewServer(path, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	findings, err := conformance.Measure(context.Background(), conformance.Subject{
		Recipe: reference.Recipes()[0],
		Config: impls.Config{Addresses: []string{path}, TTL: time.Second},
	}, conformance.Only(impls.NonBlocking))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range findings {
		fmt.Printf("%s: measured %s, as promised: %t\n", f.Property, f.Measured, f.AsPromised())
	}
	// Output: nonblocking: measured yes, as promised: true
}
