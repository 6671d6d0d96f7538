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
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.PID()))
	if err != nil {
		return false, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a thread that has ended rests
		}
		if !strings.HasPrefix(between(string(text), "\nState:", "\n"), "\tT") {
			return false, nil
		}
	}
	return len(files) > 0, nil
}
