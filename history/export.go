package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

const jsonFormat = "lockbench-history"

// jsonLine is any line, for reading.
type jsonLine struct {
	jsonFirst
	Stream *Stream  `json:"stream"`
	Damage *Damage  `json:"damage"`
	End    *jsonEnd `json:"end"`
	jsonCall
}

type jsonFirst struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
}

type jsonEnd struct {
	Streams int `json:"streams"`
	Calls   int `json:"calls"`
}

type jsonCall struct {
	Client   *uint32  `json:"client"`
	Seq      *uint32  `json:"seq"`
	Kind     string   `json:"kind"`
	Outcome  string   `json:"outcome,omitempty"`
	Flags    []string `json:"flags,omitempty"`
	Key      uint32   `json:"key"`
	Attempt  string   `json:"attempt,omitempty"`
	Intended int64    `json:"intended,omitempty"`
	Invoke   int64    `json:"invoke"`
	Return   int64    `json:"return,omitempty"`
	Fence    uint64   `json:"fence,omitempty"`
	LeaseEnd int64    `json:"lease_end,omitempty"`
	Arg      uint64   `json:"arg,omitempty"`
	Value    uint64   `json:"value,omitempty"`
}

// flagNames are the words of the flags, by bit.
var flagNames = [...]string{"warmup", "fenced", "stale", "lease-timer", "drain", "shared"}

// WriteJSONL writes h as JSON lines, as the package's documentation describes. Read and
// ReadJSONL read them back to the same history.
func WriteJSONL(w io.Writer, h *History) error { return writeJSONL(w, h, h.each) }

// WriteJSONL writes the history as JSON lines.
func (k *Keyed) WriteJSONL(w io.Writer) error { return writeJSONL(w, &k.History, k.Each) }

// each visits the calls in their order.
func (h *History) each(visit func(*Call)) error {
	for i := range h.Calls {
		visit(&h.Calls[i])
	}
	return nil
}

// writeJSONL writes a history, whose calls each visits.
func writeJSONL(w io.Writer, h *History, each func(func(*Call)) error) error {
	b := bufio.NewWriterSize(w, 64<<10)
	enc := json.NewEncoder(b)
	err := enc.Encode(jsonFirst{jsonFormat, version})
	for _, s := range h.Streams {
		err = errors.Join(err, enc.Encode(map[string]Stream{"stream": s}))
	}
	for _, d := range h.Damage {
		err = errors.Join(err, enc.Encode(map[string]Damage{"damage": d}))
	}
	calls := 0
	err = errors.Join(err, each(func(c *Call) {
		if calls++; err == nil {
			err = enc.Encode(toJSON(c))
		}
	}))
	err = errors.Join(err, enc.Encode(map[string]jsonEnd{"end": {len(h.Streams), calls}}), b.Flush())
	if err != nil {
		return fmt.Errorf("history: write JSON lines: %w", err)
	}
	return nil
}

func toJSON(c *Call) jsonCall {
	j := jsonCall{
		Client: &c.Client, Seq: &c.Seq, Kind: c.Kind.String(), Outcome: c.Outcome.String(), Key: c.Key,
		Intended: c.Intended, Invoke: c.Invoke, Return: c.Return,
		Fence: c.Fence, LeaseEnd: c.LeaseEnd, Arg: c.Arg, Value: c.Value,
	}
	if !c.Attempt.IsZero() {
		j.Attempt = c.Attempt.String()
	}
	for i, name := range flagNames {
		if c.Flags&(1<<i) != 0 {
			j.Flags = append(j.Flags, name)
		}
	}
	return j
}

// ReadJSONL reads JSON lines from r. Damage names the file by name. A line that
// cannot be parsed, or that contradicts another, is damage, and the rest is
// still read. Without one readable call the error is ErrNoRecords, and the
// history still lists the damage. Other errors are those of r.
func ReadJSONL(r io.Reader, name string) (*History, error) {
	h := new(History)
	p := jsonReader{faults: faults{h: h, name: name}, seen: make(map[[2]uint32]bool), streams: make(map[uint32]int), foreign: foreigners{
		clients: numbering{what: "client"}, keys: numbering{what: "key"}, owners: owners{}, next: map[uint32]uint32{},
	}}
	in := bufio.NewReaderSize(r, maxLine)
	for {
		line, n, err := readLine(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("history: read %s: %w", name, err)
		}
		p.line++
		if n > len(line) {
			p.note(NoClient, "the line is longer than %d bytes", maxLine)
		} else if len(bytes.TrimSpace(line)) > 0 {
			p.read(line)
		}
		p.offset += int64(n)
		if err != nil {
			break
		}
	}
	p.finish()
	if len(h.Calls) == 0 {
		return h, noRecords(name, h)
	}
	return h, nil
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
	seen    map[[2]uint32]bool
	streams map[uint32]int // index in h.Streams
	format  bool           // the first line said that the file is ours
	foreign foreigners
	end     *jsonEnd
}

