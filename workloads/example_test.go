package workloads_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockbench/lockbench/impls/reference"
	"github.com/lockbench/lockbench/workloads"
)

// The board shows what each client is doing; a gate can stop a client at each
// of these steps.
func Example() {
	path := filepath.Join(os.TempDir(), fmt.Sprintf("example-board-%d", os.Getpid()))
	defer os.Remove(path)
	board, err := workloads.CreateBoard(path, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer board.Close()
	fmt.Println("clients:", board.Clients(), "grants:", board.Acquired())
	fmt.Println("client 0 is idle:", board.Status(0).State == workloads.Idle)
	mutex := reference.Recipes()[0].Info()
	for _, step := range workloads.Steps(mutex) {
		if step == workloads.PlaceAcquiring {
			fmt.Println("a client of", mutex.ID, "can be stopped at", step)
		}
	}
	// Output:
	// clients: 2 grants: 0
	// client 0 is idle: true
	// a client of reference/mutex can be stopped at acquiring
}
