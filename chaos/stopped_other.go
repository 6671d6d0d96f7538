//go:build !linux

package chaos

import (
	"errors"
	"runtime"
	"time"
)

// Without /proc it cannot be proved that a process stands still, and a pause
// that is not proved must not be reported.
func pauseAvailable() error {
	return errors.New("a stopped process can be confirmed on Linux only; this is " + runtime.GOOS)
}

func waitStopped(int, time.Duration) error { return pauseAvailable() }
