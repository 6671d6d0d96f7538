package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

const jsonFormat = "lockbench-history"

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
var flagNames = [...]string{"warmup", "fenced", "stale", "lease-timer", "drain", "shared", "inferred"}

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
