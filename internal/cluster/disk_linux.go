package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/lockbench/lockbench/internal/backend"
)

// tracedBy reports whether a tracer has every thread of a process.
func tracedBy(p backend.Process, tracer int) (bool, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", p.PID()))
	if err != nil {
		return false, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil || backend.Between(string(text), "\nTracerPid:\t", "\n") != strconv.Itoa(tracer) {
			return false, err
		}
	}
	return len(files) > 0, nil
}
