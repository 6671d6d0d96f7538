package run

import (
	"testing"
	"time"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
)

// Violations reported while a scenario runs count time as the report does: from
// the start of the measured window.
func TestGlimpseCountsFromTheWindow(t *testing.T) {
	const window = int64(time.Hour)
	at := func(x time.Duration) int64 { return window + int64(x) }
	calls := []history.Call{
		{Client: 1, Kind: history.KindAcquire, Return: at(-time.Second)},
		{Client: 2, Kind: history.KindRelease, Return: at(1996 * time.Millisecond)},
	}
	for _, c := range []struct {
		class checker.Class
		from  time.Duration
		want  string
	}{
		{checker.Overlap, 1500 * time.Millisecond, "at 1.500 s clients 1 and 2 both hold k0"},
		{checker.Overlap, -400 * time.Millisecond, "at 0.400 s before the window clients 1 and 2 both hold k0"},
		{checker.ZombieSuccess, 0, "at 1.996 s a release of client 2's hold of k0 was confirmed, though that hold was over"},
	} {
		if got := glimpse(checker.Witness{Class: c.class, From: at(c.from), Calls: calls}, window); got != c.want {
			t.Errorf("%s\nwant %s", got, c.want)
		}
	}
}
