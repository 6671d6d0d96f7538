package history

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// The layout of a packed stream is described in the package's documentation.
const (
	blockMagic  = "LBPACKED"
	blockHeader = 32
	// A block holds that many bytes of slots, the last one fewer. Damage costs at
	// most one block, and a reader decompresses one block at a time.
	blockSize = 1170 * slotSize
	// maxBlock bounds what a block may claim to hold.
	maxBlock = 4 << 20
)

// block precedes the compressed bytes of some slots.
type block struct {
	raw, stored int64
	content     uint32 // checksum of the compressed bytes
}

func (b *block) put(p []byte) {
	le := binary.LittleEndian
	clear(p)
	copy(p, blockMagic)
	le.PutUint32(p[8:], uint32(b.raw))
	le.PutUint32(p[12:], uint32(b.stored))
	le.PutUint32(p[16:], b.content)
	le.PutUint32(p[blockHeader-4:], checksum(0, p[:blockHeader-4]))
}

func parseBlock(p []byte) (block, bool) {
	le := binary.LittleEndian
	if len(p) < blockHeader || string(p[:len(blockMagic)]) != blockMagic || le.Uint32(p[blockHeader-4:]) != checksum(0, p[:blockHeader-4]) {
		return block{}, false
	}
	b := block{raw: int64(le.Uint32(p[8:])), stored: int64(le.Uint32(p[12:])), content: le.Uint32(p[16:])}
	return b, b.raw > 0 && b.raw <= maxBlock && b.stored > 0 && b.stored <= maxBlock
}

// encoder compresses slots. It serves one goroutine.
type encoder struct {
	zstd     *zstd.Encoder
	raw, out []byte
}

func newEncoder() (*encoder, error) {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, fmt.Errorf("prepare the compression: %w", err)
	}
	return &encoder{zstd: z, raw: make([]byte, blockSize)}, nil
}

// write writes size bytes of slots, from an offset of r, as blocks.
func (e *encoder) write(w io.Writer, r io.ReaderAt, from, size int64) error {
	for end := from + size; from < end; {
		raw := e.raw[:min(blockSize, end-from)]
		if _, err := r.ReadAt(raw, from); err != nil {
			return err
		}
		e.out = e.zstd.EncodeAll(raw, append(e.out[:0], zeros[:blockHeader]...))
		b := block{raw: int64(len(raw)), stored: int64(len(e.out) - blockHeader), content: checksum(0, e.out[blockHeader:])}
		b.put(e.out[:blockHeader])
		if _, err := w.Write(e.out); err != nil {
			return err
		}
		from += int64(len(raw))
	}
	return nil
}

// piece is a run of bytes of a strip.
type piece struct {
	at, size int64  // in the strip
	path     string // of the file that has it; "": the strip's own reader
	from     int64  // offset in that file
	stored   int64  // bytes there if they are compressed, else 0
	content  uint32 // checksum of those
}

// strip is a stream that is stored in pieces, some of them compressed, shown as
// the single uncompressed file that its writer would have left. It serves one
// goroutine.
type strip struct {
	r      io.ReaderAt // nil: all pieces are in files of their own
	pieces []piece
	size   int64
	damage []Damage     // blocks that cannot be read
	broken map[int]bool // their pieces

	header []byte // stands before the pieces
	file   *os.File
	opened string // path of file
	zstd   *zstd.Decoder
	in     []byte
	block  []byte // uncompressed bytes of the piece whose number is cached
	cached int
}

func newDecoder() (*zstd.Decoder, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxBlock))
	if err != nil {
		return nil, fmt.Errorf("prepare the decompression: %w", err)
	}
	return z, nil
}

func newStrip(r io.ReaderAt, z *zstd.Decoder) *strip {
	return &strip{r: r, size: headerSize, zstd: z, cached: -1, broken: map[int]bool{}}
}

// begin sets the header that the whole stream has.
func (s *strip) begin(h header) {
	h.first, h.packed = 0, false
	s.header = make([]byte, headerSize)
	h.put(s.header)
}

