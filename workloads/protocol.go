package workloads

import (
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// The controller and a worker talk in JSON, one value a line: orders on the
// worker's stdin, reports on its stdout. When stdin ends the controller is gone,
// and the worker stops at once.
type order struct {
	Spec *Spec   `json:"spec,omitempty"` // the first order, once
	Go   *window `json:"go,omitempty"`
	Stop bool    `json:"stop,omitempty"`
	// Command is carried out at once, beside the load, and answered.
	Command *command `json:"command,omitempty"`
}

// command asks for the addresses that one of a worker's clients is connected to,
// or sets its clock.
type command struct {
	Serial uint64         `json:"serial"` // the answer has it too
	Client uint32         `json:"client"`
	Skew   *time.Duration `json:"skew,omitempty"` // nil: the addresses
}

// answer is the result of a command.
type answer struct {
	Serial uint64   `json:"serial"`
	Error  string   `json:"error,omitempty"`
	Peers  []string `json:"peers,omitempty"`
}

// window is when to work; stamps are CLOCK_MONOTONIC nanoseconds.
type window struct {
	Start       int64 `json:"start"`        // of the load
	WindowStart int64 `json:"window_start"` // of the measurement
	End         int64 `json:"end"`
}

type report struct {
	Ready  bool                   `json:"ready,omitempty"`
	Answer *answer                `json:"answer,omitempty"`
	Sample *scenario.WorkerSample `json:"sample,omitempty"` // the last report
	Error  string                 `json:"error,omitempty"`  // the last report of a worker that failed
}

// ReplyTo implements worker.Reply.
func (r report) ReplyTo() uint64 {
	if r.Answer == nil {
		return 0
	}
	return r.Answer.Serial
}

// EnvWorker is set to 1 in the environment of every worker process, so that a
// test binary knows that it was started as one; see MainIfWorker.
const EnvWorker = "LOCKBENCH_WORKER"
