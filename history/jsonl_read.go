package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ReadJSONL reads JSON lines from r, or the same objects in a JSON array. Damage
// names the file by name. A line that cannot be parsed, or that contradicts another,
// is damage, and the rest is still read. Without one readable call the error is
// ErrNoRecords, and the history still lists the damage. Other errors are those of r.
func ReadJSONL(r io.Reader, name string) (*History, error) {
	p := newJSONReader(name)
	if err := p.all(r); err != nil {
		return nil, err
	}
	p.finish()
	if len(p.h.Calls) == 0 {
		return p.h, noRecords(name, p.h)
	}
	return p.h, nil
}

func newJSONReader(name string) *jsonReader {
	return &jsonReader{
		faults: faults{h: new(History), name: name}, streams: map[uint32]*jsonStream{},
		clients: newNumbering("client"), keys: newNumbering("key"), owners: newOwners(),
	}
}

// all reads what r has.
func (p *jsonReader) all(r io.Reader) error {
	in := bufio.NewReaderSize(withoutMark(r), maxLine)
	read := p.lines
	if begin, _ := in.Peek(maxLine / 2); isArray(begin) { // an error shows again
		read = p.array
	}
	if err := read(in); err != nil {
		return fmt.Errorf("history: read %s: %w", p.name, err)
	}
	return nil
}

// CallID names a call of a history.
type CallID struct{ Client, Seq uint32 }

// Lines returns the lines, counted from 1, on which calls stand in a file of JSON
// lines; in an array the place of the object counts. It reads the file once more. In
// a history of another form no call has a line. The error is that of reading.
func Lines(path string, calls []CallID) (map[CallID]int, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("history: find the lines of calls: %w", err)
	}
	defer f.Close() // only read: nothing to lose
	if !isJSON(beginOf(f)) || len(calls) == 0 {
		return nil, nil
	}
	p := newJSONReader(path)
	p.wanted = make(map[CallID]int, len(calls))
	for _, id := range calls {
		p.wanted[id] = 0
	}
	if err := p.all(f); err != nil {
		return nil, err
	}
	maps.DeleteFunc(p.wanted, func(_ CallID, line int) bool { return line == 0 })
	return p.wanted, nil
}

// byteOrderMark is what some programs put before a text.
const byteOrderMark = "\ufeff"

// withoutMark leaves out a byte order mark.
func withoutMark(r io.Reader) io.Reader {
	begin := make([]byte, len(byteOrderMark))
	n, err := io.ReadFull(r, begin)
	if string(begin[:n]) == byteOrderMark {
		n = 0
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return io.MultiReader(bytes.NewReader(begin[:n]), failing{err})
	}
	return io.MultiReader(bytes.NewReader(begin[:n]), r)
}

// failing is a reader that failed already.
type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }

// isArray reports whether a text begins as a JSON array of objects; a map of EDN
// begins otherwise.
func isArray(begin []byte) bool {
	rest, ok := bytes.CutPrefix(bytes.TrimLeft(begin, " \t\r\n"), []byte("["))
	rest, object := bytes.CutPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte("{"))
	return ok && object && bytes.HasPrefix(bytes.TrimLeft(rest, " \t\r\n"), []byte(`"`))
}

// lines reads a line for each object.
func (p *jsonReader) lines(in *bufio.Reader) error {
	for {
		line, n, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		p.line++
		if n > len(line) {
			p.note(NoClient, "the line is longer than %d bytes", maxLine)
		} else if len(bytes.TrimSpace(line)) > 0 {
			p.read(line)
		}
		p.offset += int64(n)
		if err != nil {
			return nil
		}
	}
}

// array reads the objects of an array; the place of each counts as its line.
func (p *jsonReader) array(in *bufio.Reader) error {
	dec := json.NewDecoder(in)
	_, err := dec.Token()
	for err == nil && dec.More() {
		var object json.RawMessage
		p.line++
		if err = dec.Decode(&object); err == nil {
			p.read(object)
			p.offset = dec.InputOffset()
		}
	}
	if err == nil {
		_, err = dec.Token()
	}
	var bad *json.SyntaxError
	if errors.As(err, &bad) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		p.note(NoClient, "cannot be understood, nor what follows it in the array: %v", err)
		return nil
	}
	return err
}

// maxLine bounds what is held of one line.
const maxLine = 64 << 10

// readLine reads one line of n bytes; of one that is too long it returns only
// a part.
func readLine(in *bufio.Reader) (line []byte, n int, err error) {
	for {
		line, err = in.ReadSlice('\n')
		n += len(line)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, n, err
		}
	}
}

