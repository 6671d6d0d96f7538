package history

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lockbench/lockbench/internal/testenv"
)

// inParts writes the streams of three clients in small parts, of which some
// are compressed; the second client dies. It returns their folder and calls.
func inParts(t testing.TB, n int) (dir string, calls []Call) {
	t.Helper()
	dir = t.TempDir()
	clock := NewClock()
	for c := range uint32(3) {
		packer := NewPacker()
		w, _ := create(t, dir, Options{Client: c, Worker: c, Streams: 3, Clock: clock, Packer: packer, partRecords: 300})
		calls = append(calls, pour(t, w, uint64(c), n)...)
		packer.Close()
		if c == 1 {
			abandon(t, w)
		} else if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	e, err := newEncoder()
	if err != nil {
		t.Fatal(err)
	}
	for i, path := range parts(t, dir) {
		if i%3 == 0 {
			_ = e.pack(path) // but for last parts and those that are packed
		}
	}
	return dir, calls
}

func parts(t testing.TB, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A stream in parts reads as one, before and after the merge.
func TestParts(t *testing.T) {
	for _, n := range []int{299, 300, 301, 1200, 5000} {
		dir, want := inParts(t, n)
		check := func(path string) {
			t.Helper()
			h := sound(t, path)
			sameCalls(t, h.Calls, want)
			if len(h.Streams) != 3 || !h.Streams[0].Sealed || h.Streams[1].Sealed || h.Streams[2].Records != n {
				t.Errorf("%d records: streams %+v", n, h.Streams)
			}
		}
		check(dir)
		merged := filepath.Join(t.TempDir(), "merged")
		if err := Merge(merged, parts(t, dir)...); err != nil {
			t.Fatal(err)
		}
		check(merged)
	}
}

// Compression takes a record to about a third; what a load records takes less
// than these random calls.
func TestPackedSize(t *testing.T) {
	dir := t.TempDir()
	w, path := create(t, dir, Options{Clock: NewClock()})
	const n = 20000
	for i := range n {
		op := Op{Kind: KindAcquire}
		for j := range op.Attempt {
			op.Attempt[j] = byte(rand.Uint32())
		}
		if _, err := w.Begin(&op); err != nil {
			t.Fatal(err)
		}
		w.End(&Result{Outcome: Held, LeaseEnd: w.clock.Now() + int64(i)})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	merged := filepath.Join(t.TempDir(), "merged")
	if err := Merge(merged, path); err != nil {
		t.Fatal(err)
	}
	if each := float64(len(load(t, merged))) / n; each > 60 {
		t.Errorf("%.1f bytes a call, want at most 60", each)
	}
	if h := sound(t, merged); len(h.Calls) != n {
		t.Errorf("%d calls, want %d", len(h.Calls), n)
	}
}

// packedFile is a merged file of packed streams, and what is in it.
func packedFile(t testing.TB, n int) (data []byte, calls []Call, streams []Stream) {
	t.Helper()
	dir, calls := inParts(t, n)
	merged := filepath.Join(t.TempDir(), "merged")
	if err := Merge(merged, parts(t, dir)...); err != nil {
		t.Fatal(err)
	}
	return load(t, merged), calls, sound(t, merged).Streams
}

// A flipped bit of a packed file is noticed, and costs at most a block.
func TestPackedFlippedBits(t *testing.T) {
	testenv.NeedsTime(t)
	data, calls, streams := packedFile(t, 700)
	original := index(calls)
	rnd := rand.New(rand.NewPCG(3, 9))
	for i := range data {
		if i%oneIn() > 0 || i > 400 && rnd.IntN(60) > 0 {
			continue
		}
		bit := byte(1) << rnd.IntN(8)
		data[i] ^= bit
		h := altered(t, data, original, streams)
		data[i] ^= bit
		if len(h.Damage) == 0 {
			t.Fatalf("byte %d: unnoticed", i)
		}
		if lost := len(calls) - len(h.Calls); lost > 310 {
			t.Fatalf("byte %d: one bit costs %d calls: %v", i, lost, h.Damage)
		}
	}
}

// A packed file that was cut, or lost some bytes, is never taken for whole.
func TestPackedTruncated(t *testing.T) {
	data, calls, streams := packedFile(t, 700)
	original := index(calls)
	rnd := rand.New(rand.NewPCG(4, 9))
	for range 300 / oneIn() {
		n := rnd.IntN(len(data))
		if h := altered(t, data[:n], original, streams); len(h.Damage) == 0 {
			t.Fatalf("cut at %d of %d: unnoticed", n, len(data))
		}
		at, lost := rnd.IntN(len(data)-500), 1+rnd.IntN(500)
		if h := altered(t, slices.Delete(slices.Clone(data), at, at+lost), original, streams); len(h.Damage) == 0 {
			t.Fatalf("%d bytes lost at %d: unnoticed", lost, at)
		}
	}
}

// A part that is gone, or damaged, is missed wherever it was.
func TestMissingPart(t *testing.T) {
	dir, calls := inParts(t, 1200)
	files, original, streams := parts(t, dir), index(calls), sound(t, dir).Streams
	for _, file := range files[:min(12, len(files))] {
		data := load(t, file)
		for harm, do := range map[string]func() error{
			"gone":  func() error { return os.Remove(file) },
			"short": func() error { return os.Truncate(file, int64(len(data)/2)) },
		} {
			if err := do(); err != nil {
				t.Fatal(err)
			}
			h, err := Read(dir)
			believed(t, h, err, original, streams)
			if len(h.Damage) == 0 {
				t.Errorf("%s %s: unnoticed in the folder", filepath.Base(file), harm)
			}
			merged := filepath.Join(t.TempDir(), "merged")
			if err := Merge(merged, parts(t, dir)...); err != nil {
				t.Fatal(err)
			}
			h, err = Read(merged)
			believed(t, h, err, original, streams)
			if len(h.Damage) == 0 {
				t.Errorf("%s %s: unnoticed once merged", filepath.Base(file), harm)
			}
			write(t, file, data)
		}
	}
	same(t, sound(t, dir), &History{Calls: calls, Streams: streams})
}

// Random bytes are never a packed stream that reads without damage.
func FuzzReadPacked(f *testing.F) {
	data, _, _ := packedFile(f, 350)
	f.Add(data)
	f.Add(data[:len(data)/2])
	f.Fuzz(func(t *testing.T, data []byte) {
		h, err := readBytes(data, "fuzzed")
		if h == nil {
			t.Fatal(fmt.Errorf("no history: %w", err))
		}
	})
}
