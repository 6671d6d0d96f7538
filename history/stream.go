package history

import (
	"fmt"
	"slices"
)

// span is where a stream lies in a file.
type span struct {
	from, end int64
	// original is the size of the client's own file, of which zeros at the end
	// may have been left out; -1 if it is not known.
	original int64
	// content is the checksum of the whole, if it was merged; 0: not known.
	content uint32
}

// streamReader reads one stream. What it finds wrong it notes and goes on.
type streamReader struct {
	sc    *scanner
	file  string
	place func(at int64) (file string, offset int64) // where the bytes of a strip are stored; nil: where they are
	strip *strip                                     // that sc reads; nil: a file
	head  header
	known bool // head is sound

	client     uint32
	hasClient  bool
	calls      []Call // that were not passed on yet
	records    int    // with those that were passed on
	pass       func([]Call)
	damage     []Damage
	suppressed int

	next       uint32 // the sequence number that should come
	lastInvoke int64
	lastReturn int64

	badAt int64  // where unreadable bytes began, if badWhy is set
	bad   string // what was wrong there

	pending   int // index of a call whose return is not there, or -1
	pendingAt int64
}

// maxDamage bounds the damage listed per stream; the rest is counted.
const maxDamage = 100

// read reads the stream at sp and returns the account of it.
func (r *streamReader) read(sp span) Stream {
	r.pending = -1
	r.readHeader(sp)
	for r.sc.pos < r.sc.end {
		s := r.sc.peek(slotSize)
		if len(s) < slotSize {
			r.tail(s)
			break
		}
		switch invokeHalf(s) {
		case halfSound:
			r.accept(s, r.sc.pos, false)
			r.sc.skip(slotSize)
		case halfBlank:
			if returnHalf(s) != halfBlank {
				r.unreadable("record %d has a return and no invoke", r.next)
				r.sc.resync()
			} else if r.blank() {
				r.sc.pos = r.sc.end
			}
		case halfTorn:
			if r.lastBreath(s) {
				r.sc.pos = r.sc.end
				break
			}
			fallthrough
		default:
			r.unreadable("the invoke checksum of record %d does not match", r.next)
			r.sc.resync()
		}
	}
	r.finish(sp)
	st := Stream{Client: r.client, Records: r.records}
	if !r.hasClient {
		st.Client = NoClient
	}
	if r.known {
		st.Worker, st.ClockUncertainty = r.head.worker, r.head.uncertainty
		st.Sealed, st.SealedAt = r.head.sealed, r.head.sealedAt
	}
	return st
}

// report returns the damage that was noted, all of it that of one client.
func (r *streamReader) report(client uint32, from int64) []Damage {
	if r.suppressed > 0 {
		r.damage = append(r.damage, Damage{File: r.file, Offset: from, What: fmt.Sprintf("and %d more places of this stream", r.suppressed)})
	}
	for i := range r.damage {
		r.damage[i].Client = client
	}
	return r.damage
}

func (r *streamReader) readHeader(sp span) {
	h, err := parseHeader(r.sc.peek(headerSize))
	if err == nil {
		r.head, r.known = h, true
		r.client, r.hasClient = h.client, true
		r.sc.skip(headerSize)
		if sp.original >= 0 && sp.original < h.allocated {
			r.note(sp.from+sp.original, "the stream is cut short: %d of %d bytes are there", sp.original, h.allocated)
		}
		if sp.original >= 0 {
			return
		}
		// A header that nothing vouches for may have strayed here.
		if r.vote(); r.client == h.client {
			return
		}
		r.known, r.head = false, header{}
		r.note(sp.from, "the header of client %d stands before records of client %d", h.client, r.client)
		return
	}
	r.note(sp.from, "%v", err)
	// The records may be sound all the same, and each says whose it is.
	if sp.end-sp.from < headerSize {
		r.sc.pos = sp.end
		return
	}
	r.sc.skip(headerSize)
	if s := r.sc.peek(slotSize); len(s) == slotSize && invokeHalf(s) != halfSound {
		r.sc.pos = sp.from
		r.sc.resync()
		if r.sc.end-r.sc.pos < slotSize {
			r.sc.pos = r.sc.end
		}
	}
	r.vote()
}

// vote finds out whose stream it is, without a header: that of the client of
// most records, if one has more than half. A stray record does not decide it.
func (r *streamReader) vote() {
	back := r.sc.pos
	defer func() { r.sc.pos = back }()
	lead := 0
	for r.sc.end-r.sc.pos >= slotSize {
		s := r.sc.peek(slotSize)
		if len(s) < slotSize {
			return
		}
		if invokeHalf(s) != halfSound {
			r.sc.resync()
			continue
		}
		switch c := call(s, false).Client; {
		case lead == 0:
			r.client, r.hasClient, lead = c, true, 1
		case c == r.client:
			lead++
		default:
			lead--
		}
		r.sc.skip(slotSize)
	}
}

