package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// foreignLine is a line of a file that another program wrote. It need not say
// what it is, number its calls, or name attempts; its clients and keys may have
// names, and its stamps may be dates.
type foreignLine struct {
	jsonFirst
	Stream *Stream  `json:"stream"`
	Damage *Damage  `json:"damage"`
	End    *jsonEnd `json:"end"`

	Client   any      `json:"client"`
	Seq      *uint32  `json:"seq"`
	Kind     string   `json:"kind"`
	Outcome  string   `json:"outcome"`
	Flags    []string `json:"flags"`
	Key      any      `json:"key"`
	Attempt  string   `json:"attempt"`
	Intended any      `json:"intended"`
	Invoke   any      `json:"invoke"`
	Return   any      `json:"return"`
	Fence    uint64   `json:"fence"`
	LeaseEnd any      `json:"lease_end"`
	Arg      uint64   `json:"arg"`
	Value    uint64   `json:"value"`
}

// foreigners is what a reader must remember to make ours of their calls.
type foreigners struct {
	clients, keys numbering
	owners        owners
	next          map[uint32]uint32 // sequence number of each client's next call
}

// decode understands a line of another program as one of ours.
func (f *foreigners) decode(line []byte) (jsonLine, error) {
	var l foreignLine
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	dec.UseNumber()
	if err := dec.Decode(&l); err != nil {
		return jsonLine{}, fmt.Errorf("cannot be understood: %w", err)
	}
	if dec.More() {
		return jsonLine{}, errors.New("holds more than one object")
	}
	out := jsonLine{jsonFirst: l.jsonFirst, Stream: l.Stream, Damage: l.Damage, End: l.End}
	if l.Kind == "" && l.Client == nil && l.Seq == nil {
		return out, nil
	}
	c, err := f.call(&l)
	out.jsonCall = c
	return out, err
}

func (f *foreigners) call(l *foreignLine) (jsonCall, error) {
	c := jsonCall{Kind: l.Kind, Outcome: l.Outcome, Flags: l.Flags, Fence: l.Fence, Arg: l.Arg, Value: l.Value}
	switch l.Kind {
	case "lock":
		c.Kind = KindAcquire.String()
	case "try-lock":
		c.Kind = KindTry.String()
	case "unlock":
		c.Kind = KindRelease.String()
	case "renew":
		c.Kind = KindExtend.String()
	}
	if l.Client == nil {
		return c, errors.New("a call needs a client")
	}
	client, err := number(&f.clients, l.Client)
	if err != nil {
		return c, err
	}
	c.Client = &client
	if c.Key, err = number(&f.keys, l.Key); err != nil {
		return c, err
	}
	seq := f.next[client]
	if l.Seq != nil {
		seq = *l.Seq
	}
	f.next[client] = seq + 1
	c.Seq = &seq
	for _, s := range []struct {
		name string
		from any
		to   *int64
	}{{"intended", l.Intended, &c.Intended}, {"invoke", l.Invoke, &c.Invoke}, {"return", l.Return, &c.Return}, {"lease_end", l.LeaseEnd, &c.LeaseEnd}} {
		if *s.to, err = foreignStamp(s.from); err != nil {
			return c, fmt.Errorf("%s %w", s.name, err)
		}
	}
	kind, _ := kindOf(c.Kind) // an unknown one is reported when the call is read
	if c.Outcome == "ok" {
		c.Outcome = succeeded(kind).String()
	}
	a, err := f.owners.of(&Call{Client: client, Seq: seq, Kind: kind, Key: c.Key}, l.Attempt)
	if !a.IsZero() {
		c.Attempt = a.String()
	}
	return c, err
}

// number is the number of what a JSON value names.
func number(n *numbering, v any) (uint32, error) {
	if x, ok := v.(json.Number); ok {
		i, err := x.Int64()
		if err != nil {
			return 0, fmt.Errorf("%v is no %s: want a whole number, or a name", x, n.what)
		}
		return n.of(i)
	}
	return n.of(v)
}

// foreignStamp reads nanoseconds, or a date with its zone as RFC 3339 writes
// it.
func foreignStamp(v any) (int64, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
	case string:
		if t, err := time.Parse(time.RFC3339Nano, v); err == nil {
			return t.UnixNano(), nil
		}
	}
	return 0, fmt.Errorf("%v: want whole nanoseconds on one clock, or a date like 2026-01-02T15:04:05.123456789Z", v)
}
