package history

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Op is what is known of a call before it is sent.
type Op struct {
	Kind     Kind
	Flags    Flags
	Key      uint32
	Attempt  Attempt
	Intended int64  // stamp at which the load wanted it; 0: no schedule, the invoke is meant
	Fence    uint64 // token presented; 0: none
	Arg      uint64 // of a write, the value; of a final, the writes accepted
}

// Result is what is known of a call once it has returned.
type Result struct {
	Outcome  Outcome
	Flags    Flags  // added to those of the Op
	Fence    uint64 // token granted or seen; 0: none, the one presented stands
	LeaseEnd int64  // stamp until which the hold may be trusted; 0: cannot say
	Value    uint64 // of a read or a final, the value
}

// Options names the client whose stream a Writer writes.
type Options struct {
	Client uint32 // the client's number, or Controller
	Worker uint32 // the number of the worker process
	// Streams is how many streams the whole history will have, the
	// controller's included, so that a reader misses one that is not there.
	// 0: not known.
	Streams uint32
	Clock   Clock // of this process
	// Packer compresses what is not written to any more, once there is much of
	// it; nil: the stream stays one file.
	Packer *Packer

	// partRecords stands in for the real number in tests.
	partRecords uint32
	// allocate stands in for the real one in tests.
	allocate func(f *os.File, from, size int64) error
}

const (
	// A window is the piece of the file that is mapped. Small ones cost little
	// memory (each page that was touched counts as the process's, and a worker
	// may host a thousand clients), large ones little time. So it starts small
	// and follows the client's pace: filled within brisk, the next is twice as
	// large; not filled within idle, half as large.
	firstWindow = 16 << 10
	maxWindow   = 256 << 10
	brisk       = int64(100 * time.Millisecond)
	idle        = int64(2 * time.Second)
	// The file itself grows by doubling, within these bounds: few system calls
	// for a busy client, little disk for an idle one.
	firstSize = 64 << 10
	maxGrowth = 4 << 20
	// partRecords is how many records a part of a stream has: 4 MiB of them.
	partRecords = 4 << 20 / slotSize
)

// Writer records the calls of one client in one file, so that neither the
// death of the process nor a full disk loses or invents anything: the file is
// mapped memory, which the kernel keeps when the process is gone, and disk
// space is reserved before it is written to. (A power cut is another matter:
// nothing is forced to the disk.)
//
// A Writer belongs to one goroutine at a time, and shares nothing with other
// Writers. One call is open at a time; Points may be recorded meanwhile.
type Writer struct {
	file   *os.File
	path   string // of the part that is being written
	stream string // path of the first part
	part   int    // number of the part
	limit  uint32 // records of a part
	packer *Packer
	clock  Clock
	client uint32

	window []byte // mapped piece of the file
	at     int64  // its offset in the file
	next   int64  // offset in the file of the next slot
	open   int64  // offset of the open call's slot, or 0
	seq    uint32

	head   header
	size   int64 // of the file
	ready  int64 // offset in the file up to which prepare has been
	grow   func(f *os.File, from, size int64) error
	span   int64 // bytes to map next time
	mapped int64 // stamp of the last mapping
	misuse error // the first wrong use, returned by Close
}

// Create begins a stream in a new file at path. It fails if the file exists.
// Until the stream has its header, it is called path + ".new", which readers
// pass over, so that a process killed in here leaves no half-made stream.
func Create(path string, o Options) (*Writer, error) {
	w := &Writer{
		path: path, stream: path, packer: o.Packer, limit: cmp.Or(o.partRecords, partRecords), clock: o.Clock, client: o.Client,
		next: headerSize, ready: headerSize, span: firstWindow, grow: allocate,
		head: header{
			client: o.Client, worker: o.Worker, streams: o.Streams,
			uncertainty: o.Clock.Uncertainty(), created: o.Clock.Now(),
		},
	}
	if o.allocate != nil {
		w.grow = o.allocate
	}
	if err := w.create(); err != nil {
		return nil, fmt.Errorf("history: create %s: %w", path, err)
	}
	return w, nil
}

func (w *Writer) create() (err error) {
	if _, err := os.Lstat(w.path); err == nil {
		return fmt.Errorf("%w: a history is never overwritten, remove it or choose another folder", os.ErrExist)
	}
	w.file, err = os.OpenFile(w.path+newSuffix, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			w.unmap()
			err = errors.Join(err, w.file.Close(), os.Remove(w.path+newSuffix))
		}
	}()
	if err := w.advance(); err != nil {
		return err
	}
	return os.Rename(w.path+newSuffix, w.path)
}

// newSuffix is that of a file whose header is not written yet.
const newSuffix = ".new"