// accept takes over a slot whose invoke half is sound.
func (r *streamReader) accept(s []byte, at int64, cut bool) {
	c := call(s, false)
	if !r.hasClient {
		r.client, r.hasClient = c.Client, true
	}
	switch {
	case c.Client != r.client:
		r.unreadable("a record of client %d stands in the stream of another", c.Client)
		return
	case c.Seq < r.next:
		r.unreadable("record %d comes again, or out of order, after record %d", c.Seq, r.next-1)
		return
	case r.known && r.head.sealed && int64(c.Seq) >= r.head.count, c.Seq == ^uint32(0):
		r.unreadable("record %d stands after the end of the stream, which has %d", c.Seq, r.head.count)
		return
	}
	if c.Seq > r.next {
		s = slices.Clone(s) // misplaced may move the buffer on
		if r.misplaced(c.Seq) {
			r.unreadable("record %d stands where record %d should", c.Seq, r.next)
			return
		}
	}
	r.resume(c.Seq, at)
	r.next = c.Seq + 1
	if !c.Kind.Valid() || c.Flags&^allFlags != 0 || c.Invoke <= 0 || c.Intended < 0 {
		r.note(at, "record %d is impossible: %v, flags %#x, invoke %d, intended %d", c.Seq, c.Kind, uint8(c.Flags), c.Invoke, c.Intended)
		return
	}
	point := isPoint(s)
	if c.Invoke < r.lastInvoke || !point && c.Invoke < r.lastReturn {
		r.note(at, "the stamps go backwards at record %d: invoke %d, before it %d", c.Seq, c.Invoke, max(r.lastInvoke, r.lastReturn))
	}
	r.lastInvoke = max(r.lastInvoke, c.Invoke)
	if !point {
		r.lostReturn() // another call followed it: its End had come back
	}
	switch state := returnHalf(s); {
	case state == halfSound:
		full := call(s, true)
		if why := impossible(&full, Flags(s[returnAt+1])); why != "" {
			r.note(at+returnAt, "the return of record %d is impossible: %s", c.Seq, why)
			c.Outcome = Unknown
			break
		}
		c = full
		r.lastReturn = max(r.lastReturn, c.Return)
	case cut:
		r.note(at+returnAt, "the file ends within record %d", c.Seq)
		c.Outcome = Unknown
	case state == halfBad || point:
		r.note(at+returnAt, "the return checksum of record %d does not match", c.Seq)
		c.Outcome = Unknown
	default:
		r.pending, r.pendingAt = len(r.calls), at+returnAt
	}
	r.calls = append(r.calls, c)
	r.records++
	if len(r.calls) == cap(r.calls) {
		r.passOn()
	}
}

// impossible names the part of a return that is invalid, or "".
func impossible(c *Call, f Flags) string {
	switch {
	case c.Outcome == Open && c.Return == 0: // the client gave the call up
	case c.Outcome == Open || !c.Outcome.Valid() || !fits(c.Kind, c.Outcome):
		return fmt.Sprintf("%v of a call of kind %v", c.Outcome, c.Kind)
	case f&^allFlags != 0:
		return fmt.Sprintf("flags %#x", uint8(f))
	case c.Return < c.Invoke:
		return fmt.Sprintf("it returned at %d, before its invoke at %d", c.Return, c.Invoke)
	}
	return ""
}

// fits reports whether a call of kind k can have come to o. It knows only what
// each success belongs to; a refusal or a doubt may come of anything.
func fits(k Kind, o Outcome) bool {
	switch o {
	case Held:
		return k == KindAcquire || k == KindTry
	case Released:
		return k == KindRelease || k == KindCleanup
	case Extended:
		return k == KindExtend
	case Rejected:
		return k == KindRead || k == KindWrite
	case Accepted:
		return k == KindRead || k == KindWrite || k == KindFinal || k == KindLost || k == KindAlso || k == KindEnqueued
	}
	return true
}

// blank steps over slots that were never written. It reports whether nothing
// else follows.
func (r *streamReader) blank() bool {
	run := r.sc.zeroRun(r.sc.pos)
	if r.sc.pos+run >= r.sc.end {
		return true
	}
	r.unreadable("record %d is blank, though something follows it", r.next)
	// A record may itself begin with zeros: the last stretch goes byte by byte.
	if k := (run - 16) / slotSize; k > 0 {
		r.sc.skip(k * slotSize)
	} else {
		r.sc.resync()
	}
	return false
}

