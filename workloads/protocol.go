package workloads

import (
	"time"

	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

// The controller and a worker talk in JSON, one value a line: orders on the
// worker's stdin, reports on its stdout. The end of stdin means that the
// controller is gone, and the worker stops at once.
type order struct {
	Spec *Spec   `json:"spec,omitempty"` // first of all, and once
	Go   *window `json:"go,omitempty"`
	Stop bool    `json:"stop,omitempty"`
	// Errand is carried out at once, whatever the clients do, and answered.
	Errand *errand `json:"errand,omitempty"`
}

// errand is one thing to be done to, or asked of, some of a worker's clients.
type errand struct {
	Serial  uint64   `json:"serial"` // the answer has it too
	Clients []uint32 `json:"clients"`

	Apply     *faultnet.Rule `json:"apply,omitempty"` // under Rule, to Addresses
	Lift      bool           `json:"lift,omitempty"`  // what is in force under Rule
	Rule      string         `json:"rule,omitempty"`
	Addresses []string       `json:"addresses,omitempty"` // none: all
	Peers     bool           `json:"peers,omitempty"`
	Skew      *time.Duration `json:"skew,omitempty"`
}

// answer is what came of an errand, of all its clients together.
type answer struct {
	Serial uint64          `json:"serial"`
	Error  string          `json:"error,omitempty"`
	Effect faultnet.Effect `json:"effect"`
	Peers  []string        `json:"peers,omitempty"`
}

// window is when to work; stamps are CLOCK_MONOTONIC nanoseconds.
type window struct {
	Start       int64 `json:"start"`        // of the load
	WindowStart int64 `json:"window_start"` // of what is measured
	End         int64 `json:"end"`
}

type report struct {
	Ready  bool                   `json:"ready,omitempty"`
	Answer *answer                `json:"answer,omitempty"`
	Sample *scenario.WorkerSample `json:"sample,omitempty"` // its last word
	Error  string                 `json:"error,omitempty"`  // its last word, if it could not go on
}

// EnvWorker is set to 1 in the environment of every worker process, so that a
// test binary can tell that it was started as one; see MainIfWorker.
const EnvWorker = "LOCKBENCH_WORKER"
