package measure

import (
	"fmt"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/backend/all"
)

// rest is the time that a lock needs besides its own bound after a fault took
// some of its servers.
type rest struct {
	agree  time.Duration // until the others are agreed on who leads
	from   string        // the settings that this comes from
	notice time.Duration // until clients are done with a server that fell silent, which goes on beside that
	ask    time.Duration // a request that was under way is given up, and asked of another
}

func (r rest) within() time.Duration { return max(r.agree, r.notice) + r.ask }

// String lists the parts of the time.
func (r rest) String() string {
	request := "a request's time of " + length(int64(r.ask))
	leader := fmt.Sprintf("%s to agree on a leader (%s)", length(int64(r.agree)), r.from)
	silent := fmt.Sprintf("%s until clients are done with a server that fell silent", length(int64(r.notice)))
	switch {
	case r.agree > 0 && r.notice > 0:
		return "the longer of " + leader + " and " + silent + ", and " + request
	case r.agree > 0:
		return leader + " and " + request
	case r.notice > 0:
		return silent + " and " + request
	}
	return request
}

// recovers returns how soon after a fault on servers the lock must be granted
// again while the fault goes on. That is bounded if the remaining servers are a
// majority of a quorum, and the recipe is available on a majority. Without a
// bound no recipe is blamed until the fault is over: a single server or most of
// them are unreachable; or a master is, and its sentinels decide when to act (up
// to half a minute late if their own process was delayed); or the fault slows
// servers down, and no setting limits by how much. A leader that hands over leaves no
// election to wait for: the servers are agreed when the next one leads.
func (d *derivation) recovers(f fault) (r rest, bounded bool) {
	if d.scenario.Topology != topologyQuorum || !d.info.Promises(impls.Available) || !d.majorityLeft(f) {
		return rest{}, false
	}
	lost, ok := chaos.Absent(f.what, d.guarantees())
	if !ok {
		return rest{}, false
	}
	r.ask = d.scenario.Timeout.D()
	if lost.Silent && d.info.DetectionTimeout != nil {
		r.notice = d.info.DetectionTimeout(d.scenario.TTL.D(), r.ask)
	}
	if !lost.Unseats {
		return r, true
	}
	if lost.HandsOver && f.confirmed > f.injected {
		r.agree, r.from = time.Duration(f.confirmed-f.injected), "as the servers reported"
		return r, true
	}
	r.agree, r.from = d.election()
	return r, r.agree > 0
}

// majorityLeft reports whether most servers were left by a fault and all others
// that came before it had been over for a request's time.
func (d *derivation) majorityLeft(f fault) bool {
	if d.cluster == nil {
		return false
	}
	all := 0
	for _, n := range d.cluster.Nodes {
		if n.Role == "" {
			all++
		}
	}
	slack := int64(d.scenario.Timeout)
	from, to := f.injected-slack, d.lasted(f)+slack
	hit := map[string]bool{}
	for _, o := range d.faults {
		if o.what.OnClient() || o.injected == 0 || o.injected > to || d.lasted(o) < from || o.what.About().KeepsServing {
			continue
		}
		if o.id == f.id && len(f.rounds) > 0 { // one at a time
			hit[""] = true
			continue
		}
		for _, n := range o.nodes {
			hit[n.Name] = true
		}
	}
	return len(hit) > 0 && len(hit) <= (all-1)/2
}

// election is how long the servers may take to notice that their leader is
// gone, and to agree on another, by the settings that were read back from them;
// 0 if the settings do not limit it.
func (d *derivation) election() (within time.Duration, from string) {
	b, err := all.Find(d.info.Backend)
	if e, ok := b.(backend.Elector); err == nil && ok {
		return e.Election(d.cluster.Settings)
	}
	return 0, ""
}

// topologyQuorum is where a majority of the servers decides.
const topologyQuorum = "quorum"