// beginAt takes the compressed stream that stands in r, and returns the size of
// the client's file, or -1 if that is not known.
func (s *strip) beginAt(sp span) int64 {
	s.header = make([]byte, headerSize)
	_, _ = s.r.ReadAt(s.header, sp.from) // what cannot be read is no header
	if h, err := parseHeader(s.header); err == nil {
		s.begin(h)
	}
	s.add(s.r, "", true, sp.from+headerSize, sp.end)
	if sp.original < 0 {
		return -1
	}
	return s.size
}

// addFile appends the slots of a part.
func (s *strip) addFile(p *streamFile) error {
	f, st, err := openRegular(p.path)
	if err != nil {
		return err
	}
	defer f.Close() // only read: nothing to lose
	s.add(f, p.path, p.head.packed, headerSize, st.Size())
	return nil
}

func (s *strip) note(path string, at int64, format string, args ...any) {
	s.damage = append(s.damage, Damage{File: path, Offset: at, What: fmt.Sprintf(format, args...)})
}

// add appends the slots that stand in r between two offsets.
func (s *strip) add(r io.ReaderAt, path string, packed bool, from, end int64) {
	if !packed {
		s.append(piece{path: path, size: end - from, from: from})
		return
	}
	var p [blockHeader]byte
	for from < end {
		n, _ := r.ReadAt(p[:min(blockHeader, end-from)], from) // what cannot be read is no block
		b, ok := parseBlock(p[:n])
		if ok && from+blockHeader+b.stored <= end {
			s.append(piece{path: path, size: b.raw, from: from + blockHeader, stored: b.stored, content: b.content})
			from += blockHeader + b.stored
			continue
		}
		next := nextBlock(r, from+1, end)
		s.note(path, from, "no block of compressed records begins here; %d bytes were passed over", next-from)
		from = next
	}
}

func (s *strip) append(p piece) {
	if p.size > 0 {
		p.at = s.size
		s.pieces = append(s.pieces, p)
		s.size += p.size
	}
}

// nextBlock finds the first sound block at or after from; end if there is none.
func nextBlock(r io.ReaderAt, from, end int64) int64 {
	sc := newScanner(r, from, end, make([]byte, 0, maxBuffer))
	for sc.end-sc.pos >= blockHeader {
		b := sc.all(blockHeader)
		for i := 0; ; i++ {
			j := bytes.Index(b[i:], []byte(blockMagic))
			if j < 0 {
				break
			}
			i += j
			if _, ok := parseBlock(b[i:]); ok {
				return sc.pos + int64(i)
			}
		}
		if len(b) < blockHeader {
			break
		}
		sc.skip(int64(len(b) - blockHeader + 1))
	}
	return end
}

// place is where an offset of the strip is stored: the beginning of its block
// where it is compressed.
func (s *strip) place(off int64) (path string, at int64) {
	i := s.find(off)
	if i == len(s.pieces) {
		i--
	}
	if i < 0 {
		return "", 0
	}
	p := &s.pieces[i]
	if p.stored > 0 {
		return p.path, p.from - blockHeader
	}
	return p.path, p.from + max(0, min(off-p.at, p.size))
}

// find is the number of the piece that holds an offset.
func (s *strip) find(off int64) int {
	i, found := slices.BinarySearchFunc(s.pieces, off, func(p piece, off int64) int {
		switch {
		case p.at+p.size <= off:
			return -1
		case p.at > off:
			return 1
		}
		return 0
	})
	if !found && off < headerSize {
		return 0
	}
	return i
}

// ReadAt implements io.ReaderAt.
func (s *strip) ReadAt(p []byte, off int64) (n int, err error) {
	if off < headerSize {
		n = copy(p, s.header[off:])
	}
	for i := s.find(off + int64(n)); n < len(p); i++ {
		if i >= len(s.pieces) {
			return n, io.EOF
		}
		part := &s.pieces[i]
		skip := off + int64(n) - part.at
		want := p[n:min(int64(len(p)), int64(n)+part.size-skip)]
		if part.stored == 0 {
			r, err := s.reader(part)
			if err != nil {
				return n, err
			}
			got, err := r.ReadAt(want, part.from+skip)
			n += got
			if got < len(want) {
				return n, err
			}
			continue
		}
		if err := s.unpack(i); err != nil {
			return n, err
		}
		n += copy(want, s.block[skip:])
	}
	return n, nil
}

