package history

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Read reads a history: a merged file, one client's file, a folder of client
// files, or a file of JSON lines or EDN. All sound records are read. Damaged ones
// are listed in Damage with their place, and never guessed:
//
//   - a record whose invoke half is damaged is left out;
//   - a call whose return half is damaged is kept, with the outcome Unknown and
//     no return stamp;
//   - a call without a return is Open. That alone, like a stream without a
//     seal, is no damage: the client was killed.
//
// If not one record can be read, the error is ErrNoRecords, and the history
// returned with it still lists the streams and the damage. Other errors
// mean that the path could not be opened or listed.
//
// It takes some 90 bytes of memory a call, whatever the file declares.
func Read(path string) (*History, error) {
	return intoMemory(func(to sink) (*History, error) { return read(path, to) })
}

// Verify reads a history as Read does, and returns its damage alone: it takes
// little memory.
func Verify(path string) ([]Damage, error) {
	h, err := read(path, nowhere{})
	if err != nil {
		return nil, err
	}
	return h.Damage, nil
}

// sink takes the calls while they are read, so that they need not be in memory
// all at once.
type sink interface {
	// expect announces how many calls come at the most, more or less.
	expect(calls int)
	// add takes the next call of a stream, which is the sink's only until it
	// returns. The calls of all streams come by (Invoke, Client, Seq), unless the
	// stamps of a stream go backwards.
	add(stream uint32, c *Call)
	// drop takes a stream back.
	drop(stream uint32)
}

// passAtOnce is how many calls of a stream are read at once for a sink, unless a
// call that may still change holds up those after it.
const passAtOnce = 512

// nowhere forgets the calls.
type nowhere struct{}

func (nowhere) expect(int)        {}
func (nowhere) add(uint32, *Call) {}
func (nowhere) drop(uint32)       {}

// memory keeps the calls.
type memory struct {
	calls   []Call
	streams []uint32 // of each call
	dropped []uint32
}

func (m *memory) expect(calls int) {
	m.calls, m.streams = make([]Call, 0, calls), make([]uint32, 0, calls)
}

func (m *memory) add(stream uint32, c *Call) {
	m.calls, m.streams = append(m.calls, *c), append(m.streams, stream)
}

func (m *memory) drop(stream uint32) { m.dropped = append(m.dropped, stream) }

// intoMemory keeps the calls that are read in the history.
func intoMemory(read func(sink) (*History, error)) (*History, error) {
	var m memory
	h, err := read(&m)
	if h == nil {
		return nil, err
	}
	h.Calls = m.calls
	if len(m.dropped) > 0 {
		h.Calls = h.Calls[:0]
		for i, stream := range m.streams {
			if !slices.Contains(m.dropped, stream) {
				h.Calls = append(h.Calls, m.calls[i])
			}
		}
	}
	h.sort()
	return h, err
}

// read passes the calls of a history to a sink. The history has none then.
func read(path string, to sink) (*History, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("history: read: %w", err)
	}
	if st.IsDir() {
		r := newReader(maxBuffer, to)
		err := r.folder(path)
		if err == nil {
			r.readAll()
		}
		for _, f := range r.opened {
			_ = f.Close() // only read: nothing to lose
		}
		if err != nil {
			return nil, fmt.Errorf("history: read: %w", err)
		}
		return r.result(path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("history: read: %w", err)
	}
	defer f.Close() // only read: nothing to lose
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("history: read: %s is neither a file nor a folder", path)
	}
	if read := text(f); read != nil {
		h, err := read(f, path)
		if h != nil {
			to.expect(len(h.Calls))
			for i := range h.Calls {
				to.add(0, &h.Calls[i])
			}
			h.Calls = nil
		}
		return h, err
	}
	h, err := readAt(f, path, st.Size(), to)
	if errors.Is(err, ErrNoRecords) {
		if why := notOurs(f, st.Size()); why != "" {
			err = fmt.Errorf("history: read %s: %w: %s", path, ErrNoRecords, why)
		}
	}
	return h, err
}

// notOurs returns why a file was never a history that lockbench wrote, or "" if it
// may be a damaged one.
func notOurs(f io.ReaderAt, size int64) string {
	if size == 0 {
		return "the file is empty"
	}
	var p [512]byte
	n, _ := f.ReadAt(p[:], 0) // what cannot be read here was reported before
	switch begin := p[:n]; {
	case bytes.HasPrefix(begin, []byte(streamMagic)), bytes.HasPrefix(begin, []byte(frameMagic)), bytes.ContainsRune(begin, 0):
		return ""
	case len(bytes.TrimSpace(begin)) == 0:
		return "there is nothing in it but blanks"
	}
	return "it is neither a history of lockbench nor JSON lines nor EDN"
}

// readAt reads a merged or a client's file.
func readAt(f io.ReaderAt, path string, size int64, to sink) (*History, error) {
	r := newReader(size, to)
	r.file(f, path, size)
	r.readAll()
	return r.result(path)
}

