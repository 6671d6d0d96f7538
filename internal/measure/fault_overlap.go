package measure

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/scenario"
)

// around lists the faults that touch a witness: those on its clients, and those
// on servers, which touch all.
func (d *derivation) around(w checker.Witness) []fault {
	if len(w.Calls) == 0 {
		return nil
	}
	from, to := w.From, w.To
	for _, c := range w.Calls {
		from, to = min(from, c.Invoke), max(to, c.Invoke, c.Return)
	}
	var list []fault
	for _, f := range d.faults {
		his := func(c history.Call) bool { return c.Client == f.client }
		if f.injected == 0 || f.injected >= to || d.over(f) <= from || f.what.OnClient() && !slices.ContainsFunc(w.Calls, his) {
			continue
		}
		list = append(list, f)
	}
	return list
}

// over is when a fault had ended: a fault that was not healed lasted until the
// end of the run, and one without a duration counts for as long as a lease.
func (d *derivation) over(f fault) int64 {
	switch {
	case f.healing != 0:
		return f.end()
	case f.what.Instant() || f.kills():
		return f.end() + int64(d.scenario.TTL)
	}
	return d.samples.End
}

// overlapping describes the faults on the clients of a witness, and on servers
// at that time.
func (d *derivation) overlapping(w checker.Witness) string {
	var b strings.Builder
	around := d.around(w)
	if len(around) == 0 {
		return d.undisturbed(w)
	}
	for _, f := range around {
		who := f.target()
		if f.what.OnClient() {
			who = d.client(f.client)
		}
		done := did(f.what)
		if !f.what.OnClient() && len(f.nodes) > 1 {
			done = strings.NewReplacer("was ", "were ", "had its clock", "had their clocks").Replace(done)
		}
		fmt.Fprintf(&b, "; %s %s", who, done)
		if f.healing != 0 {
			fmt.Fprintf(&b, " from %s to %s", d.when(f.injected), d.when(f.end()))
		} else {
			fmt.Fprintf(&b, " at %s", d.when(f.injected))
		}
	}
	return b.String()
}

// undisturbed says of a loss or a stuck key without a fault that there was none, and
// which one came last before it; "" of other violations, and where nothing is known of
// faults.
func (d *derivation) undisturbed(w checker.Witness) string {
	if !d.sampled || w.Class != checker.LostLock && w.Class != checker.StuckKey && w.Class != checker.SlowHandoff && w.Class != checker.ShutOut {
		return ""
	}
	last := int64(-1)
	var before fault
	for _, f := range d.faults {
		if f.injected != 0 && d.over(f) <= w.From && d.over(f) > last {
			last, before = d.over(f), f
		}
	}
	if last < 0 {
		return "; no fault was in force, and none had been before"
	}
	return fmt.Sprintf("; no fault was in force, the last one before was %s, over at %s", before.id, d.when(last))
}

// did describes what a fault does to its target.
func did(what scenario.FaultKind) string {
	about := what.About()
	return cmp.Or(about.Did, "was under "+about.Name)
}