func (s *strip) reader(p *piece) (io.ReaderAt, error) {
	if p.path == "" || s.r != nil {
		return s.r, nil
	}
	if s.opened != p.path {
		if err := s.Close(); err != nil {
			return nil, err
		}
		f, err := os.Open(p.path)
		if err != nil {
			return nil, err
		}
		s.file, s.opened = f, p.path
	}
	return s.file, nil
}

// unpack decompresses a piece. One that cannot be decompressed is noted, and
// reads as bytes that are no record.
func (s *strip) unpack(i int) error {
	if s.cached == i {
		return nil
	}
	p := &s.pieces[i]
	r, err := s.reader(p)
	if err != nil {
		return err
	}
	s.cached = -1
	s.in = slices.Grow(s.in[:0], int(p.stored))[:p.stored]
	if _, err := r.ReadAt(s.in, p.from); err != nil {
		return err
	}
	why := "checksum does not match"
	if checksum(0, s.in) == p.content {
		s.block, err = s.zstd.DecodeAll(s.in, s.block[:0])
		why = ""
		switch {
		case err != nil:
			why = err.Error()
		case int64(len(s.block)) != p.size:
			why = fmt.Sprintf("it holds %d bytes, want %d", len(s.block), p.size)
		}
	}
	if why != "" {
		if !s.broken[i] {
			s.broken[i] = true
			s.note(p.path, p.from-blockHeader, "a block of compressed records cannot be read: %s", why)
		}
		s.block = slices.Grow(s.block[:0], int(p.size))[:p.size]
		for i := range s.block {
			s.block[i] = 0xFF
		}
	}
	s.cached = i
	return nil
}

// Close closes the file that is open.
func (s *strip) Close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file, s.opened = nil, ""
	return err
}

// Packer compresses the parts of streams that their Writers have left, in the
// background. A part is replaced by its compressed form at once, so that a
// process that is killed meanwhile leaves the one or the other.
type Packer struct {
	parts chan string
	quit  chan struct{}
	done  chan struct{}
}

// packerQueue is how many parts may wait. Further ones stay as they are until
// Merge.
const packerQueue = 1 << 12

// NewPacker starts a Packer. It serves any number of Writers of a process.
func NewPacker() *Packer {
	p := &Packer{parts: make(chan string, packerQueue), quit: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

func (p *Packer) add(path string) {
	select {
	case p.parts <- path:
	default:
	}
}

func (p *Packer) run() {
	defer close(p.done)
	var e *encoder // most runs end before there is a part to compress
	for {
		select {
		case <-p.quit:
			return
		case path := <-p.parts:
			if e == nil {
				var err error
				if e, err = newEncoder(); err != nil {
					return
				}
			}
			// A part that cannot be compressed, for the disk may be full, stays
			// readable as it is.
			_ = e.pack(path)
		}
	}
}

// Close waits for the part that is being compressed. Others stay as they are.
func (p *Packer) Close() {
	close(p.quit)
	<-p.done
}

// pack replaces a part by its compressed form.
func (e *encoder) pack(path string) error {
	f, st, err := openRegular(path)
	if err != nil {
		return err
	}
	defer f.Close() // only read: nothing to lose
	var p [headerSize]byte
	if _, err := f.ReadAt(p[:], 0); err != nil {
		return err
	}
	h, err := parseHeader(p[:])
	if err != nil {
		return err
	}
	if h.packed || !h.continued {
		return errors.New("history: not a part to compress")
	}
	h.packed = true
	h.put(p[:])
	return writeWhole(path, func(w *wholeFile) error {
		if _, err := w.Write(p[:]); err != nil {
			return err
		}
		return e.write(w, f, headerSize, st.Size()-headerSize)
	})
}
