package measure

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/printable"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Moment prints a stamp as the time since the beginning of the measured window, with
// enough digits to distinguish the stamps of a witness. Both are on the history's
// clock.
func Moment(stamp, window int64) string { return moment(stamp, window, 3) }

func moment(stamp, window int64, digits int) string {
	if stamp < window {
		return fmt.Sprintf("%.*f s before the window", digits, time.Duration(window-stamp).Seconds())
	}
	return fmt.Sprintf("%.*f s", digits, time.Duration(stamp-window).Seconds())
}

// when prints a stamp, as the date that the history's source has for it, if any.
func (d *derivation) when(stamp int64) string {
	if d.history.Dates {
		return time.Unix(0, stamp).UTC().Format(time.RFC3339Nano)
	}
	return moment(stamp, d.samples.Start, max(3, d.digits))
}

// digitsOf is how many digits it takes to distinguish the answers of two calls.
func digitsOf(a, b history.Call) int {
	gap := max(a.Return-b.Return, b.Return-a.Return)
	switch {
	case gap == 0 || gap >= int64(time.Millisecond):
		return 3
	case gap >= int64(time.Microsecond):
		return 6
	}
	return 9
}

// length prints a time with three digits.
func length(ns int64) string {
	x := time.Duration(ns)
	unit := time.Duration(1)
	for _, u := range []time.Duration{10 * time.Millisecond, time.Millisecond, 10 * time.Microsecond, time.Microsecond} {
		if x.Abs() >= 100*u {
			unit = u
			break
		}
	}
	return x.Round(unit).String()
}

// sentence describes a witness.
func (d *derivation) sentence(w checker.Witness) string {
	key := d.key(w.Key)
	call := func(i int) history.Call {
		if i < len(w.Calls) {
			return w.Calls[i]
		}
		return history.Call{}
	}
	a, b := call(0), call(1)
	d.digits = 3
	if len(w.Calls) > 1 {
		d.digits = digitsOf(a, b)
	}
	last := call(len(w.Calls) - 1)
	var s string
	switch w.Class {
	case checker.Overlap:
		s = fmt.Sprintf("%s was granted %s at %s and still held it when %s was granted it at %s; both held it for %s",
			d.client(a.Client), key, d.when(a.Return), d.client(b.Client), d.when(b.Return), length(w.Length()))
	case checker.DoubleHold:
		s = fmt.Sprintf("%s was granted %s at %s and %s at %s, and by the lock's own replies neither hold had ended when the other began",
			d.client(a.Client), key, d.when(a.Return), d.client(b.Client), d.when(b.Return))
	case checker.ZombieSuccess:
		if a.Attempt == b.Attempt {
			s = fmt.Sprintf("the lock confirmed a %s by %s of %s at %s, although that hold had ended with the %s at %s",
				last.Kind, d.client(a.Client), key, d.when(last.Return), b.Kind, d.when(b.Return))
		} else {
			s = fmt.Sprintf("%s was granted %s at %s; %s was granted it at %s, but the lock later confirmed a release or renewal of %s's hold",
				d.client(a.Client), key, d.when(a.Return), d.client(b.Client), d.when(b.Return), d.client(a.Client))
		}
	case checker.EarlyExpiry:
		s = fmt.Sprintf("%s was granted %s at %s, and %s was granted it at %s, although the first lease had not expired and no release had been sent",
			d.client(a.Client), key, d.when(a.Return), d.client(b.Client), d.when(b.Return))
	case checker.LostLock:
		s = fmt.Sprintf("%s was granted %s at %s; its %s at %s returned that the lock was lost, although neither the client nor its lease had ended the hold",
			d.client(a.Client), key, d.when(a.Return), last.Kind, d.when(last.Return))
	case checker.FalseDefinite:
		s = fmt.Sprintf("%s's %s of %s at %s returned that it did not get the lock (%s), but its %s at %s was confirmed",
			d.client(a.Client), a.Kind, key, d.when(a.Return), a.Outcome, last.Kind, d.when(last.Return))
	case checker.UnexplainedBusy:
		s = fmt.Sprintf("%s's %s of %s at %s returned busy, although no client can have held the lock then", d.client(a.Client), a.Kind, key, d.when(a.Return))
	case checker.TokenRegression:
		s = fmt.Sprintf("%s was granted %s at %s with token %d, and %s at %s with token %d, which is not greater",
			d.client(a.Client), key, d.when(a.Return), a.Fence, d.client(b.Client), d.when(b.Return), b.Fence)
	case checker.LateGrant:
		s = fmt.Sprintf("%s's %s of %s returned held at %s, although its lease had ended at %s", d.client(a.Client), a.Kind, key, d.when(a.Return), d.when(a.LeaseEnd))
	case checker.LateAnswer:
		s = fmt.Sprintf("%s's %s of %s at %s had a limit of %s and returned %s after %s", d.client(a.Client), a.Kind, key, d.when(a.Invoke),
			length(int64(d.scenario.Workload.AcquireLimit)), a.Outcome, length(a.Return-a.Invoke))
	case checker.MissingToken:
		s = fmt.Sprintf("%s was granted %s at %s without a fencing token", d.client(a.Client), key, d.when(a.Return))
	case checker.LostUpdate:
		s = fmt.Sprintf("the %s counter of %s accepted %d increments and ended at %d: %d are lost",
			counter(last), key, last.Arg, last.Value, w.Count)
		if len(w.Calls) == 3 {
			s += fmt.Sprintf("; %s (at %s) and %s (at %s) both wrote %d", d.client(a.Client), d.when(a.Return), d.client(b.Client), d.when(b.Return), a.Arg)
		}
	case checker.StaleWrite:
		s = fmt.Sprintf("the %s counter of %s accepted %s's write at %s with token %d", counter(last), key, d.client(last.Client), d.when(last.Return), last.Fence)
		if len(w.Calls) == 2 {
			s += fmt.Sprintf(" after token %d from %s", a.Fence, d.client(a.Client))
		}
	case checker.StuckKey, checker.SlowHandoff:
		s = fmt.Sprintf("%s was free for %s from %s on while clients waited for it", key, length(w.Length()), d.when(w.From))
		if w.Count > 0 {
			s += fmt.Sprintf(", %s of that a liveness exception for faults", length(w.Count))
		}
		if len(w.Calls) > 0 {
			s += fmt.Sprintf("; %s waited from %s on", d.client(a.Client), d.when(a.Invoke))
		}
		if len(w.Calls) > 1 {
			s += "; " + d.leftTaken(w.Calls[1:])
		}
	case checker.ShutOut:
		s = fmt.Sprintf("%s asked for %s from %s to %s and was not granted it, while others were", d.client(a.Client), key, d.when(w.From), d.when(w.To))
		if w.Count > 1 {
			s += fmt.Sprintf("; %d acquires in a row failed", w.Count)
		}
	default:
		s = fmt.Sprintf("%s on %s", w.Class, key)
	}
	return s + d.said(w) + d.inexact(w) + d.overlapping(w)
}

