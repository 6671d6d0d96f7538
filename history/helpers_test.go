package history

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lockbench/lockbench/internal/testenv"
)

// oneIn: tests of damage read one in so many files under the race detector, which
// has nothing to find in a single goroutine, and every file without it.
func oneIn() int {
	if testenv.Race {
		return 10
	}
	return 1
}

// mould draws calls that the format can hold, from a seed: the same seed, the
// same calls.
type mould struct {
	rnd *rand.Rand
}

func newMould(seed uint64) *mould { return &mould{rand.New(rand.NewPCG(seed, 7))} }

func (m *mould) op() Op {
	op := Op{
		Kind:  1 + Kind(m.rnd.IntN(len(kindNames)-1)),
		Flags: Flags(m.rnd.IntN(int(allFlags) + 1)),
		Key:   m.rnd.Uint32N(8),
		Fence: m.rnd.Uint64N(3),
		Arg:   m.rnd.Uint64(),
	}
	for i := range op.Attempt {
		op.Attempt[i] = byte(m.rnd.Uint32())
	}
	if m.rnd.IntN(2) == 0 {
		op.Intended = m.rnd.Int64N(1 << 40)
	}
	return op
}

func (m *mould) result(k Kind) Result {
	r := Result{
		Flags:    Flags(m.rnd.IntN(int(allFlags) + 1)),
		Fence:    m.rnd.Uint64N(3) * m.rnd.Uint64N(1<<50),
		LeaseEnd: m.rnd.Int64(),
		Value:    m.rnd.Uint64(),
	}
	for r.Outcome == Open || !fits(k, r.Outcome) {
		r.Outcome = Outcome(m.rnd.IntN(len(outcomeNames)))
	}
	return r
}

// expected is the call that the two halves make.
func expected(client, seq uint32, op Op, r Result, invoke, ret int64) Call {
	c := begun(client, seq, op, invoke)
	c.Outcome, c.Flags, c.Return = r.Outcome, op.Flags|r.Flags, ret
	if r.Fence != 0 {
		c.Fence = r.Fence
	}
	c.LeaseEnd, c.Value = r.LeaseEnd, r.Value
	return c
}

func begun(client, seq uint32, op Op, invoke int64) Call {
	c := Call{
		Client: client, Seq: seq, Kind: op.Kind, Flags: op.Flags, Key: op.Key, Attempt: op.Attempt,
		Intended: op.Intended, Invoke: invoke, Fence: op.Fence, Arg: op.Arg,
	}
	if c.Intended == 0 {
		c.Intended = invoke
	}
	return c
}

// pour writes n records of a seed and returns the calls that a reader must
// find. Among them are points, calls left open, and points within a call.
func pour(t testing.TB, w *Writer, seed uint64, n int) []Call {
	t.Helper()
	m := newMould(seed)
	var calls []Call
	must := func(at int64, err error) int64 {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	point := func() {
		op := m.op()
		op.Kind = KindLost
		r := m.result(op.Kind)
		at := must(w.Point(&op, &r))
		calls = append(calls, expected(w.client, uint32(len(calls)), op, r, at, at))
	}
	for len(calls) < n {
		if m.rnd.IntN(10) == 0 {
			point()
			continue
		}
		op := m.op()
		r := m.result(op.Kind)
		at := must(w.Begin(&op))
		i := len(calls)
		calls = append(calls, begun(w.client, uint32(i), op, at))
		if m.rnd.IntN(10) == 0 && len(calls) < n {
			point()
		}
		if m.rnd.IntN(10) > 0 {
			calls[i] = expected(w.client, uint32(i), op, r, at, w.End(&r))
		}
	}
	return calls
}

// create begins a stream in a folder.
func create(t testing.TB, dir string, o Options) (*Writer, string) {
	t.Helper()
	path := filepath.Join(dir, fmt.Sprintf("client-%d", o.Client))
	w, err := Create(path, o)
	if err != nil {
		t.Fatal(err)
	}
	return w, path
}

// abandon leaves a Writer as the death of its process would.
func abandon(t testing.TB, w *Writer) {
	t.Helper()
	w.unmap()
	if err := w.file.Close(); err != nil {
		t.Fatal(err)
	}
}

// small writes a merged history of three clients, the second of them dead, and
// returns the file and the calls in it.
func small(t testing.TB, n int) (path string, calls []Call) {
	t.Helper()
	dir := t.TempDir()
	clock := NewClock()
	var src []string
	for c := range uint32(3) {
		w, file := create(t, dir, Options{Client: c, Worker: c, Streams: 3, Clock: clock})
		calls = append(calls, pour(t, w, uint64(c), n)...)
		if c == 1 {
			abandon(t, w)
		} else if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		src = append(src, file)
	}
	path = filepath.Join(t.TempDir(), "history.lbh")
	if err := Merge(path, src...); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(calls, compareCalls)
	return path, calls
}

// sound reads a history that must be without damage.
func sound(t testing.TB, path string) *History {
	t.Helper()
	h, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range h.Damage {
		t.Errorf("a sound history is accused: %v", d)
	}
	return h
}

func sameCalls(t testing.TB, got, want []Call) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d calls, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("call %d:\n got %+v\nwant %+v", i, got[i], want[i])
		}
	}
}