type jsonReader struct {
	faults
	line    int
	offset  int64
	call    callLine
	made    Call // of the line
	streams map[uint32]*jsonStream
	format  bool // the first line said that the file is ours
	end     *jsonEnd
	// wanted are the calls whose lines are asked for: as found, or 0.
	wanted map[CallID]int

	// What makes ours of the calls of other programs.
	clients, keys numbering
	owners        owners
}

// jsonStream is one client's part of what was read.
type jsonStream struct {
	index int             // in the history's streams
	next  uint32          // number of the call after the last
	seen  map[uint32]bool // the numbers read, once they are out of order
	last  Call            // the call before, less its number
}

func (p *jsonReader) note(client uint32, format string, args ...any) {
	p.owners.lost++
	p.found(p.line, p.offset, client, fmt.Sprintf(format, args...))
}

func (p *jsonReader) read(line []byte) {
	if p.end != nil {
		p.note(NoClient, "stands after the end")
		return
	}
	if !p.call.scan(line) {
		var a anyLine
		if err := a.decode(line, &p.call); err != nil {
			p.note(p.clientOf(), "%v", err)
			return
		}
		if p.other(&a) {
			return
		}
	}
	l := &p.call
	if l.kind.text == nil && l.client.text == nil && l.seq.text == nil {
		p.note(NoClient, "holds nothing of a history")
		return
	}
	c := &p.made
	*c = Call{}
	if err := p.understand(l, c); err != nil {
		p.note(p.clientOf(), "%v", err)
		return
	}
	p.add(c)
}

// clientOf is the client that the line names, if it can be known.
func (p *jsonReader) clientOf() uint32 {
	if client, err := p.number(&p.clients, p.call.client); err == nil && p.call.client.text != nil {
		return client
	}
	return NoClient
}

// other takes a line without a call.
func (p *jsonReader) other(l *anyLine) bool {
	switch {
	case l.Format != "":
		p.format = true
		if l.Format != jsonFormat || l.Version != version {
			p.note(NoClient, "format %q version %d, this program reads %q version %d", l.Format, l.Version, jsonFormat, version)
		}
	case l.Stream != nil:
		s := *l.Stream
		if _, ok := p.streams[s.Client]; ok {
			p.note(s.Client, "a second stream of this client")
			return true
		}
		var err error
		if s.ClockUncertainty, err = uncertainty(s.ClockUncertainty); err != nil {
			p.note(s.Client, "%v", err)
		}
		p.stream(s)
	case l.Damage != nil:
		p.h.Damage = append(p.h.Damage, *l.Damage)
		p.owners.lost++
	case l.End != nil:
		p.end = l.End
	default:
		return false
	}
	return true
}

// The bounds of what a text may give: a clock that is off by an hour is useless, and
// the rules add to stamps.
const (
	maxUncertainty = int64(time.Hour)
	maxStamp       = 1<<61 - 1 - maxUncertainty
)

// uncertainty bounds a clock's uncertainty. One that makes no sense becomes the
// largest, so that nothing is certain.
func uncertainty(ns int64) (int64, error) {
	if ns < 0 || ns > maxUncertainty {
		return maxUncertainty, fmt.Errorf("a clock uncertainty of %d ns: want 0 to %d", ns, maxUncertainty)
	}
	return ns, nil
}

func (p *jsonReader) stream(s Stream) *jsonStream {
	j := &jsonStream{index: len(p.h.Streams)}
	p.streams[s.Client] = j
	p.h.Streams = append(p.h.Streams, s)
	return j
}

// add adds a call that was understood.
func (p *jsonReader) add(c *Call) {
	s, ok := p.streams[c.Client]
	if !ok {
		s = p.stream(Stream{Client: c.Client})
		if p.format {
			p.note(c.Client, "a call of a client without a stream")
		}
	}
	stream := &p.h.Streams[s.index]
	stream.Unnumbered = stream.Unnumbered || p.call.seq.text == nil
	again := *c
	again.Seq, again.Attempt = 0, Attempt{}
	switch {
	case p.call.seq.text != nil && s.again(c.Seq):
		p.note(c.Client, "call %d comes again", c.Seq)
		return
	case p.call.seq.text == nil && again == s.last:
		p.note(c.Client, "a call stands here twice")
		return
	}
	s.last = again
	stream.Records++
	if id := (CallID{c.Client, c.Seq}); p.wanted != nil {
		if _, ok := p.wanted[id]; ok {
			p.wanted[id] = p.line
		}
		return // the calls themselves are known
	}
	p.h.Calls = append(p.h.Calls, *c)
}

