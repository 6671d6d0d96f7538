package history

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testenv"
)

// altered reads data as a history and holds it to believed.
func altered(t *testing.T, data []byte, original map[callID]Call, streams []Stream) *History {
	t.Helper()
	h, err := readBytes(data, "altered")
	believed(t, h, err, original, streams)
	return h
}

// Each bit of a merged file, flipped: noticed.
func TestFlippedBits(t *testing.T) {
	path, calls := small(t, 5)
	data, original, streams := load(t, path), index(calls), sound(t, path).Streams
	for i := range data {
		for bit := range 8 {
			if (8*i+bit)%oneIn() > 0 {
				continue
			}
			data[i] ^= 1 << bit
			h := altered(t, data, original, streams)
			data[i] ^= 1 << bit
			if len(h.Damage) == 0 {
				t.Fatalf("byte %d, bit %d: unnoticed", i, bit)
			}
			if lost := len(calls) - len(h.Calls); lost > 1 {
				t.Fatalf("byte %d: one bit costs %d calls: %v", i, lost, h.Damage)
			}
		}
	}
}

// Each length of a merged file: always noticed, and nothing lost before the cut.
func TestTruncatedMerged(t *testing.T) {
	path, calls := small(t, 5)
	data, original, streams := load(t, path), index(calls), sound(t, path).Streams
	for n := range data {
		h := altered(t, data[:n], original, streams)
		if len(h.Damage) == 0 {
			t.Fatalf("cut at %d of %d: unnoticed", n, len(data))
		}
		whole := 0
		for s := range 3 {
			inside := n - s*(frameSize+headerSize+5*slotSize) - frameSize - headerSize
			whole += min(5, max(0, inside/slotSize))
		}
		if len(h.Calls) < whole {
			t.Fatalf("cut at %d: %d calls, %d are whole: %v", n, len(h.Calls), whole, h.Damage)
		}
	}
}

// Each length of a client's file, sealed or not.
func TestTruncatedStream(t *testing.T) {
	for _, seal := range []bool{true, false} {
		w, path := create(t, t.TempDir(), Options{Client: 4, Clock: NewClock()})
		original := index(pour(t, w, 3, 20))
		if seal {
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		} else {
			abandon(t, w)
		}
		data, streams := load(t, path), sound(t, path).Streams
		for n := range len(data) {
			if n > 3000 && n%997 != 0 {
				continue // blank from here on, each place as the other
			}
			if h := altered(t, data[:n], original, streams); len(h.Damage) == 0 {
				t.Fatalf("sealed %v, cut at %d of %d: unnoticed", seal, n, len(data))
			}
		}
	}
}

// Larger accidents at random places: bytes lost, put in, overwritten, zeroed,
// moved, repeated. What is not touched is found again.
func TestAccidents(t *testing.T) {
	testenv.NeedsTime(t)
	path, calls := small(t, 60)
	data, original, streams := load(t, path), index(calls), sound(t, path).Streams
	rnd := rand.New(rand.NewPCG(5, 5))
	junk := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		return b
	}
	accidents := map[string]func(d []byte, at, n int) []byte{
		"lost":        func(d []byte, at, n int) []byte { return slices.Delete(d, at, at+n) },
		"put in":      func(d []byte, at, n int) []byte { return slices.Insert(d, at, junk(n)...) },
		"zeros in":    func(d []byte, at, n int) []byte { return slices.Insert(d, at, make([]byte, n)...) },
		"overwritten": func(d []byte, at, n int) []byte { copy(d[at:at+n], junk(n)); return d },
		"zeroed":      func(d []byte, at, n int) []byte { clear(d[at : at+n]); return d },
		"repeated":    func(d []byte, at, n int) []byte { return slices.Insert(d, at, slices.Clone(d[at:at+n])...) },
		"copied": func(d []byte, at, n int) []byte {
			to := rnd.IntN(len(d) - n)
			copy(d[to:to+n], slices.Clone(d[at:at+n]))
			return d
		},
	}
	for _, name := range slices.Sorted(maps.Keys(accidents)) { // in one order, for rnd's sake
		accident := accidents[name]
		t.Run(name, func(t *testing.T) {
			for i := range 3000 / oneIn() {
				n := 1 + rnd.IntN(3*slotSize)
				if i%3 == 0 {
					n = slotSize * (1 + rnd.IntN(3))
				}
				at := rnd.IntN(len(data) - n)
				if i%2 == 0 { // at a slot of the first stream
					at = frameSize + headerSize + slotSize*rnd.IntN(55)
				}
				h := altered(t, accident(slices.Clone(data), at, n), original, streams)
				// One accident reaches at most n/slotSize+2 slots, a moved
				// piece twice as many; or it is the beginning of a stream that
				// came to stand on that of another, which is then lost.
				most := 2 * (n/slotSize + 2)
				if name == "copied" {
					most += 60
				}
				if lost := len(calls) - len(h.Calls); lost > most {
					t.Fatalf("%d bytes at %d cost %d calls: %v", n, at, lost, h.Damage)
				}
			}
		})
	}
}