// newReader returns a reader for files of some size.
func newReader(size int64, to sink) *reader {
	buf := make([]byte, 0, max(minBuffer, min(size, maxBuffer)))
	return &reader{h: new(History), buf: buf, sink: to, clients: make(map[uint32]origin)}
}

// result ends the reading of path.
func (r *reader) result(path string) (*History, error) {
	if missing := int64(r.declared) - int64(len(r.h.Streams)); missing > 0 {
		r.note(path, 0, "%d of %d streams are missing", missing, r.declared)
	}
	r.h.sort()
	if !slices.ContainsFunc(r.h.Streams, func(s Stream) bool { return s.Records > 0 }) {
		return r.h, noRecords(path, r.h)
	}
	return r.h, nil
}

// noRecords is the error of a history without a call.
func noRecords(path string, h *History) error {
	why := "it is empty"
	if len(h.Damage) > 0 {
		why = h.Damage[0].String()
	}
	return fmt.Errorf("history: read %s: %w: %s", path, ErrNoRecords, why)
}

// sort puts a history into the order that it promises.
func (h *History) sort() {
	slices.SortStableFunc(h.Streams, func(a, b Stream) int { return cmp.Compare(a.Client, b.Client) })
	slices.SortFunc(h.Calls, compareCalls)
}

// text is the reader for a file that begins as text: JSON lines, or EDN. It is
// nil for any other.
func text(f io.ReaderAt) func(io.Reader, string) (*History, error) {
	switch begin := beginOf(f); {
	case isJSON(begin):
		return ReadJSONL
	case len(begin) > 0 && strings.IndexByte("{[(;#", begin[0]) >= 0:
		return ReadEDN
	}
	return nil
}

// beginOf is how a file begins, less blanks.
func beginOf(f io.ReaderAt) []byte {
	var p [512]byte
	n, _ := f.ReadAt(p[:], 0) // an error shows again when the file is read
	return bytes.TrimLeft(bytes.TrimPrefix(p[:n], []byte(byteOrderMark)), " \t\r\n,")
}

