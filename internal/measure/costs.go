package measure

import (
	"cmp"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// costs derives the cost of the lock for the servers and the clients.
func (d *derivation) costs() {
	r := &d.result
	why := ""
	switch {
	case !d.sampled:
		why = d.died
	case r.Acquired == 0:
		why = "no client acquired a lock within the window"
	}
	sent := d.sent()
	servers := cmp.Or(why, sent.noServers)
	counted := d.countedGrants()
	if servers == "" && counted == 0 {
		servers = "no client acquired a lock between the two readings of the servers' counters"
	}
	requests := cmp.Or(servers, sent.why)
	renewals := d.totals.renewed + sent.renewals
	if requests == "" {
		r.RequestsPerAcquire = ptr(float64(sent.requests) / float64(counted))
		if renewals > 0 || d.info.Renewals != "" {
			r.RenewalsPerAcquire = ptr(float64(renewals) / float64(counted))
		}
	} else {
		d.unmeasured("requests_per_acquire", "%s", requests)
	}
	if why := cmp.Or(sent.noServers, sent.none); why != "" {
		d.unmeasured("requests_per_s", "%s", why)
	} else {
		r.RequestsPerSecond = ptr(float64(sent.requests+sent.renewals) / time.Duration(sent.over).Seconds())
	}
	if r.RenewalsPerAcquire == nil {
		d.unmeasured("renewals_per_acquire", "%s", cmp.Or(requests, "no client renewed a lock, and the recipe names no counter of renewals"))
	}
	if servers == "" && sent.cpu == 0 {
		servers = "the servers used too little CPU time to be measured"
	}
	if servers == "" {
		r.ServerCPU = ptr(time.Duration(sent.cpu).Seconds() / float64(counted) * 1000)
	} else {
		d.unmeasured("server_cpu_s_per_1000", "%s", servers)
	}
	if why == "" && len(d.samples.Workers) == 0 {
		why = "no worker reported its resource usage"
	}
	for _, w := range d.samples.Workers {
		switch {
		case why != "":
		case d.killed(w):
			why = "a worker was killed before it reported its resource usage"
		case w.Error != "":
			why = "a worker failed before it reported its resource usage"
		}
	}
	if why == "" {
		r.ClientCPU = ptr(time.Duration(d.workerCPU()).Seconds() / float64(r.Acquired) * 1000)
	} else {
		d.unmeasured("client_cpu_s_per_1000", "%s", why)
	}
}

// sent is what the servers counted between two readings, over ns apart.
type sent struct {
	noServers string // why they counted nothing
	why       string // why they counted none of the recipe's requests
	none      string // why it is not known that there were none
	requests  int64
	renewals  int64 // of sessions
	cpu, over int64
}

func (d *derivation) sent() (c sent) {
	switch {
	case !d.sampled:
		c.noServers = d.died
	case d.samples.Shared != "":
		c.noServers = d.samples.Shared
	case len(d.samples.Servers) == 0:
		c.noServers = "no server of its own served this scenario"
	}
	if c.over = d.samples.CountedTo - d.samples.CountedFrom; d.samples.CountedFrom == 0 || c.over <= 0 {
		c.over = d.samples.End - d.samples.Start
	}
	counters := false // some request was counted
	c.none = "the servers count none of the requests that this recipe sends"
	for _, s := range d.samples.Servers {
		c.cpu += s.CPUNS
		for name, n := range s.Counters {
			counters = counters || n != 0
			if d.info.Counts(name) {
				c.none = ""
				c.requests += n
			}
			if name == d.info.Renewals {
				c.renewals += n
			}
		}
	}
	switch {
	case !counters:
		c.why = "no server counts the requests of clients apart from those of other servers"
	case c.requests == 0:
		c.why = "the servers count none of the requests that this recipe sends"
	}
	return c
}

func (d *derivation) workerCPU() int64 {
	var ns int64
	for _, w := range d.samples.Workers {
		ns += w.CPUNS
	}
	return ns
}

// woken is how many waiting clients reached the step "woken" per release: the
// cost of the server's wake-ups.
func (d *derivation) woken() {
	const field = "woken_per_release"
	var waited, woken int64
	for _, w := range d.samples.Workers {
		waited += w.Steps[string(impls.StepWaiting)]
		woken += w.Steps[string(impls.StepWoken)]
		if d.killed(w) {
			d.unmeasured(field, "a worker was killed before it reported its clients' steps")
			return
		}
	}
	switch {
	case !d.sampled:
		d.unmeasured(field, "%s", d.died)
	case woken == 0 && d.info.Polls:
		d.unmeasured(field, "the recipe polls and is not woken")
	case waited == 0:
		d.unmeasured(field, "no client had to wait within the window")
	case woken == 0:
		d.unmeasured(field, "waiting is one request that the server answers late, so the clients that it wakes do not show")
	case d.totals.releases == 0:
		d.unmeasured(field, "no release was confirmed within the window")
	default:
		d.result.WokenPerRelease = ptr(float64(woken) / float64(d.totals.releases))
	}
}

// counting reports whether a stamp lies between the two readings of the servers'
// counters.
func (d *derivation) counting(at int64) bool {
	from, to := d.samples.CountedFrom, d.samples.CountedTo
	if from == 0 || to <= from {
		return d.within(at)
	}
	return at >= from && at < to
}

// countedGrants are those between the two readings of the servers' counters.
func (d *derivation) countedGrants() int64 {
	from, to := d.samples.CountedFrom, d.samples.CountedTo
	if from == 0 || to <= from {
		return d.result.Acquired
	}
	return d.totals.counted
}