// lastBreath reports whether s, whose invoke half was begun and not finished,
// is what a killed writer leaves: at the end of a stream that was not sealed,
// with nothing after it. Its Begin never came back, so nothing was sent.
func (r *streamReader) lastBreath(s []byte) bool {
	if !r.known || r.head.sealed || r.bad != "" {
		return false
	}
	if returnHalf(s) != halfBlank && !isPoint(s) {
		return false
	}
	next := r.sc.pos + slotSize
	return next+r.sc.zeroRun(next) >= r.sc.end
}

// tail looks at the end of a stream that is too short for a slot.
func (r *streamReader) tail(s []byte) {
	at := r.sc.pos
	r.sc.skip(int64(len(s)))
	if isZero(s) {
		return
	}
	if len(s) >= returnAt && invokeHalf(s) == halfSound {
		var p [slotSize]byte
		copy(p[:], s)
		r.accept(p[:], at, true)
		return
	}
	r.sc.pos = at
	r.unreadable("the stream ends within record %d", r.next)
	r.sc.pos = r.sc.end
}

// finish reports what is missing at the end.
func (r *streamReader) finish(sp span) {
	if r.sc.err != nil {
		r.note(r.sc.end, "the file cannot be read further: %v", r.sc.err)
	}
	if r.known && r.head.continued {
		r.lostReturn()
		r.note(sp.end, "the stream goes on in a part that is missing")
	}
	if r.known && r.head.sealed {
		r.lostReturn()
		if int64(r.next) < r.head.count {
			r.resume(uint32(r.head.count), sp.end)
		}
	}
	if r.bad != "" {
		r.lostReturn() // who knows what stood there
		r.note(r.badAt, "%s; nothing after it could be read", r.bad)
	}
}

// broken takes over the damage to the blocks that the stream is stored in.
func (r *streamReader) broken() {
	if len(r.strip.damage) == 0 {
		return
	}
	r.lostReturn()
	for _, d := range r.strip.damage {
		if d.File == "" {
			d.File = r.file
		}
		r.damage = append(r.damage, d)
	}
}

// lostReturn takes a return that is not there for what it is once something
// shows that the writer had gone on: damage.
func (r *streamReader) lostReturn() {
	if r.pending < 0 {
		return
	}
	c := &r.calls[r.pending]
	c.Outcome = Unknown
	r.note(r.pendingAt, "the return of record %d is lost", c.Seq)
	r.pending = -1
}

// misplaced reports whether the record at the current place, whose number seq
// is ahead of its turn, stands there by accident: if after it, and a few that
// go on from it, comes one whose turn it is.
func (r *streamReader) misplaced(seq uint32) bool {
	back := r.sc.pos
	defer func() { r.sc.pos = back }()
	for ahead := seq + 1; ahead-seq <= lookAhead; ahead++ {
		if s := r.sc.peek(slotSize); len(s) == slotSize && invokeHalf(s) == halfSound {
			r.sc.skip(slotSize - 1) // over the one just seen
		}
		r.sc.resync()
		s := r.sc.peek(slotSize)
		if len(s) < slotSize || invokeHalf(s) != halfSound {
			return false
		}
		if c := call(s, false); c.Client != r.client || c.Seq != ahead {
			return c.Client == r.client && c.Seq >= r.next && c.Seq < seq
		}
	}
	return false
}

// lookAhead bounds how many records misplaced looks at.
const lookAhead = 64

// unreadable remembers where unreadable bytes begin. They are reported once
// their end is known.
func (r *streamReader) unreadable(format string, args ...any) {
	if r.bad == "" {
		r.bad, r.badAt = fmt.Sprintf(format, args...), r.sc.pos
	}
}

// resume reports the unreadable bytes, or the missing records, before the record
// seq at the offset at.
func (r *streamReader) resume(seq uint32, at int64) {
	lost := ""
	switch n := seq - r.next; {
	case n == 1:
		lost = fmt.Sprintf("record %d is lost", r.next)
	case n > 1:
		lost = fmt.Sprintf("records %d to %d are lost", r.next, seq-1)
	}
	switch {
	case r.bad != "" && lost != "":
		r.note(r.badAt, "%s; %s", r.bad, lost)
	case r.bad != "":
		r.note(r.badAt, "%s; %d bytes were passed over", r.bad, at-r.badAt)
	case lost != "":
		r.note(at, "%s", lost)
	}
	r.bad = ""
	r.next = seq
}

func (r *streamReader) note(at int64, format string, args ...any) {
	if len(r.damage) >= maxDamage {
		r.suppressed++
		return
	}
	file := r.file
	if r.place != nil {
		if stored, offset := r.place(at); stored != "" {
			file, at = stored, offset
		} else {
			at = offset
		}
	}
	r.damage = append(r.damage, Damage{File: file, Offset: at, What: fmt.Sprintf(format, args...)})
}