// again reports whether a call of that number was read before. Nearly all numbers
// come in order, and need no map.
func (s *jsonStream) again(seq uint32) bool {
	if s.seen == nil {
		if seq == s.next {
			s.next++
			return false
		}
		s.seen = map[uint32]bool{}
		for i := range s.next {
			s.seen[i] = true
		}
	}
	if s.seen[seq] {
		return true
	}
	s.seen[seq] = true
	return false
}

// understand makes a call of a line. Of a file of ours it accepts only what
// WriteJSONL writes.
func (p *jsonReader) understand(l *callLine, c *Call) (err error) {
	if l.client.text == nil || p.format && l.seq.text == nil {
		if p.format {
			return errors.New("a call needs client and seq")
		}
		return errors.New("a call needs a client")
	}
	if c.Client, err = p.number(&p.clients, l.client); err != nil {
		return err
	}
	if c.Key, err = p.number(&p.keys, l.key); err != nil {
		return err
	}
	if err := p.words(l, c); err != nil {
		return err
	}
	if err := p.figures(l, c); err != nil {
		return err
	}
	o := p.owners.of(c.Client)
	if l.seq.text == nil {
		c.Seq = o.next
	} else if c.Seq != o.next {
		clear(o.keys) // calls are missing
	}
	o.next = c.Seq + 1
	if p.format {
		if l.attempt.text != nil {
			c.Attempt, err = ParseAttempt(string(l.attempt.text))
		}
		return err
	}
	if err := p.owners.begin(c, l.attempt.text); err != nil {
		return err
	}
	p.owners.end(c)
	return nil
}

// words understands kind, outcome and flags.
func (p *jsonReader) words(l *callLine, c *Call) error {
	var known bool
	if c.Kind, known = kindOf(string(l.kind.text), p.format); !known {
		return fmt.Errorf("kind %q is not one of %s", l.kind.text, strings.Join(kindNames[1:], ", "))
	}
	switch {
	case l.outcome.text == nil:
	case !p.format && string(l.outcome.text) == "ok":
		c.Outcome = succeeded(c.Kind)
	default:
		o := slices.Index(outcomeNames[:], string(l.outcome.text))
		if c.Outcome = Outcome(o); o < 0 || !fits(c.Kind, c.Outcome) {
			return fmt.Errorf("outcome %q is not one of those of a call of kind %v: %s", l.outcome.text, c.Kind, strings.Join(outcomesOf(c.Kind), ", "))
		}
	}
	for _, f := range l.flags {
		i := slices.Index(flagNames[:], f)
		if i < 0 {
			return fmt.Errorf("flag %q is not one of %s", f, strings.Join(flagNames[:], ", "))
		}
		c.Flags |= 1 << i
	}
	return nil
}

// figures understands numbers and stamps.
func (p *jsonReader) figures(l *callLine, c *Call) error {
	for _, s := range [...]struct {
		name string
		from jsonValue
		to   *int64
	}{{"intended", l.intended, &c.Intended}, {"invoke", l.invoke, &c.Invoke}, {"return", l.returned, &c.Return}, {"lease_end", l.leaseEnd, &c.LeaseEnd}} {
		if err := p.stamp(s.from, s.to); err != nil {
			return fmt.Errorf("%s %w", s.name, err)
		}
	}
	for _, s := range [...]struct {
		name string
		from jsonValue
		to   *uint64
	}{{"fence", l.fence, &c.Fence}, {"arg", l.arg, &c.Arg}, {"value", l.value, &c.Value}} {
		if s.from.text == nil {
			continue
		}
		var err error
		if *s.to, err = strconv.ParseUint(string(s.from.text), 10, 64); err != nil || s.from.quoted {
			return fmt.Errorf("%s %s: want a whole number, 0 or above", s.name, s.from.text)
		}
	}
	if l.seq.text != nil {
		n, err := strconv.ParseUint(string(l.seq.text), 10, 32)
		if err != nil || l.seq.quoted {
			return fmt.Errorf("seq %s: want a whole number below 2^32", l.seq.text)
		}
		c.Seq = uint32(n)
	}
	if c.Intended == 0 {
		c.Intended = c.Invoke
	}
	switch {
	case c.Invoke <= 0 || c.Intended < 0 || c.Return < 0:
		return fmt.Errorf("stamps must be above 0: invoke %d, intended %d, return %d", c.Invoke, c.Intended, c.Return)
	case !p.format && max(c.Invoke, c.Return) > maxStamp:
		return fmt.Errorf("stamps must be nanoseconds, and below %d: invoke %d, return %d", int64(maxStamp), c.Invoke, c.Return)
	case c.Return != 0 && c.Return < c.Invoke:
		return fmt.Errorf("it returned at %d, before its invoke at %d", c.Return, c.Invoke)
	case c.Return != 0 && c.Outcome == Open:
		return errors.New("an open call has no return")
	case c.Return == 0 && c.Outcome != Open && c.Outcome != Unknown:
		return fmt.Errorf("outcome %v needs a return", c.Outcome)
	}
	return nil
}

