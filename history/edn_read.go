package history

import (
	"errors"
	"fmt"
	"io"
	"strings"
)

// ReadEDN reads a history in the form that Jepsen writes: maps of operations,
// each on its own or all in one vector. The package's documentation lists the
// entries and their meaning. Damage names the file by name. Entries that cannot
// be parsed, or contradict each other, are damage, and the rest is still read.
// Without one readable call the error is ErrNoRecords, and the history still
// lists the damage. Other errors are those of r.
func ReadEDN(r io.Reader, name string) (*History, error) {
	e := ednHistory{
		ednReader: newEDNReader(withoutMark(r)), faults: faults{h: new(History), name: name}, open: map[int64]ednOpen{}, clients: map[uint32]*ednClient{},
		keys: newNumbering("key"), owners: newOwners(), streams: map[uint32]Stream{},
	}
	if err := e.ops(); err != nil {
		return nil, fmt.Errorf("history: read %s: %w", name, err)
	}
	e.finish()
	if len(e.h.Calls) == 0 {
		return e.h, noRecords(name, e.h)
	}
	return e.h, nil
}

type ednHistory struct {
	*ednReader
	faults

	open    map[int64]ednOpen // by process
	clients map[uint32]*ednClient
	keys    numbering
	owners  owners
	streams map[uint32]Stream
	total   int64 // calls that there should be; -1: not known
	clock   int64 // counts operations, where they have no time
}

// ednOpen is a call under way.
type ednOpen struct {
	index int // in the history's calls
	// bare: its invoke had no value, so a number in its completion is no echo.
	bare bool
}

// ednClient is how far one client's calls have come.
type ednClient struct {
	seen map[uint32]bool // sequence numbers
	last int64           // its latest time
}

func (e *ednHistory) note(client uint32, format string, args ...any) {
	e.owners.lost++
	e.found(e.line, e.offset, client, fmt.Sprintf(format, args...))
}

// ops reads operation by operation; a vector around them is only passed by.
func (e *ednHistory) ops() error {
	e.total = -1
	for depth := 0; ; {
		b, err := e.next()
		if errors.Is(err, io.EOF) {
			if depth > 0 {
				e.note(NoClient, "the file is cut short: its vector is not closed")
			}
			return nil
		}
		if err != nil {
			return err
		}
		switch {
		case b == '[' || b == '(':
			depth++
			continue
		case (b == ']' || b == ')') && depth > 0:
			depth--
			continue
		}
		v, err := e.from(b, 1)
		switch {
		case errors.Is(err, errEDN):
			e.note(NoClient, "%v", err)
			if !errors.Is(err, io.ErrUnexpectedEOF) {
				e.skipLine()
			}
		case err != nil:
			return err
		case v == dropped{}:
		default:
			if m, ok := v.(ednMap); ok {
				e.op(m)
			} else {
				e.note(NoClient, "not the map of an operation")
			}
		}
	}
}

func (e *ednHistory) op(m ednMap) {
	e.clock++
	process, ok := m[":process"].(int64)
	if !ok {
		// The nemesis, and other processes that are no clients, such as our own
		// notes.
		e.aside(m)
		return
	}
	f, _ := m[":f"].(ednWord)
	kind, known := ednKinds[f]
	if !known {
		e.note(NoClient, "operation %s of process %d is not one of a lock's: %s", f, process, strings.Join(ednNames(), " "))
		return
	}
	client, ok := ednUint32(m, ":client", process)
	if !ok || client >= NoClient && client != Controller {
		e.note(NoClient, "process %d cannot be a client's number", process)
		return
	}
	at, err := e.time(m)
	if err != nil {
		e.note(client, "%v", err)
		return
	}
	o, open := e.open[process]
	open = open && e.h.Calls[o.index].Kind == kind
	switch m[":type"] {
	case ednWord(":invoke"):
		e.invoke(m, process, client, kind, at)
	case ednWord(":ok"), ednWord(":fail"), ednWord(":info"):
		if _, ours := m[":outcome"]; !open && !ours && kind == KindLost {
			e.point(m, client, kind, at) // a loss is not a request, so it has no invoke
			return
		}
		e.complete(m, process, client, kind, at)
	default:
		e.note(client, "type %v is not one of :invoke, :ok, :fail, :info", m[":type"])
	}
}

