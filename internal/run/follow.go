package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/workloads"
)

// readCalls is how often the clients' files are read while they work. The clients do
// nothing for it; the controller needs some CPU time.
const readCalls = time.Second

// follow passes the clients' calls on while they work, and the last ones when ctx
// has ended.
func (r *runner) follow(ctx context.Context, sc scenario.Scenario, clientDir string) {
	var paths []string
	for id := range sc.Clients {
		paths = append(paths, workloads.ClientFile(clientDir, uint32(id)))
	}
	files := history.Follow(paths...)
	t := time.NewTicker(readCalls)
	defer t.Stop()
	var err error
	for err == nil && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-t.C:
		}
		err = files.Read(func(c *history.Call) { r.Calls(sc, c) })
	}
	switch err = errors.Join(err, files.Close()); {
	case err != nil:
		r.Progress.Note(fmt.Sprintf("%s: the live figures stopped: %v", sc.Name, err))
	case files.Missed() > 0:
		r.Progress.Note(fmt.Sprintf("%s: the live figures lacked %d calls; the report has them", sc.Name, files.Missed()))
	}
}