// number is the number of what a value names; 0 if it is not given.
func (p *jsonReader) number(n *numbering, v jsonValue) (uint32, error) {
	switch {
	case v.text == nil:
		return 0, nil
	case v.quoted && p.format:
		return 0, n.wrong(string(v.text))
	case v.quoted:
		return n.name(v.text)
	}
	if p.format { // the controller has a number too
		i, err := strconv.ParseUint(string(v.text), 10, 32)
		if err != nil {
			return 0, n.wrong(string(v.text))
		}
		return uint32(i), nil
	}
	i, err := strconv.ParseInt(string(v.text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is no %s: want a whole number, or a name", v.text, n.what)
	}
	return n.number(i)
}

// stamp reads nanoseconds, or a date with its zone as RFC 3339 writes it.
func (p *jsonReader) stamp(v jsonValue, to *int64) error {
	if v.text == nil {
		return nil
	}
	if !v.quoted {
		if n, err := strconv.ParseInt(string(v.text), 10, 64); err == nil {
			*to = n
			return nil
		}
	} else if !p.format {
		if t, err := time.Parse(time.RFC3339Nano, string(v.text)); err == nil {
			*to, p.h.Dates = t.UnixNano(), true
			return nil
		}
	}
	return fmt.Errorf("%s: want whole nanoseconds on one clock, or a date like 2026-01-02T15:04:05.123456789Z", v.text)
}

// outcomesOf lists the outcomes that a record of a call of kind k may have. A
// record of a call without an answer leaves the outcome out.
func outcomesOf(k Kind) []string {
	var words []string
	for o, word := range outcomeNames {
		switch o := Outcome(o); {
		case o == Open, !fits(k, o):
		case o == Busy && k != KindAcquire && k != KindTry:
		case o == Lost && k != KindRelease && k != KindCleanup && k != KindExtend && k != KindLost:
		default:
			words = append(words, word)
		}
	}
	return words
}

// kindOf is the kind that a word names: ours, or one that others use too.
func kindOf(word string, ours bool) (Kind, bool) {
	if k := slices.Index(kindNames[1:], word); k >= 0 || ours {
		return Kind(k + 1), k >= 0
	}
	switch word {
	case "lock":
		return KindAcquire, true
	case "try-lock":
		return KindTry, true
	case "unlock":
		return KindRelease, true
	case "renew":
		return KindExtend, true
	}
	return 0, false
}

// finish puts the history in order and reports missing calls.
func (p *jsonReader) finish() {
	h := p.h
	switch {
	case p.end == nil && p.format:
		p.note(NoClient, "the file is cut short: its end is missing")
	case p.end != nil && (p.end.Calls != len(h.Calls) || p.end.Streams != len(h.Streams)):
		p.note(NoClient, "%d calls of %d streams were read, the file should have %d of %d", len(h.Calls), len(h.Streams), p.end.Calls, p.end.Streams)
	}
	p.rest()
	h.Clients, h.Keys = p.clients.byNumber(), p.keys.byNumber()
	h.sort()
	h.order(p.name)
	h.naming()
}

// order looks for what contradicts itself between the calls of a client, and
// adds it to the damage; name stands for the file.
func (h *History) order(name string) {
	place := func(client uint32, format string, args ...any) {
		if len(h.Damage) <= maxDamage {
			h.Damage = append(h.Damage, Damage{File: name, Client: client, What: fmt.Sprintf(format, args...)})
		}
	}
	before := len(h.Damage)
	last := make(map[uint32]*Call)
	most := make(map[uint32]uint32)
	for i := range h.Calls { // by invoke
		c := &h.Calls[i]
		if l := last[c.Client]; l != nil && c.Seq < l.Seq {
			place(c.Client, "the stamps go backwards at call %d: invoke %d, call %d has %d", l.Seq, l.Invoke, c.Seq, c.Invoke)
		}
		last[c.Client] = c
		most[c.Client] = max(most[c.Client], c.Seq)
	}
	if before > 0 {
		return // what is missing has been reported
	}
	for _, s := range h.Streams {
		if n := int64(most[s.Client]) + 1 - int64(s.Records); s.Records > 0 && n > 0 {
			place(s.Client, "%d calls are missing between number 0 and %d", n, most[s.Client])
		}
	}
}
