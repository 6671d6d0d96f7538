package measure

import (
	"fmt"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/internal/printable"
	"github.com/lockbench/lockbench/internal/scenario"
)

// orphan is the class of its witnesses: no checker's, for a history does not show
// what is on the servers.
const orphan = "orphan"

// orphans counts the keys that were left taken without a holder, or on some server
// by an attempt that was over. None where not every key was looked at is no answer.
func (d *derivation) orphans() {
	p := d.samples.Probe
	if p == nil {
		d.unmeasured("orphans", "the orphan probe did not run")
		return
	}
	keys := map[uint32]bool{}
	for _, l := range p.Left {
		a, err := history.ParseAttempt(l.Attempt)
		calls := d.totals.left[a]
		end := d.ending(calls)
		if err != nil || end == nil || d.unanswered(calls, end) {
			continue
		}
		keys[l.Key] = true
		w := d.leftover(l, calls, end)
		d.result.Safety.Witnesses = append(d.result.Safety.Witnesses, w)
		d.warning("%s", w.Sentence)
	}
	for _, o := range p.Orphans {
		keys[o.Key] = true
		d.warning("%s was left taken without a holder: a client that requested it after all others had left did not acquire it within %s (%s)", d.key(o.Key), length(o.WaitedNS), o.Why)
	}
	partly := "" // not every key was looked at
	if asked := len(p.Orphans) + p.Free; asked < p.Keys {
		partly = fmt.Sprintf("of %d keys that were to be probed for orphans %d were", p.Keys, asked)
		d.warning("%s", partly)
	}
	if p.Listed != nil && *p.Listed < p.Keys {
		partly = fmt.Sprintf("of %d keys that were to be read on all servers for what attempts left, %d were", p.Keys, *p.Listed)
		d.warning("%s", partly)
	}
	if len(keys) == 0 && partly != "" {
		d.unmeasured("orphans", "%s", partly)
		return
	}
	how := "each key was requested after the load, and all servers were read for what attempts had left"
	switch {
	case partly != "":
		how = partly
	case p.Listed == nil:
		how = "each key was requested after the load; what attempts left on the servers was not read, as the recipe cannot list it"
	}
	d.result.Safety.Orphans, d.result.Safety.Why["orphans"] = ptr(int64(len(keys))), how
}

// ending is the call after which an attempt certainly has nothing on any server; nil
// if no call shows that. A late request of an acquire whose outcome is unknown may
// take effect after a clean-up that found nothing.
func (d *derivation) ending(calls []history.Call) *history.Call {
	var end *history.Call
	late := false
	for i := range calls {
		c := &calls[i]
		switch {
		case c.Outcome == history.Released, c.Outcome == history.Lost && !late:
			end = c
		case asks(c):
			end, late = nil, c.Outcome == history.Unknown || c.Outcome == history.Open
			if c.Outcome == history.Busy || c.Outcome == history.Failed {
				end = c
			}
		}
	}
	return end
}

// unanswered reports whether a server that did not answer the attempt may lawfully
// keep what the attempt had there.
func (d *derivation) unanswered(calls []history.Call, end *history.Call) bool {
	if d.info.AnswerLimit == nil {
		return false
	}
	for _, w := range d.windows {
		if !w.kills && w.from <= end.Return && calls[0].Invoke <= w.to {
			return true
		}
	}
	return end.Return-end.Invoke >= int64(d.info.AnswerLimit(d.scenario.TTL.D()))
}

// leftover is the witness of what an attempt that was over had on a server.
func (d *derivation) leftover(l scenario.Left, calls []history.Call, end *history.Call) scenario.Witness {
	where := "the servers"
	if l.Server != "" {
		where = printable.Name(l.Server)
	}
	w := scenario.Witness{Class: orphan, Key: l.Key, KeyName: printable.Name(d.history.Keys[l.Key]), Calls: []scenario.WitnessCall{},
		Sentence: fmt.Sprintf("after the load %s still had %s for an attempt of %s that was over: its %s at %s returned %s",
			where, d.key(l.Key), d.client(end.Client), end.Kind, d.when(end.Invoke), end.Outcome)}
	for _, c := range calls {
		if asks(&c) || c == *end {
			w.Calls = append(w.Calls, d.witnessCall(c))
		}
	}
	return w
}

// leftAttempts are those of which the probe found something on a server.
func (d *derivation) leftAttempts() map[history.Attempt][]history.Call {
	list := map[history.Attempt][]history.Call{}
	if p := d.samples.Probe; p != nil {
		for _, l := range p.Left {
			if a, err := history.ParseAttempt(l.Attempt); err == nil {
				list[a] = nil
			}
		}
	}
	return list
}
