package chaos

import (
	"bytes"
	"fmt"
	"os"
	"time"
)

func pauseAvailable() error { return nil }

// waitStopped waits until every thread of pid stands still: SIGSTOP is
// delivered at once, but a thread in a system call stops only when it returns.
func waitStopped(pid int, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		still, err := allStopped(pid)
		if err != nil {
			return fmt.Errorf("look at stopped pid %d: %w", pid, err)
		}
		if still {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("pid %d did not stand still within %v of SIGSTOP", pid, patience)
		}
		time.Sleep(200 * time.Microsecond)
	}
}

func allStopped(pid int) (bool, error) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	threads, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	for _, t := range threads {
		stat, err := os.ReadFile(dir + "/" + t.Name() + "/stat")
		if os.IsNotExist(err) {
			continue // the thread ended meanwhile
		}
		if err != nil {
			return false, err
		}
		// pid (comm) S ...: comm may hold anything, so look from its end.
		i := bytes.LastIndexByte(stat, ')')
		if i < 0 || i+2 >= len(stat) {
			return false, fmt.Errorf("%s/%s/stat: unexpected content", dir, t.Name())
		}
		if stat[i+2] != 'T' {
			return false, nil
		}
	}
	return len(threads) > 0, nil
}