// reseal gives a slot sound checksums again, as a writer with a bug would.
func reseal(s []byte) {
	crc := checksum(0, s[:invokeCRC])
	binary.LittleEndian.PutUint32(s[invokeCRC:], crc)
	binary.LittleEndian.PutUint32(s[returnCRC:], checksum(crc, s[returnAt:returnCRC]))
}

// What cannot be is damage, although its checksum is right.
func TestImpossible(t *testing.T) {
	le := binary.LittleEndian
	alter := map[string]struct {
		change func(s []byte) // of record 5 of 10
		what   string
		keeps  int // calls
		// outcome of record 5, if it is kept
		outcome Outcome
	}{
		"kind 0":          {func(s []byte) { s[12] = 0 }, "impossible", 9, 0},
		"kind 99":         {func(s []byte) { s[12] = 99 }, "impossible", 9, 0},
		"invoke flags":    {func(s []byte) { s[13] = 0x80 }, "impossible", 9, 0},
		"invoke 0":        {func(s []byte) { le.PutUint64(s[40:], 0) }, "impossible", 9, 0},
		"outcome 0":       {func(s []byte) { s[returnAt] = 0 }, "open of a call", 10, Unknown},
		"outcome 99":      {func(s []byte) { s[returnAt] = 99 }, "outcome(99)", 10, Unknown},
		"wrong success":   {func(s []byte) { s[returnAt] = byte(Released) }, "released of a call of kind try", 10, Unknown},
		"return flags":    {func(s []byte) { s[returnAt+1] = 0x80 }, "flags 0x80", 10, Unknown},
		"early return":    {func(s []byte) { le.PutUint64(s[72:], le.Uint64(s[40:])-1) }, "before its invoke", 10, Unknown},
		"no return stamp": {func(s []byte) { le.PutUint64(s[72:], 0) }, "before its invoke", 10, Unknown},
		"backwards":       {func(s []byte) { le.PutUint64(s[40:], 1) }, "stamps go backwards at record 5", 10, Held},
		"late return":     {func(s []byte) { le.PutUint64(s[72:], 1<<62) }, "stamps go backwards at record 6", 10, Held},
		"seq repeated":    {func(s []byte) { le.PutUint32(s[4:], 4) }, "record 4 comes again", 9, 0},
		"seq ahead":       {func(s []byte) { le.PutUint32(s[4:], 7) }, "record 7 stands where record 5 should", 9, 0},
		"seq beyond":      {func(s []byte) { le.PutUint32(s[4:], 10) }, "after the end", 9, 0},
		"seq last":        {func(s []byte) { le.PutUint32(s[4:], ^uint32(0)) }, "after the end", 9, 0},
		"other client":    {func(s []byte) { le.PutUint32(s[0:], 3) }, "client 3 stands in the stream of another", 9, 0},
	}
	for name, a := range alter {
		t.Run(name, func(t *testing.T) {
			data := ten(t, true)
			s := data[headerSize+5*slotSize:][:slotSize]
			a.change(s)
			reseal(s)
			file := filepath.Join(t.TempDir(), "client")
			write(t, file, data)
			h, err := Read(file)
			if err != nil {
				t.Fatal(err)
			}
			if !said(h, a.what) {
				t.Errorf("want %q, got %v", a.what, h.Damage)
			}
			if len(h.Calls) != a.keeps {
				t.Errorf("%d calls, want %d", len(h.Calls), a.keeps)
			}
			for _, c := range h.Calls {
				if c.Seq == 5 && a.keeps == 10 && (c.Outcome != a.outcome || c.Outcome == Unknown && c.Return != 0) {
					t.Errorf("got %+v", c)
				}
			}
		})
	}
}

// ten returns a stream of ten tries of client 0 that got the lock.
func ten(t *testing.T, seal bool) []byte {
	t.Helper()
	w, path := create(t, t.TempDir(), Options{Clock: NewClock()})
	for range 10 {
		if _, err := w.Begin(&Op{Kind: KindTry}); err != nil {
			t.Fatal(err)
		}
		w.End(&Result{Outcome: Held})
	}
	if !seal {
		abandon(t, w)
	} else if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return load(t, path)
}

func said(h *History, what string) bool {
	return slices.ContainsFunc(h.Damage, func(d Damage) bool { return strings.Contains(d.String(), what) })
}

