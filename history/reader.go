package history

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Read reads a history: a merged file, one client's file, or a folder of
// client files. Whatever is sound is read; whatever is not stands in Damage
// with its place, and is never guessed:
//
//   - a record whose invoke half is damaged is left out;
//   - a call whose return half is damaged is kept, with the outcome Unknown and
//     no return stamp;
//   - a call without a return is Open. That alone, like a stream without a
//     seal, is no damage: the client was killed.
//
// If not one record can be read, the error is ErrNoRecords, and the history
// returned with it still tells of the streams and the damage. Other errors
// mean that the path could not be opened or listed.
//
// Memory is some 90 bytes a call, whatever the file claims of itself.
func Read(path string) (*History, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("history: read: %w", err)
	}
	r := &reader{h: new(History), buf: make([]byte, 0, 256<<10), clients: make(map[uint32]string)}
	if st.IsDir() {
		err = r.folder(path)
	} else {
		err = r.open(path)
	}
	if err != nil {
		return nil, fmt.Errorf("history: read: %w", err)
	}
	if missing := int64(r.declared) - int64(len(r.h.Streams)); missing > 0 {
		r.note(path, 0, "%d of %d streams are missing", missing, r.declared)
	}
	slices.SortFunc(r.h.Streams, func(a, b Stream) int { return cmp.Compare(a.Client, b.Client) })
	slices.SortFunc(r.h.Calls, compareCalls)
	if len(r.h.Calls) == 0 {
		why := "it is empty"
		if len(r.h.Damage) > 0 {
			why = r.h.Damage[0].String()
		}
		return r.h, fmt.Errorf("history: read %s: %w: %s", path, ErrNoRecords, why)
	}
	return r.h, nil
}

func compareCalls(a, b Call) int {
	if a.Invoke != b.Invoke {
		return cmp.Compare(a.Invoke, b.Invoke)
	}
	if a.Client != b.Client {
		return cmp.Compare(a.Client, b.Client)
	}
	return cmp.Compare(a.Seq, b.Seq)
}

// maxHint bounds what is set aside for calls before they are seen: a file may
// look larger than it is.
const maxHint = 4 << 20

type reader struct {
	h        *History
	buf      []byte
	clients  map[uint32]string // the file in which each client was found
	declared uint32            // streams that there should be, if anybody said
}

func (r *reader) note(file string, at int64, format string, args ...any) {
	r.h.Damage = append(r.h.Damage, Damage{File: file, Offset: at, Client: NoClient, What: fmt.Sprintf(format, args...)})
}

// folder reads each file of a folder. Hidden files, and those that a killed
// process had not yet given their name, are passed over; anything else belongs
// to the history or is damage.
func (r *reader) folder(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(e.Name(), newSuffix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if err := r.open(path); err != nil {
			r.note(path, 0, "cannot be opened: %v", err)
		}
	}
	return nil
}

func (r *reader) open(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close() // only read: nothing to lose
	st, err := f.Stat()
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a folder: a history must be one of them", path)
	}
	r.file(f, path, st.Size())
	return nil
}

// file reads a merged file or a client's.
func (r *reader) file(f io.ReaderAt, path string, size int64) {
	if want := len(r.h.Calls) + int(min(size/slotSize, maxHint)); want > cap(r.h.Calls) {
		r.h.Calls = slices.Grow(r.h.Calls, want-len(r.h.Calls))
	}
	if !r.begins(f, 0) && r.merged(f, path, size) {
		return
	}
	r.stream(f, path, span{from: 0, end: size, original: size})
}

