package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// fakeClients says what a test wants of who holds what; the processes behind
// it are real.
type fakeClients struct {
	proc    Process
	hosted  []uint32
	holders func() []Holding
	holds   func(Holding) bool // nil: always
	waiters []Holding
	idle    []uint32
}

// Holders are, where a test says nothing, one that gets every key after
// everything: the first grant after any fault.
func (f fakeClients) Holders() []Holding {
	if f.holders == nil {
		return []Holding{{Client: 99, Key: 4, Since: math.MaxInt64}}
	}
	return f.holders()
}
func (f fakeClients) Waiters() []Holding   { return slices.Clone(f.waiters) }
func (f fakeClients) Idle() []uint32       { return f.idle }
func (f fakeClients) Holds(h Holding) bool { return f.holds == nil || f.holds(h) }
func (f fakeClients) Process(client uint32) (Process, []uint32, error) {
	return f.proc, append(f.hosted, client), nil
}

func runSchedule(t *testing.T, ctx context.Context, f scenario.Fault, window time.Duration, c Clients) []scenario.FaultEvent {
	t.Helper()
	events, _ := runWith(t, ctx, Schedule{Faults: []scenario.Fault{f}, Clients: c}, window)
	return events
}

func runWith(t *testing.T, ctx context.Context, s Schedule, window time.Duration) ([]scenario.FaultEvent, []Kill) {
	t.Helper()
	events, kills, err := tryRun(t, ctx, s, window)
	if err != nil {
		t.Fatal(err)
	}
	return events, kills
}

// tryRun runs a schedule whose window begins now. What the test left out of it
// is filled in.
func tryRun(t *testing.T, ctx context.Context, s Schedule, window time.Duration) ([]scenario.FaultEvent, []Kill, error) {
	t.Helper()
	if s.Log == nil {
		s.Log = newLog(t)
	}
	s.Clock = s.Log.clock
	s.Start = s.Clock.Now()
	s.End = s.Start + int64(window)
	if s.Seed == 0 {
		s.Seed = 7
	}
	if s.Clients == nil {
		s.Clients = fakeClients{proc: idleProcess{}}
	}
	kills, runErr := s.Run(ctx)
	if err := s.Log.Close(); err != nil {
		t.Fatal(err)
	}
	return readLog(t, s.Log), kills, runErr
}

func newLog(t *testing.T) *Log {
	t.Helper()
	log, err := CreateLog(filepath.Join(t.TempDir(), scenario.FileFaults), history.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	return log
}

// readLog reads what has been written so far.
func readLog(t *testing.T, log *Log) (events []scenario.FaultEvent) {
	t.Helper()
	text, err := os.ReadFile(log.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var e scenario.FaultEvent
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// await waits until the log has the events.
func await(t *testing.T, log *Log, wanted ...string) {
	for missing := true; missing && t.Context().Err() == nil; time.Sleep(time.Millisecond) {
		missing = false
		events := readLog(t, log)
		for _, w := range wanted {
			missing = missing || !slices.ContainsFunc(events, func(e scenario.FaultEvent) bool { return e.ID+" "+e.Event == w })
		}
	}
}

func names(events []scenario.FaultEvent) (s []string) {
	for _, e := range events {
		s = append(s, e.Event)
	}
	return s
}

func equal(a []string, b ...string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
