package history

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// collector gathers the calls of a key, half of the keys twice.
type collector struct {
	calls, before []Call
	again         bool
	done          func([]Call)
}

func (c *collector) Visit(call *Call) { c.calls = append(c.calls, *call) }

func (c *collector) Done() KeyVisitor {
	switch {
	case c.again:
		return &collector{before: c.calls, done: c.done}
	case c.before != nil && !slices.Equal(c.calls, c.before):
		c.calls = nil // is reported as missing
	}
	c.done(c.calls)
	return nil
}

// apart reads path key by key, and checks that this is the history h.
func apart(t testing.TB, path string, h *History) {
	t.Helper()
	tmp := t.TempDir()
	k, err := ReadKeyed(path, tmp)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(k.Streams, h.Streams) || !slices.Equal(k.Damage, h.Damage) {
		t.Errorf("streams %v, damage %v; want %v, %v", k.Streams, k.Damage, h.Streams, h.Damage)
	}
	var all []Call
	if err := k.Each(func(c *Call) { all = append(all, *c) }); err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, compareCalls)
	sameCalls(t, all, h.Calls)

	further := map[Attempt][]uint32{}
	for _, c := range h.Calls {
		if c.Kind == KindAlso {
			further[c.Attempt] = append(further[c.Attempt], c.Key)
		}
	}
	want := map[uint32][]Call{}
	for _, c := range h.Calls {
		keys := []uint32{c.Key}
		if c.Kind != KindAlso {
			keys = append(keys, further[c.Attempt]...)
		}
		slices.Sort(keys)
		for _, key := range slices.Compact(keys) {
			want[key] = append(want[key], c)
		}
	}
	got := map[uint32][]Call{}
	var mu sync.Mutex
	err = k.Keys(func(key uint32, calls int) KeyVisitor {
		return &collector{again: key%2 == 0, done: func(list []Call) {
			mu.Lock()
			defer mu.Unlock()
			if got[key] != nil {
				t.Errorf("key %d comes twice", key)
			}
			if calls < len(list) {
				t.Errorf("key %d has %d calls, said were %d", key, len(list), calls)
			}
			got[key] = list
		}}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Errorf("%d keys, want %d", len(got), len(want))
	}
	for key, calls := range want {
		slices.SortFunc(got[key], compareCalls)
		sameCalls(t, got[key], calls)
	}
	var jsonl, edn bytes.Buffer
	if err := errors.Join(k.WriteJSONL(&jsonl), k.WriteEDN(&edn)); err != nil {
		t.Fatal(err)
	}
	exported := func(read func(io.Reader, string) (*History, error), text io.Reader) {
		t.Helper()
		again, err := read(text, "exported")
		if err != nil && !errors.Is(err, ErrNoRecords) {
			t.Fatal(err)
		}
		sameCalls(t, again.Calls, h.Calls)
		if len(h.Damage) == 0 && (len(again.Damage) > 0 || !slices.Equal(again.Streams, h.Streams)) {
			t.Errorf("exported: %v, %v; want %v", again.Streams, again.Damage, h.Streams)
		}
	}
	exported(ReadJSONL, &jsonl)
	if len(h.Damage) == 0 {
		exported(ReadEDN, &edn)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// batch makes a stream with batches and returns its file.
func batch(t testing.TB, client uint32) string {
	t.Helper()
	w, path := create(t, t.TempDir(), Options{Client: client, Clock: NewClock()})
	for i := range uint32(20) {
		a := Attempt{byte(client), byte(i), 1}
		for also := range i % 3 {
			if _, err := w.Point(&Op{Kind: KindAlso, Key: 100 + also, Attempt: a}, &Result{Outcome: Accepted}); err != nil {
				t.Fatal(err)
			}
		}
		for _, kind := range []Kind{KindAcquire, KindRelease} {
			if _, err := w.Begin(&Op{Kind: kind, Key: i % 4, Attempt: a}); err != nil {
				t.Fatal(err)
			}
			w.End(&Result{Outcome: succeeded(kind)})
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestKeyed(t *testing.T) {
	path, _ := small(t, 500)
	apart(t, path, sound(t, path))

	merged := filepath.Join(t.TempDir(), "batches")
	if err := Merge(merged, batch(t, 1), batch(t, 2)); err != nil {
		t.Fatal(err)
	}
	apart(t, merged, sound(t, merged))

	text := filepath.Join(t.TempDir(), "text.jsonl")
	write(t, text, []byte(exported(t, sound(t, path))))
	apart(t, text, sound(t, text))

	// With damage, and with two streams of one client, of which one counts.
	data := load(t, path)
	for i := 5; i < len(data); i += 7001 {
		data[i] ^= 0x40
	}
	write(t, path, data)
	h, err := Read(path)
	if err != nil || len(h.Damage) == 0 {
		t.Fatal(err)
	}
	apart(t, path, h)

	dir := t.TempDir()
	for i, n := range []int{30, 60, 10} {
		w, _ := create(t, dir, Options{Client: 7, Clock: NewClock()})
		pour(t, w, uint64(i), n)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(w.path, filepath.Join(dir, "c"+string(rune('a'+i)))); err != nil {
			t.Fatal(err)
		}
	}
	h, err = Read(dir)
	if err != nil || len(h.Damage) == 0 {
		t.Fatal(err, "two streams of one client are no damage")
	}
	apart(t, dir, h)
}

// TestKeyedInPieces: of streams that are passed on piece by piece, what a piece
// ends with may still change, and what was passed on may count for nothing.
func TestKeyedInPieces(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, n := range []int{2*passAtOnce + 7, passAtOnce, 3 * passAtOnce, passAtOnce - 1} {
		w, _ := create(t, dir, Options{Client: 7 + uint32(i/2), Clock: NewClock()})
		pour(t, w, uint64(i), n)
		// A call that does not come back, with more points in it than a piece has.
		for range 3 {
			if _, err := w.Begin(&Op{Kind: KindAcquire, Attempt: Attempt{byte(i), 1}}); err != nil {
				t.Fatal(err)
			}
			for range passAtOnce + 100 {
				if _, err := w.Point(&Op{Kind: KindEnqueued, Attempt: Attempt{byte(i), 1}}, &Result{Outcome: Accepted}); err != nil {
					t.Fatal(err)
				}
			}
			if i != 3 { // of the last client, the first of them never does
				w.End(&Result{Outcome: Held, Fence: 1})
				continue
			}
			break
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(w.path, filepath.Join(dir, "c"+string(rune('a'+i)))); err != nil {
			t.Fatal(err)
		}
	}
	h, err := Read(dir)
	if err != nil || len(h.Streams) != 2 || len(h.Damage) == 0 {
		t.Fatal(err, h.Streams)
	}
	apart(t, dir, h)

	for i, name := range []string{"ca", "cc"} { // returns lost where pieces end, and elsewhere
		path := filepath.Join(dir, name)
		data := load(t, path)
		for n := passAtOnce - 2 + i; headerSize+(n+1)*slotSize <= len(data); n += passAtOnce - 1 {
			clear(data[headerSize+n*slotSize+returnAt : headerSize+(n+1)*slotSize])
		}
		write(t, path, data)
	}
	h, err = Read(dir)
	if err != nil || len(h.Damage) < 6 {
		t.Fatal(err, h.Damage)
	}
	apart(t, dir, h)
}

func TestKeyedOfNothing(t *testing.T) {
	tmp := t.TempDir()
	empty := filepath.Join(t.TempDir(), "empty")
	write(t, empty, nil)
	if _, err := ReadKeyed(empty, tmp); !errors.Is(err, ErrNoRecords) {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if _, err := ReadKeyed(filepath.Join(tmp, "nowhere"), tmp); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