// What a killed writer leaves is no damage; the same in a stream that was
// sealed, or before a later call, is.
func TestUnfinishedHalves(t *testing.T) {
	last := headerSize + 9*slotSize
	unfinish := map[string]func(d []byte){
		"no return":            func(d []byte) { clear(d[last+returnAt : last+slotSize]) },
		"return, no checksum":  func(d []byte) { clear(d[last+returnCRC : last+slotSize]) },
		"return, only outcome": func(d []byte) { clear(d[last+returnAt+1 : last+slotSize]) },
		"invoke, no checksum":  func(d []byte) { clear(d[last+invokeCRC : last+slotSize]) },
		"invoke, only client":  func(d []byte) { clear(d[last+1 : last+slotSize]); d[last] = 1 },
	}
	for name, f := range unfinish {
		for _, seal := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s sealed=%v", name, seal), func(t *testing.T) {
				data := ten(t, seal)
				f(data)
				file := filepath.Join(t.TempDir(), "client")
				write(t, file, data)
				h, err := Read(file)
				if err != nil {
					t.Fatal(err)
				}
				if damaged := len(h.Damage) > 0; damaged != seal {
					t.Errorf("damage %v", h.Damage)
				}
				for _, c := range h.Calls[9:] {
					if c.Return != 0 || c.Outcome != Open && !(seal && c.Outcome == Unknown) {
						t.Errorf("got %+v", c)
					}
				}
			})
		}
	}
	t.Run("not the last", func(t *testing.T) {
		data := ten(t, false)
		clear(data[last-slotSize+returnCRC : last])
		file := filepath.Join(t.TempDir(), "client")
		write(t, file, data)
		h, err := Read(file)
		if err != nil || !said(h, "the return of record 8 is lost") || h.Calls[8].Outcome != Unknown {
			t.Errorf("%v, damage %v", err, h.Damage)
		}
	})
}

func TestGarbageAfterTheEnd(t *testing.T) {
	data := append(ten(t, true), "something else"...)
	file := filepath.Join(t.TempDir(), "client")
	write(t, file, data)
	h, err := Read(file)
	if err != nil || len(h.Calls) != 10 || len(h.Damage) != 1 || h.Damage[0].Offset != headerSize+10*slotSize {
		t.Errorf("%v, %d calls, damage %v", err, len(h.Calls), h.Damage)
	}
}

func TestMissingStream(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for c := range uint32(3) {
		w, path := create(t, dir, Options{Client: c, Streams: 3, Clock: NewClock()})
		pour(t, w, 1, 10)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	sound(t, dir)
	merged := filepath.Join(t.TempDir(), "merged")
	if err := Merge(merged, paths[0], paths[2]); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(paths[1]); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{dir, merged} {
		h, err := Read(p)
		if err != nil || len(h.Calls) != 20 || !said(h, "1 of 3 streams are missing") {
			t.Errorf("%v, %d calls, damage %v", err, len(h.Calls), h.Damage)
		}
	}
	// The same client twice is not twice as much evidence.
	write(t, paths[1], load(t, paths[0]))
	h, err := Read(dir)
	if err != nil || len(h.Calls) != 20 || !said(h, "second stream") {
		t.Errorf("%v, %d calls, damage %v", err, len(h.Calls), h.Damage)
	}
}

func TestNothingReadable(t *testing.T) {
	dir := t.TempDir()
	empty, blank := filepath.Join(dir, "empty"), filepath.Join(dir, "blank")
	text, none := filepath.Join(dir, "text"), filepath.Join(dir, "none")
	write(t, empty, nil)
	write(t, blank, make([]byte, 100000))
	write(t, text, []byte(strings.Repeat("this is no history\n", 1000)))
	if err := os.Mkdir(none, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(none, "client.new"), make([]byte, 64<<10)) // died in Create
	for _, p := range []string{empty, blank, text, none, dir} {
		h, err := Read(p)
		if !errors.Is(err, ErrNoRecords) || h == nil || !strings.Contains(err.Error(), p) {
			t.Errorf("%s: %v", p, err)
			continue
		}
		if p != none && len(h.Damage) == 0 {
			t.Errorf("%s: no damage reported", p)
		}
	}
	if _, err := Read(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent: %v", err)
	}
}

// The report of a file that is damaged everywhere has a bounded length.
func TestManyDamages(t *testing.T) {
	w, path := create(t, t.TempDir(), Options{Clock: NewClock()})
	pour(t, w, 1, 2000)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	data := load(t, path)
	for i := headerSize; i < len(data); i += 2 * slotSize {
		data[i+20] ^= 1
	}
	write(t, path, data)
	h, err := Read(path)
	if err != nil || len(h.Calls) != 1000 || len(h.Damage) != maxDamage+1 || !said(h, "900 more places") {
		t.Errorf("%v, %d calls, %d damages, the last %v", err, len(h.Calls), len(h.Damage), h.Damage[len(h.Damage)-1])
	}
}