// time is the operation's stamp. Without a time its place in the order serves:
// nothing is then known of how long anything took.
func (e *ednHistory) time(m ednMap) (int64, error) {
	switch t := m[":time"].(type) {
	case int64:
		return t, nil
	case nil:
		return e.clock, nil
	default:
		return 0, fmt.Errorf("the time %v is no whole number of nanoseconds", t)
	}
}

func (e *ednHistory) invoke(m ednMap, process int64, client uint32, kind Kind, at int64) {
	if o, ok := e.open[process]; ok {
		// It stays open: its end was lost.
		e.note(client, "process %d begins an operation while its %v is open", process, e.h.Calls[o.index].Kind)
	}
	if i, ok := e.begin(m, client, kind, at); ok {
		e.open[process] = ednOpen{i, ednToken(m) == nil}
	}
}

// point is an operation that has no duration, and so only one map.
func (e *ednHistory) point(m ednMap, client uint32, kind Kind, at int64) {
	if i, ok := e.begin(m, client, kind, at); ok {
		e.returned(m, &e.h.Calls[i], at, true)
	}
}

// begin adds a call that was invoked, and returns its index.
func (e *ednHistory) begin(m ednMap, client uint32, kind Kind, at int64) (int, bool) {
	key, err := e.key(m)
	if err != nil {
		e.note(client, "%v", err)
		return 0, false
	}
	cl := e.clients[client]
	if cl == nil {
		cl = &ednClient{seen: map[uint32]bool{}}
		e.clients[client] = cl
	}
	w := e.owners.of(client)
	c := Call{Client: client, Seq: w.next, Kind: kind, Key: key, Invoke: at, Intended: at}
	if n, ok := m[":seq"].(int64); ok && n >= 0 && n <= int64(^uint32(0)) {
		c.Seq = uint32(n)
	}
	if n, ok := m[":intended"].(int64); ok {
		c.Intended = n
	}
	c.Fence, c.Arg = ednUint(m, ":fence"), ednUint(m, ":arg")
	if c.Flags, err = ednFlags(m); err == nil {
		given, _ := m[":attempt"].(string)
		err = e.owners.begin(&c, []byte(given))
	}
	if err == nil && cl.seen[c.Seq] {
		err = fmt.Errorf("call %d of client %d comes again", c.Seq, client)
	}
	if err != nil {
		e.note(client, "%v", err)
		return 0, false
	}
	if at < cl.last {
		e.note(client, "the time goes back from %d to %d", cl.last, at)
	}
	cl.last = at
	cl.seen[c.Seq] = true
	w.next = c.Seq + 1
	e.h.Calls = append(e.h.Calls, c)
	return len(e.h.Calls) - 1, true
}

func (e *ednHistory) complete(m ednMap, process int64, client uint32, kind Kind, at int64) {
	o, ok := e.open[process]
	if !ok || e.h.Calls[o.index].Kind != kind {
		e.note(client, "a %v of process %d ends that never began", kind, process)
		return
	}
	delete(e.open, process)
	c := &e.h.Calls[o.index]
	cl := e.clients[c.Client]
	cl.last = max(cl.last, at)
	e.returned(m, c, at, o.bare)
}

// returned fills in the outcome of a call. With bare, a number in its completion
// is no echo of its invoke's.
func (e *ednHistory) returned(m ednMap, c *Call, at int64, bare bool) {
	c.Outcome = ednOutcome(m, c.Kind)
	defer e.owners.end(c)
	if c.Outcome == Open {
		return // it says itself that its return was never seen
	}
	if m[":returned"] != false {
		c.Return = at
	}
	if f := ednUint(m, ":fence"); f != 0 {
		c.Fence = f
	} else if n, ok := ednToken(m).(int64); ok && n > 0 && bare && c.Outcome == Held {
		c.Fence = uint64(n)
	}
	if n, ok := m[":lease-end"].(int64); ok {
		c.LeaseEnd = n
	}
	c.Value = ednUint(m, ":seen")
	switch {
	case !fits(c.Kind, c.Outcome):
		e.note(c.Client, "outcome %v of a %v", c.Outcome, c.Kind)
	case at < c.Invoke:
		e.note(c.Client, "a %v returns at %d, before its invoke at %d", c.Kind, c.Return, c.Invoke)
	default:
		return
	}
	c.Outcome, c.Return = Unknown, 0
}

