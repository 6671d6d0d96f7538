package cluster

import (
	"strconv"

	"github.com/lockbench/lockbench/supervise"
)

// tracedBy tells whether a tracer has every thread of a process.
func tracedBy(p *supervise.Process, tracer int) (bool, error) {
	return everyThread(p, func(status string) bool {
		return between(status, "\nTracerPid:\t", "\n") == strconv.Itoa(tracer)
	})
}
