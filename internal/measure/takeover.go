package measure

import (
	"cmp"
	"slices"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// bequest is a key that a dead client may have left taken.
type bequest struct {
	key  uint32
	died int64
	sent int64 // when its last confirmed acquire or renewal was sent
}

// takeover derives when the keys of killed clients were granted again.
func (d *derivation) takeover() {
	r := &d.result
	if len(d.dead) == 0 {
		d.unmeasured("takeover", "no client was killed")
		return
	}
	bequests := d.bequests()
	if len(bequests) == 0 {
		d.unmeasured("takeover", "no client held a lock, or was about to, when it was killed")
		return
	}
	t := &scenario.TakeoverTimes{}
	if d.info.Takeover != nil {
		t.BoundNS = int64(d.info.Takeover(d.scenario.TTL.D()) + d.scenario.LockDelay.D())
	}
	noLifetime := ""
	switch d.info.Bound {
	case impls.BoundSession:
		noLifetime = "the lock is kept alive beside the calls, so they do not show when it was confirmed last"
	case impls.BoundConnection:
		noLifetime = "the lock is its connection's, and has no lease"
	}
	var fromDeath, lifetime series
	for _, b := range bequests {
		at := d.successor(b)
		if at == 0 {
			// A key that no client requested again gives no figure.
			if waited := d.lastAsked[b.key] - b.died; waited > 0 {
				t.Holds++
				t.UnansweredNS = max(t.UnansweredNS, waited)
			}
			continue
		}
		t.Holds++
		t.Granted++
		one := scenario.OneTakeover{Key: b.key, FromDeathNS: at - b.died}
		fromDeath.add(0, one.FromDeathNS)
		if noLifetime == "" {
			one.LifetimeNS = at - b.sent
			lifetime.add(0, one.LifetimeNS)
		}
		t.Each = append(t.Each, one)
	}
	if t.Holds == 0 {
		d.unmeasured("takeover", "no client requested the keys of the killed clients")
		return
	}
	t.FromDeath, t.Lifetime = summary(&fromDeath), summary(&lifetime)
	if t.FromDeath == nil {
		d.unmeasured("from_death_ns", "no key of a dead client was granted to another before the end")
	}
	if t.Lifetime == nil {
		d.unmeasured("lifetime_ns", "%s", cmp.Or(noLifetime, "no key of a dead client was granted to another before the end"))
	}
	r.Takeover = t
}

// bequests lists the holds of killed clients, and the acquires in which they
// died while no other client held the key, in the order of the deaths. It leaves
// out holds that had passed to another client by then, and the places of clients
// that were killed as waiters: nothing shows that they had the lock.
func (d *derivation) bequests() []bequest {
	var list []bequest
	confirmed := map[history.Attempt]int64{} // when the last renewal was sent
	calls := d.history.Calls
	for i := range calls {
		if c := &calls[i]; c.Kind == history.KindExtend && c.Outcome == history.Extended {
			confirmed[c.Attempt] = max(confirmed[c.Attempt], c.Invoke)
		}
	}
	for _, h := range d.holds {
		died, dead := d.dead[h.Client]
		if !dead || h.Ended != checker.StreamEnd || d.grantedBetween(h.Key, h.Client, h.Start, died) {
			continue
		}
		list = append(list, bequest{key: h.Key, died: died, sent: max(h.Asked, confirmed[h.Attempt])})
	}
	for i := range calls {
		c := &calls[i]
		if died, dead := d.dead[c.Client]; dead && asks(c) && c.Outcome == history.Open && !d.waited(c.Client) && !d.heldAt(c.Key, died) {
			list = append(list, bequest{key: c.Key, died: died, sent: c.Invoke})
		}
	}
	slices.SortStableFunc(list, func(a, b bequest) int { return cmp.Or(cmp.Compare(a.died, b.died), cmp.Compare(a.key, b.key)) })
	return list
}

// waited reports whether a client was killed since it waited, or did nothing.
func (d *derivation) waited(client uint32) bool {
	return slices.ContainsFunc(d.faults, func(f fault) bool {
		return f.kills() && f.aimed && f.client == client && (f.what.Target == scenario.TargetWaiter || f.what.Target == scenario.TargetNonholder)
	})
}

// grantedBetween reports whether another client was granted key between two
// stamps.
func (d *derivation) grantedBetween(key, client uint32, from, to int64) bool {
	return slices.ContainsFunc(d.holds, func(h checker.Hold) bool {
		return h.Key == key && h.Client != client && h.Start > from && h.Start <= to
	})
}

// heldAt reports whether any client held key at a stamp. Those that died then
// held it, by the last that is known of them.
func (d *derivation) heldAt(key uint32, stamp int64) bool {
	return slices.ContainsFunc(d.holds, func(h checker.Hold) bool {
		if h.Key != key || h.Start > stamp {
			return false
		}
		_, dead := d.dead[h.Client]
		return h.End > stamp || dead && h.Ended == checker.StreamEnd
	})
}

// successor is the stamp of the first grant of a bequest's key to a living
// client after the death, or 0.
func (d *derivation) successor(b bequest) int64 {
	var first int64
	for _, h := range d.holds {
		if _, dead := d.dead[h.Client]; !dead && h.Key == b.key && h.Start > b.died && (first == 0 || h.Start < first) {
			first = h.Start
		}
	}
	return first
}