func (p *jsonReader) note(client uint32, format string, args ...any) {
	p.found(p.line, p.offset, client, fmt.Sprintf(format, args...))
}

func (p *jsonReader) read(line []byte) {
	l, err := p.decode(line)
	if err != nil {
		client := NoClient
		if l.Client != nil {
			client = *l.Client
		}
		p.note(client, "%v", err)
		return
	}
	if p.end != nil {
		p.note(NoClient, "stands after the end")
		return
	}
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
			return
		}
		p.streams[s.Client] = len(p.h.Streams)
		p.h.Streams = append(p.h.Streams, s)
	case l.Damage != nil:
		p.h.Damage = append(p.h.Damage, *l.Damage)
	case l.End != nil:
		p.end = l.End
	case l.Kind != "" || l.Client != nil || l.Seq != nil:
		p.call(&l.jsonCall)
	default:
		p.note(NoClient, "holds nothing of a history")
	}
}

// decode understands a line: strictly, if the first one said that the file is
// ours.
func (p *jsonReader) decode(line []byte) (jsonLine, error) {
	if !p.format {
		return p.foreign.decode(line)
	}
	var l jsonLine
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&l); err != nil {
		return l, fmt.Errorf("cannot be understood: %w", err)
	}
	if dec.More() {
		return l, errors.New("holds more than one object")
	}
	return l, nil
}

func (p *jsonReader) call(j *jsonCall) {
	if j.Client == nil || j.Seq == nil {
		p.note(NoClient, "a call needs client and seq")
		return
	}
	c, err := fromJSON(j)
	if err != nil {
		p.note(*j.Client, "%v", err)
		return
	}
	id := [2]uint32{c.Client, c.Seq}
	if p.seen[id] {
		p.note(c.Client, "call %d comes again", c.Seq)
		return
	}
	p.seen[id] = true
	i, ok := p.streams[c.Client]
	if !ok {
		i = len(p.h.Streams)
		p.streams[c.Client] = i
		p.h.Streams = append(p.h.Streams, Stream{Client: c.Client})
		if p.format {
			p.note(c.Client, "a call of a client without a stream")
		}
	}
	p.h.Streams[i].Records++
	p.h.Calls = append(p.h.Calls, c)
}

// fromJSON returns the call of a line, or why it cannot be one.
func fromJSON(j *jsonCall) (Call, error) {
	c := Call{
		Client: *j.Client, Seq: *j.Seq, Key: j.Key, Intended: j.Intended, Invoke: j.Invoke, Return: j.Return,
		Fence: j.Fence, LeaseEnd: j.LeaseEnd, Arg: j.Arg, Value: j.Value,
	}
	var known bool
	if c.Kind, known = kindOf(j.Kind); !known {
		return c, fmt.Errorf("kind %q is none of %s", j.Kind, strings.Join(kindNames[1:], ", "))
	}
	if j.Outcome != "" {
		o := slices.Index(outcomeNames[:], j.Outcome)
		if c.Outcome = Outcome(o); o < 0 || !fits(c.Kind, c.Outcome) {
			return c, fmt.Errorf("outcome %q is none of those of a call of kind %v: %s", j.Outcome, c.Kind, strings.Join(outcomesOf(c.Kind), ", "))
		}
	}
	for _, f := range j.Flags {
		i := slices.Index(flagNames[:], f)
		if i < 0 {
			return c, fmt.Errorf("flag %q is none of %s", f, strings.Join(flagNames[:], ", "))
		}
		c.Flags |= 1 << i
	}
	if j.Attempt != "" {
		a, err := ParseAttempt(j.Attempt)
		if err != nil {
			return c, err
		}
		c.Attempt = a
	}
	if c.Intended == 0 {
		c.Intended = c.Invoke
	}
	switch {
	case c.Invoke <= 0 || c.Intended < 0 || c.Return < 0:
		return c, fmt.Errorf("stamps must be above 0: invoke %d, intended %d, return %d", c.Invoke, c.Intended, c.Return)
	case c.Return != 0 && c.Return < c.Invoke:
		return c, fmt.Errorf("it returned at %d, before its invoke at %d", c.Return, c.Invoke)
	case c.Return != 0 && c.Outcome == Open:
		return c, errors.New("an open call has no return")
	case c.Return == 0 && c.Outcome != Open && c.Outcome != Unknown:
		return c, fmt.Errorf("outcome %v needs a return", c.Outcome)
	}
	return c, nil
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

// kindOf is the kind that a word names.
func kindOf(word string) (Kind, bool) {
	k := slices.Index(kindNames[1:], word)
	return Kind(k + 1), k >= 0
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
	h.Clients, h.Keys = p.foreign.clients.byNumber(), p.foreign.keys.byNumber()
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
	last := make(map[uint32]Call)
	most := make(map[uint32]uint32)
	for _, c := range h.Calls { // by invoke
		if l, ok := last[c.Client]; ok && c.Seq < l.Seq {
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
