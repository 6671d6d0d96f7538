package chaos

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Log is faults.jsonl: an append-only record of each fault, its target and its time.
// It is safe for concurrent use.
type Log struct {
	mu    sync.Mutex
	file  *os.File
	clock history.Clock
}

// CreateLog creates the file at path; stamps come from clock.
func CreateLog(path string, clock history.Clock) (*Log, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("create the fault log: %w", err)
	}
	return &Log{file: f, clock: clock}, nil
}

// Add appends e. An event without a stamp gets the present one, which Add
// returns.
func (l *Log) Add(e scenario.FaultEvent) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.AtNS == 0 {
		e.AtNS = l.clock.Now()
	}
	line, err := json.Marshal(e)
	if err != nil {
		return 0, fmt.Errorf("write the fault log: %w", err)
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return 0, fmt.Errorf("write the fault log: %w", err)
	}
	return e.AtNS, nil
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }
