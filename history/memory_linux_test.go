package history

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testenv"
)

// A thousand clients of one process, each with some hundred records, cost
// little memory: a page or a few each.
func TestMemoryOfManyWriters(t *testing.T) {
	testenv.NeedsTime(t)
	const writers, most = 1000, 64 << 20
	dir, clock := t.TempDir(), NewClock()
	before := resident(t)
	var all []*Writer
	for i := range uint32(writers) {
		w, _ := create(t, dir, Options{Client: i, Clock: clock})
		all = append(all, w)
	}
	op, r := Op{Kind: KindAcquire}, Result{Outcome: Held}
	for range 400 {
		for _, w := range all {
			if _, err := w.Begin(&op); err != nil {
				t.Fatal(err)
			}
			w.End(&r)
		}
	}
	grown := resident(t) - before
	t.Logf("%d writers with 400 records each: %d KiB more resident memory", writers, grown>>10)
	if grown > most {
		t.Errorf("%d writers take %d bytes of memory, at most %d", writers, grown, most)
	}
	for _, w := range all {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if left := resident(t) - before; left > most/2 {
		t.Errorf("%d bytes stay after Close", left)
	}
}

// resident returns the resident set of this process in bytes.
func resident(t *testing.T) int64 {
	t.Helper()
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var kib int64
		if n, _ := fmt.Sscanf(line, "VmRSS: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	t.Fatal("no VmRSS in /proc/self/status")
	return 0
}
