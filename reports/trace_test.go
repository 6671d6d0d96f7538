package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// traceOf writes calls as a history and reads its trace.
func traceOf(t *testing.T, calls []history.Call, faults []scenario.FaultEvent) []traceEvent {
	t.Helper()
	var file, out bytes.Buffer
	seq := map[uint32]uint32{}
	for i := range calls {
		calls[i].Seq = seq[calls[i].Client]
		seq[calls[i].Client]++
	}
	h := &history.History{Calls: calls}
	for c, n := range seq {
		h.Streams = append(h.Streams, history.Stream{Client: c, Records: int(n), Sealed: true, SealedAt: 1e9})
	}
	if err := history.WriteJSONL(&file, h); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "h.jsonl")
	if err := os.WriteFile(path, file.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	k, err := history.ReadKeyed(path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if err := WriteTrace(&out, k, faults); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Events []traceEvent `json:"traceEvents"`
	}
	if err := json.Unmarshal(out.Bytes(), &doc); err != nil {
		t.Fatalf("%v in %s", err, out.Bytes())
	}
	return doc.Events
}

func TestTrace(t *testing.T) {
	us := func(n int64) int64 { return n * 1000 }
	client := uint32(1)
	a, b, c := history.Attempt{1}, history.Attempt{2}, history.Attempt{3}
	events := traceOf(t, []history.Call{
		{Client: 0, Kind: history.KindAcquire, Attempt: a, Outcome: history.Held, Invoke: us(10), Return: us(20), Fence: 7},
		{Client: 1, Kind: history.KindAcquire, Attempt: b, Outcome: history.Held, Invoke: us(15), Return: us(40)},
		{Client: 0, Kind: history.KindWrite, Attempt: a, Outcome: history.Accepted, Invoke: us(30), Return: us(35)},
		{Client: 0, Kind: history.KindExtend, Attempt: a, Outcome: history.Extended, Invoke: us(32), Return: us(60)},
		{Client: 0, Kind: history.KindAcquire, Attempt: c, Key: 1, Outcome: history.Held, Invoke: us(36), Return: us(38)},
		{Client: 0, Kind: history.KindRelease, Attempt: a, Outcome: history.Released, Invoke: us(50), Return: us(55)},
		{Client: 1, Kind: history.KindLost, Attempt: b, Outcome: history.Lost, Invoke: us(70), Return: us(70)},
		{Client: 0, Kind: history.KindRelease, Attempt: c, Key: 1, Outcome: history.Released, Invoke: us(80), Return: us(90)},
	}, []scenario.FaultEvent{
		{ID: "1", Fault: "holder-pause", Event: "injected", AtNS: us(12), Client: &client},
		{ID: "2", Fault: "holder-kill", Event: "injected", AtNS: us(14)},
		{ID: "1", Fault: "holder-pause", Event: "healed", AtNS: us(32)},
	})
	lanes := map[int]string{}
	var got []string
	for _, e := range events {
		switch {
		case e.Name == "thread_name":
			lanes[e.Thread] = fmt.Sprint(e.Args["name"])
		case e.Phase == "X":
			got = append(got, fmt.Sprintf("%s: %s %g+%g", lanes[e.Thread], e.Name, e.At, *e.Length))
		case e.Phase == "i":
			got = append(got, fmt.Sprintf("%s: %s %g", lanes[e.Thread], e.Name, e.At))
		}
	}
	want := []string{
		"faults: holder-pause 2+20", "faults: holder-kill 4",
		"client 0: wait key 0 0+10", "client 0: hold key 0 10+35", "client 0: write key 0 20+5", "client 0: extend key 0 22",
		"client 0: wait key 1 26+2", "client 0, 2: hold key 1 28+52", "client 0: release key 0 40+5", "client 0: release key 1 70+10",
		"client 1: wait key 0 5+25", "client 1: hold key 0 30+50", "client 1: lost key 0 60",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
