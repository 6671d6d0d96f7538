package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/lockbench/lockbench/supervise"
)

// atRest tells whether every thread of a process has been stopped.
func atRest(p *supervise.Process) (bool, error) {
	// A pid that is somebody else's by now is an error here.
	if first, err := p.State(); err != nil || first != 'T' {
		return false, err
	}
	return everyThread(p, func(status string) bool {
		return strings.HasPrefix(between(status, "\nState:", "\n"), "\tT")
	})
}

// everyThread tells whether something holds of every thread of a process, by the
// text of its status. A thread that has ended does not count.
func everyThread(p *supervise.Process, holds func(status string) bool) (bool, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.PID()))
	if err != nil {
		return false, err
	}
	for _, file := range files {
		if text, err := os.ReadFile(file); err == nil && !holds(string(text)) {
			return false, nil
		}
	}
	return len(files) > 0, nil
}
