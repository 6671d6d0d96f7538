package history

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A follower visits each call once, in order, through all parts of a stream and
// while another is written, and waits for the calls that are open.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	paths := []string{filepath.Join(dir, "a.lbh"), filepath.Join(dir, "b.lbh")}
	f := Follow(paths...)
	seen := map[uint32][]uint32{}
	read := func() {
		t.Helper()
		if err := f.Read(func(c *Call) { seen[c.Client] = append(seen[c.Client], c.Seq) }); err != nil {
			t.Fatal(err)
		}
	}
	read() // no file yet
	packer := NewPacker()
	clock := NewClock()
	var writers []*Writer
	for i, path := range paths {
		w, err := Create(path, Options{Client: uint32(i), Clock: clock, Packer: packer, partRecords: 100})
		if err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
	}
	begin := func(w *Writer) {
		t.Helper()
		if _, err := w.Begin(&Op{Kind: KindAcquire, Attempt: Attempt{1}}); err != nil {
			t.Fatal(err)
		}
	}
	want := map[uint32][]uint32{}
	check := func(when string) {
		t.Helper()
		read()
		for client := range want {
			if !slices.Equal(seen[client], want[client]) {
				t.Fatalf("%s: of client %d it visited %d calls, want %d", when, client, len(seen[client]), len(want[client]))
			}
		}
	}
	for seq := range uint32(250) {
		for client, w := range writers {
			begin(w)
			if seq%10 == 0 {
				check("while a call is open")
			}
			w.End(&Result{Outcome: Held})
			want[uint32(client)] = append(want[uint32(client)], seq)
		}
		check(fmt.Sprintf("after call %d", seq))
	}
	// A part that is compressed before it is read is missed, and counted.
	for range 250 {
		begin(writers[0])
		writers[0].End(&Result{Outcome: Held})
	}
	waitPacked(t, partPath(paths[0], 3))
	before := len(seen[0])
	read()
	if got := len(seen[0]) - before; f.Missed() == 0 || f.Missed()%100 != 0 || got+f.Missed() != 250 {
		t.Errorf("of 250 calls it visited %d, and counted %d as missed", got, f.Missed())
	}
	for _, w := range writers {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	packer.Close()
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// waitPacked waits until a part is compressed.
func waitPacked(t *testing.T, path string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if s, err := openStream(path); err == nil && s.head.packed {
			return
		}
	}
	t.Fatalf("%s was not compressed within a minute", path)
}
