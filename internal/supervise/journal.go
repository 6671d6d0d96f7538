package supervise

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

const journalName = "processes.jsonl"

// maxLine bounds a line of the journal; the line of a fault names every process
// that it stops.
const maxLine = 1 << 20

// entry is one line of a run's journal: a started process, a fault that is
// about to be injected, or a healed fault.
type entry struct {
	PID       int    `json:"pid,omitempty"`
	StartTime string `json:"start_time,omitempty"`
	Name      string `json:"name,omitempty"`
	Tree      bool   `json:"tree,omitempty"` // its descendants are not in its group

	Fault   string  `json:"fault,omitempty"` // its id
	What    string  `json:"what,omitempty"`
	Stopped []entry `json:"stopped,omitempty"`

	Healed string `json:"healed,omitempty"` // a fault's id
}

func (e entry) String() string { return fmt.Sprintf("%s (pid %d)", e.Name, e.PID) }

// inForce describes a fault that was not healed.
func (e entry) inForce() string {
	text := "fault " + e.Fault + " was still in force: " + e.What
	for i, p := range e.Stopped {
		switch i {
		case 0:
			text += "; it had stopped " + p.String()
		default:
			text += ", " + p.String()
		}
	}
	return text
}

func createJournal(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, journalName), os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make the journal: %w", err)
	}
	return f, nil
}

// appendJournal writes e with one write, which survives our death. It begins a
// new line, since a full disk may have truncated the previous one.
func appendJournal(f *os.File, e entry) error {
	line, err := json.Marshal(e)
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	if _, err := f.Write(slices.Concat([]byte{'\n'}, line, []byte{'\n'})); err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// readJournal lists the started processes and the unhealed faults in the
// journal of a run's folder, each the last first; nothing if there is no
// journal. It skips empty and truncated lines, since a truncated line does not
// identify its process.
func readJournal(dir string) (processes, faults []entry, err error) {
	f, err := os.Open(filepath.Join(dir, journalName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the journal: %w", err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var e entry
		switch {
		case json.Unmarshal(lines.Bytes(), &e) != nil:
		case e.Healed != "":
			faults = slices.DeleteFunc(faults, func(f entry) bool { return f.Fault == e.Healed })
		case e.Fault != "":
			faults = append(faults, e)
		default:
			processes = append(processes, e)
		}
	}
	slices.Reverse(processes)
	slices.Reverse(faults)
	if err := lines.Err(); err != nil {
		return processes, faults, fmt.Errorf("read the journal: %w", err)
	}
	return processes, faults, nil
}

// NoteFault writes to the journal that a fault is about to be injected: its id,
// what it is, and the processes that it stops. If this process is killed before
// FaultHealed, the watchdog or a sweep ends the stopped processes and reports
// the fault. After an error do not inject the fault: no process could heal it.
func (r *Run) NoteFault(id, what string, stopped ...*Process) error {
	e := entry{Fault: id, What: what}
	for _, p := range stopped {
		e.Stopped = append(e.Stopped, entry{PID: p.pid, StartTime: p.startTime, Name: p.name})
	}
	return r.note(id, e)
}

// FaultHealed writes to the journal that a fault is healed.
func (r *Run) FaultHealed(id string) error { return r.note(id, entry{Healed: id}) }

func (r *Run) note(id string, e entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return fmt.Errorf("note fault %s: %w", id, ErrEnded)
	}
	if err := appendJournal(r.journal, e); err != nil {
		return fmt.Errorf("note fault %s: %w", id, err)
	}
	return nil
}