// aside reads an operation of no client: the notes of our own export; what a
// nemesis did is none of a lock's calls.
func (e *ednHistory) aside(m ednMap) {
	f, _ := m[":f"].(ednWord)
	if kind := ednKinds[f]; kind.isPoint() {
		e.aPoint(m, kind)
		return
	}
	v, _ := m[":value"].(ednMap)
	client, ok := ednUint32(v, ":client", -1)
	switch f {
	case ednWord(":stream"):
		s := Stream{Client: client, ClockUncertainty: int64(ednUint(v, ":clock-uncertainty")), SealedAt: int64(ednUint(v, ":sealed-at"))}
		s.Worker, _ = ednUint32(v, ":worker", 0)
		s.Sealed, s.Unnumbered = v[":sealed"] == true, v[":unnumbered"] == true
		var err error
		if s.ClockUncertainty, err = uncertainty(s.ClockUncertainty); err != nil {
			e.note(client, "%v", err)
		}
		if _, again := e.streams[client]; again || !ok {
			e.note(client, "a stream of no client, or a second one")
			return
		}
		e.streams[client] = s
	case ednWord(":damage"):
		file, _ := v[":file"].(string)
		what, _ := v[":what"].(string)
		e.h.Damage = append(e.h.Damage, Damage{File: file, Offset: int64(ednUint(v, ":offset")), Client: client, What: what})
	case ednWord(":end"):
		e.total = int64(ednUint(v, ":calls"))
	}
}

// aPoint reads a point that is not a process's own, so that other readers of
// such files pass it by: it names its client.
func (e *ednHistory) aPoint(m ednMap, kind Kind) {
	client, ok := ednUint32(m, ":client", -1)
	at, err := e.time(m)
	if !ok || err != nil {
		e.note(NoClient, "a %v without its client and time", kind)
		return
	}
	e.point(m, client, kind, at)
}

// key is the number of an operation's key.
func (e *ednHistory) key(m ednMap) (uint32, error) {
	switch k := ednKey(m).(type) {
	case nil:
		return 0, nil
	case int64:
		return e.keys.number(k)
	case string:
		return e.keys.name([]byte(k))
	default:
		return 0, e.keys.wrong(fmt.Sprint(k))
	}
}

// finish puts the history in order and reports missing calls.
func (e *ednHistory) finish() {
	h := e.h
	declared := len(e.streams) > 0
	if declared && e.total < 0 {
		e.note(NoClient, "the file is cut short: its end is missing")
	}
	if e.total >= 0 && e.total != int64(len(h.Calls)) {
		e.note(NoClient, "%d calls were read, the file should have %d", len(h.Calls), e.total)
	}
	first := int64(1)
	for i := range h.Calls {
		c := &h.Calls[i]
		first = min(first, c.Invoke)
		s, ok := e.streams[c.Client]
		if !ok {
			s.Client, s.Worker = c.Client, c.Client
			if declared {
				e.note(c.Client, "a call of a client without a stream")
			}
		}
		s.Records++
		e.streams[c.Client] = s
	}
	if first < 1 {
		e.shift(1 - first) // Jepsen's stamps begin at 0, or before
	}
	for _, s := range e.streams {
		h.Streams = append(h.Streams, s)
	}
	e.rest()
	h.Keys = e.keys.byNumber()
	h.sort()
	h.order(e.name)
}

// shift moves every stamp.
func (e *ednHistory) shift(by int64) {
	for i := range e.h.Calls {
		c := &e.h.Calls[i]
		c.Invoke += by
		c.Intended += by
		if c.Return != 0 || c.Outcome != Open && c.Outcome != Unknown {
			c.Return += by
		}
		if c.LeaseEnd != 0 {
			c.LeaseEnd += by
		}
	}
}