// Begin records that a call is about to be sent and returns its invoke stamp
// in nanoseconds. When it returns, the record survives the death of this
// process. With an error (the disk is full, errors.Is ENOSPC; or op has an
// impossible kind or flag) nothing is recorded: the call must not be sent.
//
// A call that Begin left open and End never closed stays open in the history.
func (w *Writer) Begin(op *Op) (int64, error) {
	s, err := w.slot(op)
	if err != nil {
		return 0, err
	}
	if w.open != 0 {
		w.giveUp()
	}
	// The stamp comes after the fields, so that a page fault at the first
	// touch of the slot is not taken for the lock's time. The checksum comes
	// last: without it the half does not count.
	putInvoke(s, callMark, w.client, w.seq, op)
	now := w.clock.Now()
	putStamps(s, op.Intended, now)
	w.begun(s)
	return now, nil
}

// begun seals the invoke half of a call.
func (w *Writer) begun(s []byte) {
	commit(s[invokeCRC:], checksum(0, s[:invokeCRC]))
	w.open = w.next
	w.next += slotSize
	w.seq++
}

// Past records a call that was carried out for the client between two of its
// own, with the stamps that it had: both of them after the return of the call
// before. Errors are those of Begin; that a call is open is one too.
func (w *Writer) Past(op *Op, r *Result, invoke, at int64) error {
	if w.open != 0 {
		return fmt.Errorf("history %s: a past call cannot be recorded while another is open", w.path)
	}
	s, err := w.slot(op)
	if err != nil {
		return err
	}
	putInvoke(s, callMark, w.client, w.seq, op)
	putStamps(s, op.Intended, invoke)
	w.begun(s)
	w.finish(w.checked(r), at)
	return nil
}

// End records the return of the call that Begin recorded, and returns its
// return stamp in nanoseconds. An outcome that no returned call can have is
// recorded as Unknown, and Close reports it.
func (w *Writer) End(r *Result) int64 {
	now := w.clock.Now()
	if w.open == 0 {
		w.wrong("End without a Begin")
		return now
	}
	w.finish(w.checked(r), now)
	return now
}

// finish writes the return half of the open call.
func (w *Writer) finish(r *Result, at int64) {
	off := w.open - w.at
	s := w.window[off : off+slotSize : off+slotSize]
	w.open = 0
	putReturn(s, r, at)
	seed := binary.LittleEndian.Uint32(s[invokeCRC:])
	commit(s[returnCRC:], checksum(seed, s[returnAt:returnCRC]))
}

// commit writes a checksum in one store, so that a kill cannot leave a part of it,
// which would be damage: the compiler may store the bytes of an integer one by one.
func commit(s []byte, crc uint32) {
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], crc)
	*(*[4]byte)(s) = b
}

// giveUp records that the open call did not return. So a blank return half with
// other calls after it is known to be a lost one.
func (w *Writer) giveUp() { w.finish(&Result{Outcome: Open}, 0) }

// Point records something that has no duration (KindLost, KindFinal): its
// invoke is its return. It may come while a call is open. Errors are those of
// Begin.
func (w *Writer) Point(op *Op, r *Result) (int64, error) {
	s, err := w.slot(op)
	if err != nil {
		return 0, err
	}
	putInvoke(s, pointMark, w.client, w.seq, op)
	now := w.clock.Now()
	putStamps(s, op.Intended, now)
	putReturn(s, w.checked(r), now)
	// The invoke's checksum comes last: a point is there as a whole or not.
	crc := checksum(0, s[:invokeCRC])
	binary.LittleEndian.PutUint32(s[returnCRC:], checksum(crc, s[returnAt:returnCRC]))
	commit(s[invokeCRC:], crc)
	w.next += slotSize
	w.seq++
	return now, nil
}

// slot returns the next free slot, or why op cannot be recorded.
func (w *Writer) slot(op *Op) ([]byte, error) {
	if !op.Kind.Valid() || op.Flags&^allFlags != 0 {
		return nil, fmt.Errorf("history %s: %v with flags %#x cannot be recorded", w.path, op.Kind, uint8(op.Flags))
	}
	if w.packer != nil && w.open == 0 && w.seq-w.head.first >= w.limit {
		if err := w.nextPart(); err != nil {
			return nil, fmt.Errorf("history %s: record %d: begin another part: %w", w.path, w.seq, err)
		}
	}
	off := w.next - w.at
	if off+slotSize > int64(len(w.window)) {
		if err := w.advance(); err != nil {
			return nil, fmt.Errorf("history %s: record %d: %w", w.path, w.seq, err)
		}
		off = w.next - w.at
	}
	return w.window[off : off+slotSize : off+slotSize], nil
}

// partPath is the file of a part of a stream after the first, which has the
// stream's own path.
func partPath(stream string, part int) string { return fmt.Sprintf("%s.%06d", stream, part) }

// nextPart goes on in a new file, and leaves the old one to the Packer. After an
// error the Writer is as before.
func (w *Writer) nextPart() error {
	if w.file == nil {
		return os.ErrClosed
	}
	next := *w
	next.part++
	next.path = partPath(w.stream, next.part)
	next.head.first = w.seq
	next.file, next.window, next.at, next.size = nil, nil, 0, 0
	next.next, next.ready = headerSize, headerSize
	if err := next.create(); err != nil {
		return err
	}
	h := w.head
	h.continued, h.allocated = true, w.next
	err := w.writeHeader(&h)
	if err == nil {
		err = w.file.Truncate(w.next)
	}
	if err != nil {
		next.unmap()
		return errors.Join(err, next.file.Close(), os.Remove(next.path))
	}
	w.unmap()
	old := *w
	*w = next
	w.packer.add(old.path)
	return old.file.Close()
}

