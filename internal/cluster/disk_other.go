//go:build !linux

package cluster

import "github.com/lockbench/lockbench/internal/backend"

// tracedBy: nothing here traces.
func tracedBy(backend.Process, int) (bool, error) { return false, missingTracer() }