// merged reads the streams of a merged file; false: it is none.
func (r *reader) merged(f io.ReaderAt, path string, size int64) bool {
	at, fr := r.findFrame(f, 0, size)
	if at < 0 {
		return false
	}
	if at > 0 {
		r.note(path, 0, "the file's first %d bytes: no stream can be made out", at)
		r.stream(f, path, span{from: min(at, frameSize), end: at, original: -1})
	}
	seen := make(map[uint32]bool)
	total := fr.total
	for at >= 0 {
		seen[fr.index] = true
		total = max(total, fr.total)
		sp := span{from: at + frameSize, end: at + frameSize + fr.stored, original: fr.original}
		next, nfr, orphan := r.follow(f, path, &sp, fr, size)
		r.stream(f, path, sp)
		if orphan.end > 0 {
			r.stream(f, path, orphan)
		}
		at, fr = next, nfr
	}
	if n := int64(total) - int64(len(seen)); n > 0 {
		var gone []string
		for i := uint32(0); i < total && len(gone) < 10; i++ {
			if !seen[i] {
				gone = append(gone, fmt.Sprint(i))
			}
		}
		r.note(path, size, "%d of %d streams have no beginning: %s", n, total, strings.Join(gone, ", "))
	}
	return true
}

// follow finds the frame after the stream sp, or -1 at the end of the file. If
// it does not stand where it should, follow looks for it, cuts sp short where
// it begins, and returns the stream of a frame that is damaged itself.
func (r *reader) follow(f io.ReaderAt, path string, sp *span, fr frame, size int64) (next int64, nfr frame, orphan span) {
	if sp.end == size {
		return -1, frame{}, span{}
	}
	look := sp.from // bytes may have been lost within this stream, or come in
	if sp.end > sp.from && sp.end < size {
		if x, ok := readFrame(f, sp.end); ok {
			return sp.end, x, span{}
		}
		if r.begins(f, sp.end+frameSize) {
			look = sp.end
		}
	}
	next, nfr = r.findFrame(f, look, size)
	end := size
	if next >= 0 {
		end = next
	}
	if look == sp.end {
		r.note(path, sp.end, "the mark before a stream is damaged")
		return next, nfr, span{from: sp.end + frameSize, end: end, original: -1}
	}
	r.note(path, min(max(sp.end, sp.from), size), "stream %d should have %d bytes, and what follows is not the next one", fr.index, fr.stored)
	sp.end, sp.original = end, -1
	return next, nfr, span{}
}

// begins reports whether a stream begins at the offset at.
func (r *reader) begins(f io.ReaderAt, at int64) bool {
	var p [len(streamMagic)]byte
	n, _ := f.ReadAt(p[:], at) // what cannot be read is no stream
	return string(p[:n]) == streamMagic
}

func readFrame(f io.ReaderAt, at int64) (frame, bool) {
	var p [frameSize]byte
	n, _ := f.ReadAt(p[:], at) // what cannot be read is no frame
	return parseFrame(p[:n])
}

// findFrame returns the first sound frame at or after from, or -1.
func (r *reader) findFrame(f io.ReaderAt, from, size int64) (int64, frame) {
	sc := newScanner(f, from, size, r.buf)
	for sc.pos < sc.end {
		b := sc.all(frameSize)
		if len(b) < frameSize {
			break
		}
		for i := 0; ; {
			j := bytes.Index(b[i:], []byte(frameMagic))
			if j < 0 || i+j+frameSize > len(b) {
				break
			}
			i += j
			if fr, ok := parseFrame(b[i:]); ok {
				return sc.pos + int64(i), fr
			}
			i++
		}
		sc.skip(int64(len(b) - frameSize + 1))
	}
	return -1, frame{}
}

// stream reads one stream into the history.
func (r *reader) stream(f io.ReaderAt, path string, sp span) {
	s := streamReader{sc: newScanner(f, sp.from, sp.end, r.buf), file: path, calls: r.h.Calls}
	st := s.read(sp)
	r.h.Damage = append(r.h.Damage, s.damage...)
	if s.known {
		r.declared = max(r.declared, s.head.streams)
	}
	if st.Client == NoClient && st.Records == 0 {
		return
	}
	if other, ok := r.clients[st.Client]; ok {
		r.h.Damage = append(r.h.Damage, Damage{File: path, Offset: sp.from, Client: st.Client,
			What: fmt.Sprintf("a second stream of this client, not used; the first is in %s", other)})
		return
	}
	r.clients[st.Client] = path
	r.h.Calls = s.calls
	r.h.Streams = append(r.h.Streams, st)
}
