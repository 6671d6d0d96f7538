package measure

import (
	"fmt"
	"time"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
)

// Moment tells a stamp as the time since the measured window began, finely
// enough that two stamps of one witness differ. Both are of the history's clock.
func Moment(stamp, window int64) string {
	if stamp < window {
		return fmt.Sprintf("%.3f s before the window", time.Duration(window-stamp).Seconds())
	}
	return fmt.Sprintf("%.3f s", time.Duration(stamp-window).Seconds())
}

func (d *derivation) when(stamp int64) string { return Moment(stamp, d.samples.Start) }

// length tells a time with three digits.
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

// sentence tells a witness to a person.
func (d *derivation) sentence(w checker.Witness) string {
	key := d.key(w.Key)
	call := func(i int) history.Call {
		if i < len(w.Calls) {
			return w.Calls[i]
		}
		return history.Call{}
	}
	a, b := call(0), call(1)
	last := call(len(w.Calls) - 1)
	var s string
	switch w.Class {
	case checker.Overlap:
		s = fmt.Sprintf("%s was granted %s at %s and still held it when %s was granted it at %s; both held it for %s",
			d.client(a.Client), key, d.when(a.Return), d.client(b.Client), d.when(b.Return), length(w.Length()))
	case checker.DoubleHold:
		s = fmt.Sprintf("%s was granted %s at %s and %s at %s, and the lock's own answers show that neither's hold had ended before the other's began",
			d.client(a.Client), key, d.when(a.Return), d.client(b.Client), d.when(b.Return))
	case checker.ZombieSuccess:
		if a.Attempt == b.Attempt {
			s = fmt.Sprintf("the lock confirmed a %s of %s on %s at %s, though that hold was over since the %s at %s",
				last.Kind, d.client(a.Client), key, d.when(last.Return), b.Kind, d.when(b.Return))
		} else {
			s = fmt.Sprintf("%s was granted %s at %s; %s was granted it at %s, and yet the lock later confirmed a release or renewal of %s's hold",
				d.client(a.Client), key, d.when(a.Return), d.client(b.Client), d.when(b.Return), d.client(a.Client))
		}
	case checker.EarlyExpiry:
		s = fmt.Sprintf("%s was granted %s at %s, and %s was granted it at %s, while the first lease still had time and nobody had sent a release",
			d.client(a.Client), key, d.when(a.Return), d.client(b.Client), d.when(b.Return))
	case checker.LostLock:
		s = fmt.Sprintf("%s was granted %s at %s; its %s at %s was told that the lock was lost, though neither its client nor its lease had ended the hold",
			d.client(a.Client), key, d.when(a.Return), last.Kind, d.when(last.Return))
	case checker.FalseDefinite:
		s = fmt.Sprintf("%s's %s of %s at %s was told for certain that it had not got the lock (%s), and yet its %s at %s was confirmed",
			d.client(a.Client), a.Kind, key, d.when(a.Return), a.Outcome, last.Kind, d.when(last.Return))
	case checker.UnexplainedBusy:
		s = fmt.Sprintf("%s's %s of %s at %s was refused, though nobody can have held it then", d.client(a.Client), a.Kind, key, d.when(a.Return))
	case checker.TokenRegression:
		s = fmt.Sprintf("%s was granted %s at %s with token %d, and %s at %s with token %d, which is not greater",
			d.client(a.Client), key, d.when(a.Return), a.Fence, d.client(b.Client), d.when(b.Return), b.Fence)
	case checker.MissingToken:
		s = fmt.Sprintf("%s was granted %s at %s without a fencing token", d.client(a.Client), key, d.when(a.Return))
	case checker.LostUpdate:
		s = fmt.Sprintf("the %s register of %s accepted %d writes of one more each and ended at %d, %d short",
			register(last), key, last.Arg, last.Value, w.Count)
		if len(w.Calls) == 3 {
			s += fmt.Sprintf("; %s (at %s) and %s (at %s) both wrote %d", d.client(a.Client), d.when(a.Return), d.client(b.Client), d.when(b.Return), a.Arg)
		}
	case checker.StaleWrite:
		s = fmt.Sprintf("the %s register of %s accepted %s's write at %s with token %d", register(last), key, d.client(last.Client), d.when(last.Return), last.Fence)
		if len(w.Calls) == 2 {
			s += fmt.Sprintf(", after it had seen token %d from %s", a.Fence, d.client(a.Client))
		}
	case checker.StuckKey:
		s = fmt.Sprintf("%s was free and wanted for %s from %s on", key, length(w.Length()), d.when(w.From))
		if len(w.Calls) > 0 {
			s += fmt.Sprintf("; %s had asked for it at %s", d.client(a.Client), d.when(a.Invoke))
		}
		if len(w.Calls) > 1 {
			s += "; " + d.leftTaken(w.Calls[1:])
		}
	default:
		s = fmt.Sprintf("%s on %s", w.Class, key)
	}
	return s + d.suffered(w)
}

// leftTaken tells of an attempt before a key was stuck, its acquire and perhaps
// its release, what is known of it.
func (d *derivation) leftTaken(calls []history.Call) string {
	acquire, last := calls[0], calls[len(calls)-1]
	who, asked := d.client(acquire.Client), d.when(acquire.Invoke)
	switch {
	case acquire.Outcome == history.Open:
		return fmt.Sprintf("before, %s had asked for it at %s and never had an answer", who, asked)
	case acquire.Outcome != history.Held:
		return fmt.Sprintf("before, %s had asked for it at %s, and whether it got it is not known", who, asked)
	}
	s := fmt.Sprintf("the last who had been granted it was %s at %s", who, d.when(acquire.Return))
	switch {
	case len(calls) == 1:
		return s + ", who sent no release"
	case last.Outcome == history.Released:
		return s + fmt.Sprintf(", whose release at %s was confirmed", d.when(last.Return))
	}
	return s + fmt.Sprintf(", whose release at %s was not confirmed", d.when(last.Invoke))
}

// client and key name whom a sentence is about: as the history's source does,
// else by number.
func (d *derivation) client(c uint32) string {
	if name, ok := d.history.Clients[c]; ok {
		return name
	}
	return fmt.Sprintf("client %d", c)
}

func (d *derivation) key(k uint32) string {
	if name, ok := d.history.Keys[k]; ok {
		return name
	}
	return fmt.Sprintf("k%d", k)
}

func register(c history.Call) string {
	if c.Flags&history.FlagFenced != 0 {
		return "fenced"
	}
	return "plain"
}
