package workloads

import "github.com/lockbench/lockbench/scenario"

// The controller and a worker talk in JSON, one value a line: orders on the
// worker's stdin, reports on its stdout. The end of stdin means that the
// controller is gone, and the worker stops at once.
type order struct {
	Spec *Spec   `json:"spec,omitempty"` // first of all, and once
	Go   *window `json:"go,omitempty"`
	Stop bool    `json:"stop,omitempty"`
}

// window is when to work; stamps are CLOCK_MONOTONIC nanoseconds.
type window struct {
	Start       int64 `json:"start"`        // of the load
	WindowStart int64 `json:"window_start"` // of what is measured
	End         int64 `json:"end"`
}

type report struct {
	Ready  bool                   `json:"ready,omitempty"`
	Sample *scenario.WorkerSample `json:"sample,omitempty"` // its last word
	Error  string                 `json:"error,omitempty"`  // its last word, if it could not go on
}

// EnvWorker is set to 1 in the environment of every worker process, so that a
// test binary can tell that it was started as one; see MainIfWorker.
const EnvWorker = "LOCKBENCH_WORKER"