type callID struct{ client, seq uint32 }

// believed checks the reader's result for a history that was altered: each call
// is as it was written, or some of it is missing, and never different; and if
// anything is missing, damage reports it.
func believed(t testing.TB, h *History, err error, original map[callID]Call, streams []Stream) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrNoRecords) {
		t.Fatal(err)
	}
	invariants(t, h)
	reduced := len(h.Calls) != len(original)
	for _, c := range h.Calls {
		want, ok := original[callID{c.Client, c.Seq}]
		if !ok {
			t.Fatalf("a call that was never made: %+v", c)
		}
		if c == want {
			continue
		}
		reduced = true
		less := want
		less.Outcome, less.Return, less.LeaseEnd, less.Value = Unknown, 0, 0, 0
		// Flags and token of the return half are unknown with it.
		less.Flags, less.Fence = c.Flags, c.Fence
		if c != less {
			t.Fatalf("an altered call is handed out as sound:\n got %+v\nwant %+v", c, want)
		}
	}
	if len(h.Damage) == 0 && (reduced || !slices.Equal(h.Streams, streams)) {
		t.Fatalf("unnoticed: %d calls of %d, streams %+v", len(h.Calls), len(original), h.Streams)
	}
	if len(h.Calls) == 0 && err == nil {
		t.Fatal("no call and no error")
	}
}

// invariants checks what holds for every result of Read.
func invariants(t testing.TB, h *History) {
	t.Helper()
	if !slices.IsSortedFunc(h.Calls, compareCalls) {
		t.Fatal("calls are not in order")
	}
	seen := make(map[callID]bool, len(h.Calls))
	records := make(map[uint32]int)
	for _, c := range h.Calls {
		id := callID{c.Client, c.Seq}
		if seen[id] {
			t.Fatalf("call %v twice", id)
		}
		seen[id] = true
		records[c.Client]++
		returned := c.Return != 0
		switch {
		case !c.Kind.Valid(), !c.Outcome.Valid(), c.Flags&^allFlags != 0, c.Invoke <= 0, c.Intended < 0:
			t.Fatalf("impossible: %+v", c)
		case returned && c.Return < c.Invoke, returned && c.Outcome == Open, !returned && c.Outcome != Open && c.Outcome != Unknown:
			t.Fatalf("outcome and return do not fit: %+v", c)
		case !returned && c.Outcome == Unknown && len(h.Damage) == 0:
			t.Fatalf("a return was lost and no damage reported: %+v", c)
		}
	}
	for i, s := range h.Streams {
		if records[s.Client] != s.Records {
			t.Fatalf("stream %+v has %d calls", s, records[s.Client])
		}
		if i > 0 && h.Streams[i-1].Client >= s.Client {
			t.Fatal("streams are not in order")
		}
	}
}

func index(calls []Call) map[callID]Call {
	m := make(map[callID]Call, len(calls))
	for _, c := range calls {
		m[callID{c.Client, c.Seq}] = c
	}
	return m
}

func write(t testing.TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

func load(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// readBytes reads a merged or a client's file.
func readBytes(data []byte, name string) (*History, error) {
	return intoMemory(func(to sink) (*History, error) {
		return readAt(bytes.NewReader(data), name, int64(len(data)), to)
	})
}
