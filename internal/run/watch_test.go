package run

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/workloads"
)

// Violations reported while a scenario runs count time as the report does: from
// the start of the measured window.
func TestViolationsCountFromTheWindow(t *testing.T) {
	const window = int64(time.Hour)
	for since, want := range map[time.Duration]string{
		1500 * time.Millisecond: "at 1.500 s clients 1 and 2 both hold k7",
		-400 * time.Millisecond: "at 0.400 s before the window clients 1 and 2 both hold k7",
	} {
		d := workloads.DoubleHold{
			First:  workloads.Status{Client: 1, Key: 7, Since: window - int64(time.Second)},
			Second: workloads.Status{Client: 2, Key: 7, Since: window + int64(since)},
		}
		if got := doubleHoldText(d, window); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}
