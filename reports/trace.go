package reports

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/printable"
	"github.com/lockbench/lockbench/internal/scenario"
)

// traceEvent is an event of the Trace Event Format, which Perfetto, speedscope and
// Chrome read. Times are microseconds.
type traceEvent struct {
	Name     string         `json:"name"`
	Category string         `json:"cat,omitempty"`
	Phase    string         `json:"ph"` // X: a span, i: a moment, M: a name
	At       float64        `json:"ts"`
	Length   *float64       `json:"dur,omitempty"`
	Process  int            `json:"pid"`
	Thread   int            `json:"tid"`
	Scope    string         `json:"s,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
}

// The trace has two groups of lanes.
const (
	traceFaults  = 1
	traceClients = 2
)

// WriteTrace writes a history and the faults injected during it as Trace Event JSON: a
// lane for each client with its waits, its holds and the calls within, and lanes of the
// faults. Time 0 is the first stamp.
func WriteTrace(w io.Writer, k *history.Keyed, faults []scenario.FaultEvent) error {
	t := trace{clients: k.History.Clients, keys: k.History.Keys, holds: map[heldKey][]*traceSpan{}}
	if err := k.Each(t.add); err != nil {
		return fmt.Errorf("export a trace: %w", err)
	}
	for _, list := range t.holds {
		for _, s := range list {
			s.open, s.args["end"] = true, "no release"
		}
	}
	t.faults(faults)
	return t.write(w)
}

type heldKey struct {
	attempt history.Attempt
	key     uint32
}

// traceSpan is an event of a lane; a moment has no length.
type traceSpan struct {
	group        int
	lane         string
	order        uint32 // of the lane in its group
	name, about  string
	start, end   int64
	moment, open bool // open: until the end of the history
	args         map[string]any
}

type trace struct {
	clients, keys map[uint32]string
	spans         []*traceSpan
	holds         map[heldKey][]*traceSpan // without a release yet
	last          int64
}

func (t *trace) add(c *history.Call) {
	t.last = max(t.last, c.Invoke, c.Return)
	id := heldKey{c.Attempt, c.Key}
	args := map[string]any{"key": t.key(c.Key), "outcome": c.Outcome.String(), "attempt": c.Attempt.String()}
	if c.Fence != 0 {
		args["token"] = c.Fence
	}
	s := &traceSpan{
		group: traceClients, lane: t.client(c.Client), order: c.Client, name: c.Kind.String() + " " + t.key(c.Key), about: c.Kind.String(),
		start: c.Invoke, end: c.Return, open: c.Return == 0, args: args,
	}
	switch c.Kind {
	case history.KindFinal, history.KindAlso, history.KindEnqueued:
		return
	case history.KindAcquire:
		s.name, s.about = "wait "+t.key(c.Key), "wait"
	case history.KindLost, history.KindExtend: // a renewal in the background may overlap with anything
		s.moment = true
	case history.KindRelease, history.KindCleanup:
		if list := t.holds[id]; len(list) > 0 && c.Outcome != history.Failed {
			h := list[len(list)-1]
			h.end, h.open = c.Return, c.Return == 0
			if t.holds[id] = list[:len(list)-1]; len(list) == 1 {
				delete(t.holds, id)
			}
		}
	}
	t.spans = append(t.spans, s)
	if c.Outcome == history.Held {
		h := *s
		h.name, h.about, h.start, h.args = "hold "+t.key(c.Key), "hold", c.Return, map[string]any{"key": t.key(c.Key), "attempt": c.Attempt.String()}
		if c.Fence != 0 {
			h.args["token"] = c.Fence
		}
		t.spans = append(t.spans, &h)
		t.holds[id] = append(t.holds[id], &h)
	}
}

func (t *trace) client(c uint32) string { return named(t.clients, c, "client") }
func (t *trace) key(k uint32) string    { return named(t.keys, k, "key") }

func named(names map[uint32]string, n uint32, what string) string {
	if name, ok := names[n]; ok {
		return printable.Name(name)
	}
	return fmt.Sprintf("%s %d", what, n)
}

// faults adds a span for each injected fault; one that was never healed, as a kill,
// is a moment.
func (t *trace) faults(events []scenario.FaultEvent) {
	begun := map[string]*traceSpan{}
	for _, e := range events {
		t.last = max(t.last, e.AtNS)
		switch e.Event {
		case "injected":
			s := &traceSpan{group: traceFaults, lane: "faults", name: printable.Name(e.Fault), about: "fault", start: e.AtNS, end: e.AtNS, moment: true, args: map[string]any{"id": e.ID}}
			if e.Client != nil {
				s.args["client"] = t.client(*e.Client)
			}
			begun[e.ID] = s
			t.spans = append(t.spans, s)
		case "healed":
			if s := begun[e.ID]; s != nil {
				s.end, s.moment = e.AtNS, false
			}
		}
	}
}

// write gives each span a lane in which it nests: a client that holds several keys at
// once, and faults at the same time, take several.
func (t *trace) write(w io.Writer) error {
	slices.SortStableFunc(t.spans, func(a, b *traceSpan) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.order, b.order), cmp.Compare(a.start, b.start), cmp.Compare(t.ends(b), t.ends(a)))
	})
	first := t.last
	for _, s := range t.spans {
		first = min(first, s.start)
	}
	micros := func(ns int64) float64 { return float64(ns) / 1e3 }
	b := bufio.NewWriter(w)
	separator := `{"displayTimeUnit":"ms","traceEvents":[`
	var failed error
	put := func(e traceEvent) {
		line, err := json.Marshal(e)
		_, writing := b.WriteString(separator + "\n" + string(line))
		separator, failed = ",", errors.Join(failed, err, writing)
	}
	name := func(what, text string, process, thread int) {
		put(traceEvent{Name: what, Phase: "M", Process: process, Thread: thread, Args: map[string]any{"name": text}})
	}
	name("process_name", "faults", traceFaults, 0)
	name("process_name", "clients", traceClients, 0)
	thread, current := 0, ""
	var lanes [][]int64 // of the current client: the ends of the spans that are open there
	for _, s := range t.spans {
		if id := fmt.Sprint(s.group, s.lane); id != current {
			thread, current, lanes = thread+len(lanes), id, nil
		}
		over := func(end int64) bool { return end <= s.start }
		lane := slices.IndexFunc(lanes, func(ends []int64) bool {
			left := slices.DeleteFunc(slices.Clone(ends), over)
			return s.moment || len(left) == 0 || t.ends(s) <= left[len(left)-1] // the innermost is the last
		})
		if lane < 0 {
			lane = len(lanes)
			lanes = append(lanes, nil)
			title := s.lane
			if lane > 0 {
				title = fmt.Sprintf("%s, %d", s.lane, lane+1)
			}
			name("thread_name", title, s.group, thread+lane)
		}
		e := traceEvent{Name: s.name, Category: s.about, At: micros(s.start - first), Process: s.group, Thread: thread + lane, Args: s.args}
		if s.moment {
			e.Phase, e.Scope = "i", "t"
		} else {
			lanes[lane] = append(slices.DeleteFunc(lanes[lane], over), t.ends(s))
			length := micros(t.ends(s) - s.start)
			e.Phase, e.Length = "X", &length
		}
		put(e)
	}
	_, err := b.WriteString("\n]}\n")
	if err = errors.Join(failed, err, b.Flush()); err != nil {
		return fmt.Errorf("export a trace: %w", err)
	}
	return nil
}

// ends is the end of a span.
func (t *trace) ends(s *traceSpan) int64 {
	if s.open {
		return t.last
	}
	return s.end
}
