package history

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// WriteEDN writes h as Jepsen writes histories, one map of an operation a line,
// so that Jepsen's checkers can read it; entries that they do not know carry
// the rest, so that ReadEDN reads the same history back. The package's
// documentation describes them.
func WriteEDN(w io.Writer, h *History) error { return writeEDN(w, h, h.each) }

// WriteEDN writes the history as EDN.
func (k *Keyed) WriteEDN(w io.Writer) error { return writeEDN(w, &k.History, k.Each) }

// writeEDN writes a history, whose calls each visits by their invokes.
func writeEDN(w io.Writer, h *History, each func(func(*Call)) error) error {
	e := ednWriter{out: bufio.NewWriterSize(w, 64<<10), processes: map[uint32]int64{}}
	for _, s := range h.Streams {
		if s.Client != Controller {
			e.clients = max(e.clients, int64(s.Client)+1)
		}
	}
	for _, s := range h.Streams {
		unnumbered := ""
		if s.Unnumbered {
			unnumbered = ", :unnumbered true"
		}
		e.aside("stream", `{:client %d, :worker %d, :sealed %t, :sealed-at %d, :clock-uncertainty %d%s}`, s.Client, s.Worker, s.Sealed, s.SealedAt, s.ClockUncertainty, unnumbered)
	}
	for _, d := range h.Damage {
		e.aside("damage", `{:file %s, :offset %d, :client %d, :what %s}`, ednQuote(d.File), d.Offset, d.Client, ednQuote(d.What))
	}
	calls := 0
	err := each(func(c *Call) {
		calls++
		e.returns(c.Invoke)
		e.call(c)
	})
	e.returns(math.MaxInt64)
	e.aside("end", `{:streams %d, :calls %d}`, len(h.Streams), calls)
	if err := errors.Join(err, e.out.Flush()); err != nil {
		return fmt.Errorf("history: write EDN: %w", err)
	}
	return nil
}

type ednWriter struct {
	out       *bufio.Writer
	index     int
	clients   int64
	processes map[uint32]int64 // of the clients
	open      []ednReturn      // returns to be written, in their order
}

// ednReturn is the end of a call.
type ednReturn struct {
	at      int64
	process int64
	call    Call
}

// call writes the invoke of a call. A process never comes back after a call whose
// outcome is not known: the client goes on as another, as Jepsen's do.
func (e *ednWriter) call(c *Call) {
	p, ok := e.processes[c.Client]
	if !ok {
		p = int64(c.Client)
	}
	e.event(c, c.Invoke, p, false)
	if !oneMoment(c) {
		if c.Return != 0 || c.Outcome == Unknown {
			at := max(c.Return, c.Invoke)
			i, _ := slices.BinarySearchFunc(e.open, at+1, func(r ednReturn, at int64) int { return cmp.Compare(r.at, at) })
			e.open = slices.Insert(e.open, i, ednReturn{at, p, *c})
		}
		if c.Outcome == Open || c.Outcome == Unknown {
			p += e.clients
		}
	}
	e.processes[c.Client] = p
}

// returns writes the returns up to a stamp.
func (e *ednWriter) returns(until int64) {
	n := 0
	for ; n < len(e.open) && e.open[n].at <= until; n++ {
		e.event(&e.open[n].call, e.open[n].at, e.open[n].process, true)
	}
	e.open = slices.Delete(e.open, 0, n)
}

// oneMoment reports whether c is all in one moment, and so one map.
func oneMoment(c *Call) bool { return c.Kind.isPoint() && c.Return == c.Invoke }

func (e *ednWriter) aside(f, value string, args ...any) {
	fmt.Fprintf(e.out, "{:index %d, :time 0, :process :lockbench, :type :info, :f :%s, :value %s}\n", e.index, f, fmt.Sprintf(value, args...))
	e.index++
}

// event writes one end of a call, or all of it if it is one moment.
func (e *ednWriter) event(c *Call, at, number int64, end bool) {
	process, typ := fmt.Sprint(number), "invoke"
	switch {
	case oneMoment(c):
		process, typ = ":lockbench", "info"
	case end:
		typ = ednType(c.Outcome)
	}
	fmt.Fprintf(e.out, "{:index %d, :time %d, :process %s, :type :%s, :f :%s, :value nil, :key %d, :client %d", e.index, at, process, typ, c.Kind, c.Key, c.Client)
	e.index++
	if !end {
		fmt.Fprintf(e.out, ", :seq %d", c.Seq)
		e.entry("attempt", c.Attempt.String(), !c.Attempt.IsZero())
		if c.Intended != c.Invoke {
			fmt.Fprintf(e.out, ", :intended %d", c.Intended)
		}
		e.flags(c.Flags)
		e.uint("arg", c.Arg)
		e.uint("fence", c.Fence)
	}
	if end || oneMoment(c) {
		fmt.Fprintf(e.out, ", :outcome :%s", c.Outcome)
		if end && c.Outcome == Unknown && c.Return == 0 {
			e.out.WriteString(", :returned false")
		}
		if c.LeaseEnd != 0 {
			fmt.Fprintf(e.out, ", :lease-end %d", c.LeaseEnd)
		}
		e.uint("seen", c.Value)
		if end {
			e.uint("fence", c.Fence)
		}
	}
	e.out.WriteString("}\n")
}

// ednType is the type of a completion: only what certainly had no effect is a
// failure.
func ednType(o Outcome) string {
	switch o {
	case Held, Released, Extended, Accepted:
		return "ok"
	case Busy, Failed, Rejected, Lost:
		return "fail"
	}
	return "info"
}

func (e *ednWriter) entry(name, text string, there bool) {
	if there {
		fmt.Fprintf(e.out, ", :%s %s", name, ednQuote(text))
	}
}

// uint writes a number of 64 bits, as text where EDN's whole numbers end.
func (e *ednWriter) uint(name string, n uint64) {
	switch {
	case n == 0:
	case n > math.MaxInt64:
		e.entry(name, fmt.Sprint(n), true)
	default:
		fmt.Fprintf(e.out, ", :%s %d", name, n)
	}
}

func (e *ednWriter) flags(f Flags) {
	if f == 0 {
		return
	}
	var words []string
	for i, name := range flagNames {
		if f&(1<<i) != 0 {
			words = append(words, ":"+name)
		}
	}
	fmt.Fprintf(e.out, ", :flags [%s]", strings.Join(words, " "))
}

// ednQuote writes a text as EDN reads it.
func ednQuote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(s) + `"`
}