// isJSON reports whether a text begins as JSON lines, or as an array of objects.
func isJSON(begin []byte) bool {
	object, ok := bytes.CutPrefix(begin, []byte("{"))
	return isArray(begin) || ok && !bytes.HasPrefix(bytes.TrimLeft(object, " \t\r\n"), []byte(":"))
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

// The bounds of what is read at once.
const (
	minBuffer = 4 << 10
	maxBuffer = 256 << 10
)

type reader struct {
	h        *History
	buf      []byte
	clients  map[uint32]origin // where each client was found
	declared uint32            // streams that there should be, if declared
	sink     sink              // of the calls
	found    []found           // streams that are still to be read
	opened   []*os.File        // that have them
	decoder  *zstd.Decoder     // made when a stream is compressed
}

// found is a stream that is still to be read.
type found struct {
	f     io.ReaderAt
	path  string
	span  span
	strip *strip // f, if the stream is stored in pieces
}

// origin is where a stream was found.
type origin struct {
	file   string
	stream uint32 // its number
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
	var paths []string
	parts := map[uint32][]streamFile{} // by client, of the streams in parts
	of := map[string]uint32{}
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(e.Name(), newSuffix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		paths = append(paths, path)
		if part, err := openStream(path); err == nil && part.isPart() {
			parts[part.head.client] = append(parts[part.head.client], part)
			of[path] = part.head.client
		}
	}
	for _, path := range paths {
		client, part := of[path]
		if !part {
			if err := r.open(path); err != nil {
				r.note(path, 0, "cannot be opened: %v", err)
			}
			continue
		}
		if list := parts[client]; list != nil {
			delete(parts, client)
			if err := r.parts(list); err != nil {
				return err
			}
		}
	}
	return nil
}

// parts reads a stream that is in several files.
func (r *reader) parts(list []streamFile) error {
	slices.SortFunc(list, func(a, b streamFile) int { return cmp.Compare(a.head.first, b.head.first) })
	s, err := r.newStrip(nil)
	if err != nil {
		return err
	}
	h := list[len(list)-1].head
	h.allocated = headerSize
	for i := range list {
		p := &list[i]
		h.allocated += p.head.allocated - headerSize
		if err := s.addFile(p); err != nil {
			r.note(p.path, 0, "cannot be opened: %v", err)
		}
	}
	h.allocated = max(h.allocated, headerSize+h.count*slotSize)
	s.begin(h)
	r.strip(s, list[0].path, s.size)
	return nil
}

func (r *reader) open(path string) error {
	f, st, err := openRegular(path)
	if err != nil {
		return err
	}
	r.opened = append(r.opened, f)
	r.file(f, path, st.Size())
	return nil
}

// file reads a merged file or a client's.
func (r *reader) file(f io.ReaderAt, path string, size int64) {
	if !r.begins(f, 0) && r.merged(f, path, size) {
		return
	}
	r.stream(f, path, span{from: 0, end: size, original: size})
}

// stream takes note of a stream.
func (r *reader) stream(f io.ReaderAt, path string, sp span) {
	if isPacked(f, sp) {
		if s, err := r.newStrip(f); err == nil {
			original := s.beginAt(sp)
			r.strip(s, path, original)
			return
		}
	}
	r.found = append(r.found, found{f: f, path: path, span: sp})
}

// newStrip returns a strip, whose decoder serves all strips of the reader.
func (r *reader) newStrip(f io.ReaderAt) (_ *strip, err error) {
	if r.decoder == nil {
		if r.decoder, err = newDecoder(); err != nil {
			return nil, err
		}
	}
	return newStrip(f, r.decoder), nil
}

// isPacked reports whether a compressed stream begins at a span: by its header, or
// where that is damaged by its first block.
func isPacked(f io.ReaderAt, sp span) bool {
	var p [headerSize + blockHeader]byte
	n, _ := f.ReadAt(p[:min(int64(len(p)), max(0, sp.end-sp.from))], sp.from) // what cannot be read is none
	h, err := parseHeader(p[:n])
	if err != nil && n == len(p) {
		_, ok := parseBlock(p[headerSize:])
		return ok
	}
	return err == nil && h.packed
}

// strip takes note of a stream that is stored in pieces.
func (r *reader) strip(s *strip, path string, original int64) {
	r.found = append(r.found, found{f: s, path: path, span: span{from: 0, end: s.size, original: original}, strip: s})
}

func (r *reader) begin(number int, buf []byte) *streamReader {
	w := &r.found[number]
	s := &streamReader{sc: newScanner(w.f, w.span.from, w.span.end, buf), file: w.path, strip: w.strip}
	if w.strip != nil {
		s.place = w.strip.place
	}
	s.sc.sums = w.span.content != 0
	return s
}

// checkSum notes what no single record can show, as the loss of the last ones of
// a stream that was not sealed.
func (s *streamReader) checkSum(sp span) {
	if s.strip != nil {
		s.broken()
	}
	if sp.content == 0 {
		return
	}
	if sum, err := s.sc.contentSum(); err != nil || sum != sp.content {
		s.lostReturn()
		s.note(sp.from, "the stream's bytes are not those that were merged: their checksum does not match")
	}
}

// end adds a stream that was read to the history.
func (r *reader) end(number int, s *streamReader, st Stream) {
	sp := r.found[number].span
	if s.strip != nil {
		_ = s.strip.Close() // only read: nothing to lose
	}
	if s.known {
		r.declared = max(r.declared, s.head.streams)
	}
	if r.adopt(s, st, origin{s.file, uint32(number)}, sp.from) {
		r.h.Streams = append(r.h.Streams, st)
	}
	r.h.Damage = append(r.h.Damage, s.report(st.Client, sp.from)...)
}

// readAll reads the streams that were found side by side, and passes their calls
// on in the order of their invokes.
func (r *reader) readAll() {
	readers := make([]*streamReader, len(r.found))
	streams := make([]Stream, len(r.found))
	calls := int64(0)
	for _, f := range r.found {
		calls += (f.span.end - f.span.from) / slotSize
	}
	r.sink.expect(int(min(calls, maxHint)))
	var all cursors
	for i := range r.found {
		size := r.found[i].span.end - r.found[i].span.from
		s := r.begin(i, make([]byte, 0, max(minBuffer, min(size, orderedBuffer))))
		readers[i] = s
		next, stop := iter.Pull(func(yield func([]Call) bool) {
			s.calls = make([]Call, 0, passAtOnce)
			s.pass = func(calls []Call) { yield(calls) }
			streams[i] = s.read(r.found[i].span)
			s.checkSum(r.found[i].span)
			yield(s.calls)
		})
		defer stop()
		all.add(uint32(i), next)
	}
	for c, stream := all.next(); c != nil; c, stream = all.next() {
		r.sink.add(stream, c)
	}
	for i, s := range readers {
		r.end(i, s, streams[i])
	}
}

// orderedBuffer is what is read at once of each of many streams.
const orderedBuffer = 64 << 10

// passOn passes on the calls that nothing will change any more.
func (r *streamReader) passOn() {
	n := len(r.calls)
	if r.pending >= 0 {
		n = r.pending
		r.pending = 0
	}
	r.pass(r.calls[:n])
	r.calls = append(r.calls[:0], r.calls[n:]...)
}

// adopt decides whether a stream belongs to the history. Of two streams of one
// client the one with more records counts: both would look like two holders.
func (r *reader) adopt(s *streamReader, st Stream, from origin, at int64) bool {
	if st.Client == NoClient && st.Records == 0 {
		return false
	}
	other, ok := r.clients[st.Client]
	if !ok {
		r.clients[st.Client] = from
		return true
	}
	i := slices.IndexFunc(r.h.Streams, func(o Stream) bool { return o.Client == st.Client })
	if had := r.h.Streams[i].Records; had >= st.Records {
		s.note(at, "a second stream of this client, not used; the one with %d records is in %s", had, other.file)
		r.sink.drop(from.stream)
		return false
	}
	s.note(at, "a second stream of this client; the one in %s has fewer records and is not used", other.file)
	r.clients[st.Client] = from
	r.h.Streams = slices.Delete(r.h.Streams, i, i+1)
	r.sink.drop(other.stream)
	return true
}