// exactEnough is a clock's uncertainty too small for the digits of a sentence.
const exactEnough = 100 * time.Microsecond

// inexact says how far off the stamps of a witness may be, as a history of several
// hosts has it. The checker has allowed for it.
func (d *derivation) inexact(w checker.Witness) string {
	var most int64
	for _, s := range d.history.Streams {
		if slices.ContainsFunc(w.Calls, func(c history.Call) bool { return c.Client == s.Client }) {
			most = max(most, s.ClockUncertainty)
		}
	}
	if most < int64(exactEnough) {
		return ""
	}
	return fmt.Sprintf("; by their uncertainty the clocks may be off by %s, which is allowed for", length(most))
}

// mostSaid bounds how many errors a sentence quotes.
const mostSaid = 3

// said quotes what the library said of the calls of a witness that failed, or whose
// outcome is unknown. Of errors that alternated it cannot say which was whose.
func (d *derivation) said(w checker.Witness) string {
	var texts []string
	others := false // errors that it does not quote
	for _, c := range w.Calls {
		if c.Outcome != history.Failed && c.Outcome != history.Unknown {
			continue
		}
		for _, e := range d.errorsAt(c) {
			text := fmt.Sprintf("%s's %s: %s", d.client(c.Client), c.Kind, printable.Line(e.Text))
			if e.Count > 1 {
				text += fmt.Sprintf(" (%d times)", e.Count)
			}
			switch {
			case slices.Contains(texts, text):
			case e.Text == "" || len(texts) == mostSaid:
				others = true
			default:
				texts = append(texts, text)
			}
		}
	}
	if len(texts) == 0 {
		return ""
	}
	s := "; the error of " + strings.Join(texts, ", or of ")
	if others {
		s += ", or one of others"
	}
	return s
}

// errorsAt are the errors that a call may have returned.
func (d *derivation) errorsAt(c history.Call) (list []scenario.CallError) {
	for _, w := range d.samples.Workers {
		for _, e := range w.Errors {
			if e.Client == c.Client && e.Kind == c.Kind.String() && e.First <= c.Return && c.Return <= e.Last {
				list = append(list, e)
			}
		}
	}
	return list
}

// leftTaken describes the attempt before a key was stuck: its acquire and perhaps
// its release.
func (d *derivation) leftTaken(calls []history.Call) string {
	acquire, last := calls[0], calls[len(calls)-1]
	client, asked := d.client(acquire.Client), d.when(acquire.Invoke)
	switch {
	case acquire.Outcome == history.Open:
		return fmt.Sprintf("an earlier acquire by %s at %s never got a reply", client, asked)
	case acquire.Outcome != history.Held:
		return fmt.Sprintf("the outcome of an earlier acquire by %s at %s is unknown", client, asked)
	}
	s := fmt.Sprintf("the last holder was %s, granted at %s", client, d.when(acquire.Return))
	switch {
	case len(calls) == 1:
		return s + ", and sent no release"
	case last.Outcome == history.Released:
		return s + fmt.Sprintf(", and its release at %s was confirmed", d.when(last.Return))
	}
	return s + fmt.Sprintf(", and its release at %s was not confirmed", d.when(last.Invoke))
}

// client and key return the names of the history's source, else numbers.
func (d *derivation) client(c uint32) string {
	if name, ok := d.history.Clients[c]; ok {
		return printable.Name(name)
	}
	return fmt.Sprintf("client %d", c)
}

func (d *derivation) key(k uint32) string {
	if name, ok := d.history.Keys[k]; ok {
		return printable.Name(name)
	}
	return fmt.Sprintf("k%d", k)
}

func counter(c history.Call) string {
	if c.Flags&history.FlagFenced != 0 {
		return "fenced"
	}
	return "unfenced"
}
