package supervise

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const journalName = "processes.jsonl"

// entry is one line of a run's journal: a process that was started.
type entry struct {
	PID       int    `json:"pid"`
	StartTime string `json:"start_time"`
	Name      string `json:"name"`
}

func createJournal(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, journalName), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the journal: %w", err)
	}
	return f, nil
}

// appendJournal writes e by one write, which the kernel keeps even if we are
// killed right after it.
func appendJournal(f *os.File, e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// readJournal lists the processes of a run's folder; none if it has no
// journal. A line that was cut short is skipped: its process cannot be named
// with certainty.
func readJournal(dir string) ([]entry, error) {
	f, err := os.Open(filepath.Join(dir, journalName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	defer f.Close()
	var entries []entry
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var e entry
		if json.Unmarshal(lines.Bytes(), &e) == nil {
			entries = append(entries, e)
		}
	}
	if err := lines.Err(); err != nil {
		return entries, fmt.Errorf("read the journal: %w", err)
	}
	return entries, nil
}