// checked returns r, or an honest stand-in if r cannot be.
func (w *Writer) checked(r *Result) *Result {
	if r.Outcome != Open && r.Outcome.Valid() && r.Flags&^allFlags == 0 {
		return r
	}
	w.wrong(fmt.Sprintf("record %d: a return with outcome %v and flags %#x", w.seq, r.Outcome, uint8(r.Flags)))
	c := *r
	c.Outcome, c.Flags = Unknown, r.Flags&allFlags
	return &c
}

func (w *Writer) wrong(what string) {
	if w.misuse == nil {
		w.misuse = fmt.Errorf("history %s: %s", w.path, what)
	}
}

// advance maps the next window, making the file longer if need be. After an
// error the Writer is as before.
func (w *Writer) advance() error {
	if w.file == nil {
		return os.ErrClosed
	}
	page := int64(os.Getpagesize())
	from := w.next
	if w.open != 0 {
		from = w.open // its return half is still to be written
	}
	from -= from % page
	end := (w.next + slotSize + w.span + page - 1) / page * page
	if err := w.lengthen(end); err != nil {
		return err
	}
	if err := w.prepare(end); err != nil {
		return err
	}
	m, err := unix.Mmap(int(w.file.Fd()), from, int(end-from), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map %d bytes (too many mappings? see vm.max_map_count): %w", end-from, err)
	}
	w.unmap()
	w.window, w.at = m, from
	now := w.clock.Now()
	switch lasted := now - w.mapped; {
	case lasted < brisk:
		w.span = min(2*w.span, maxWindow)
	case lasted > idle:
		w.span = max(w.span/2, firstWindow)
	}
	w.mapped = now
	return nil
}

// lengthen sees to it that the file has at least end bytes.
func (w *Writer) lengthen(end int64) error {
	if end <= w.size {
		return nil
	}
	size := max(firstSize, end, w.size+min(w.size, maxGrowth))
	if err := w.grow(w.file, w.size, size); err != nil {
		// The disk may have room for less than we like to have in store.
		if size > end {
			size = end
			err = w.grow(w.file, w.size, size)
		}
		if err != nil {
			// A failed attempt may leave part of the room reserved, where it is
			// of no use. (Failing to give it back changes nothing.)
			_ = w.file.Truncate(w.size)
			return fmt.Errorf("make room for %d bytes (free some disk space, or choose another folder): %w", size-w.size, err)
		}
	}
	// The header follows the file and never runs ahead of it: killed between
	// the two, the file is longer than the header declares, by zeros, which is
	// harmless. No record is written beyond the declared size, so a file that
	// was cut short is always shorter than its header declares.
	h := w.head
	h.allocated = size
	if err := w.writeHeader(&h); err != nil {
		return err
	}
	w.head, w.size = h, size
	return nil
}

// prepare writes zeros, which the file has anyway, up to end. Written in one
// piece, they come into the page cache as large folios, and the stores through
// the mapping then fault once per folio and not once per page: by trial on
// ext4, this halves the cost of a record. It also meets a failing disk here,
// where that is an error and not a fault.
func (w *Writer) prepare(end int64) error {
	for w.ready < end {
		n, err := w.file.WriteAt(zeros[:min(end-w.ready, int64(len(zeros)))], w.ready)
		if err != nil {
			return fmt.Errorf("prepare the next records: %w", err)
		}
		w.ready += int64(n)
	}
	return nil
}

// writeHeader writes the header in one piece: one small write within a page is
// not torn by a signal.
func (w *Writer) writeHeader(h *header) error {
	var p [headerSize]byte
	h.put(p[:])
	if _, err := w.file.WriteAt(p[:], 0); err != nil {
		return fmt.Errorf("write the header: %w", err)
	}
	return nil
}

func (w *Writer) unmap() {
	if w.window != nil {
		// It cannot fail for a range that Mmap gave.
		_ = unix.Munmap(w.window)
		w.window, w.at = nil, 0
	}
}

// Close seals the stream: the header gets the number of records and the mark that
// the client ended it itself, and the file is cut to that size. A stream
// without a Close reads as that of a process that died. Close also returns the
// first wrong use of the Writer, if there was any. A second Close does nothing.
func (w *Writer) Close() error {
	if w.file == nil {
		return nil
	}
	if w.open != 0 {
		w.giveUp()
	}
	w.unmap()
	h := w.head
	h.sealed, h.count, h.sealedAt, h.allocated = true, int64(w.seq), w.clock.Now(), w.next
	err := w.writeHeader(&h)
	if err == nil {
		err = w.file.Truncate(w.next)
	}
	err = errors.Join(err, w.file.Close())
	w.file, w.open, w.next = nil, 0, 0
	if err != nil {
		err = fmt.Errorf("history %s: seal: %w", w.path, err)
	}
	return errors.Join(err, w.misuse)
}
