package measure

import (
	"fmt"
	"strings"
	"time"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/backend/all"
)

// rest is what a lock that can miss some of its servers needs after a fault
// took them, besides its own bound.
type rest struct {
	agree  time.Duration // until the others are agreed on who leads
	from   string        // the settings that this comes from
	notice time.Duration // until clients are done with a server that fell silent, which goes on beside that
	ask    time.Duration // a request that was under way is given up, and asked of another
}

func (r rest) within() time.Duration { return max(r.agree, r.notice) + r.ask }

// String tells what the time is made of.
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

// recovers tells how soon after a fault on servers the lock must be granted
// again, though the fault goes on: where those that are left are a majority of
// a quorum, and the recipe promises to get along with that. Where it is not
// bounded no recipe is blamed until the fault is over: a single server or most of
// them were away; a master was, whose sentinels act when they see fit (after a
// delay of their own process not for half a minute); or the fault makes servers
// slow, and how slow no setting tells.
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
// 0 if these do not tell.
func (d *derivation) election() (within time.Duration, from string) {
	b, err := all.Find(d.info.Backend)
	if e, ok := b.(backend.Elector); err == nil && ok {
		return e.Election(d.cluster.Settings)
	}
	return 0, ""
}

// topologyQuorum is where a majority of the servers decides.
const topologyQuorum = "quorum"

// setting reads a time as servers tell it: "1s", or milliseconds; 0 if it is
// neither.
func setting(text string) time.Duration {
	text, _, _ = strings.Cut(text, " ")
	if x, err := time.ParseDuration(text); err == nil {
		return x
	}
	x, err := time.ParseDuration(text + "ms")
	if err != nil {
		return 0
	}
	return x
}
