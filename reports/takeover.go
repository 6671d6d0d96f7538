package reports

import (
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/internal/scenario"
)

// takeover: how long the lock of a client that died stayed taken, beside what
// the recipe promises.
func (b *builder) takeover(es []*experiment) section {
	s := section{Title: "TAKEOVER", Lead: "Clients were killed (SIGKILL) while they held a lock that others waited for. From death: until another was granted it. Lifetime: from when the dead client last had the lock confirmed; that is the lease as it really was."}
	for _, e := range es {
		if !slices.ContainsFunc(done(e.all()), func(r result) bool { return r.Takeover != nil }) {
			continue
		}
		t := table{Title: e.heading(), Head: "recipe", Cols: e.clientsColumn()}
		t.Cols = append(t.Cols, column{Group: "promised", Name: "bound"},
			column{Group: "from death", Name: "p50"}, column{Group: "from death", Name: "p99"}, column{Group: "from death", Name: "max"},
			column{Group: "lifetime", Name: "min"}, column{Group: "lifetime", Name: "p50"}, column{Group: "lifetime", Name: "max"},
			column{Group: "keys", Name: "granted"}, column{Group: "keys", Name: "never", Left: true})
		b.rows(&t, e, func(rs []result) []cell { return b.takeoverCells(done(rs)) })
		t.Below = []string{"The bound is the recipe's own, for this TTL; a waiter that polls may add its interval. Never: not granted again before the end, and how long it was waited for."}
		s.Tables = append(s.Tables, t)
	}
	return s
}

// takeovers gathers those of several runs.
func takeovers(rs []result) (sum scenario.TakeoverTimes, any bool) {
	for _, r := range rs {
		t := r.Takeover
		if t == nil {
			continue
		}
		any = true
		sum.Holds, sum.Granted = sum.Holds+t.Holds, sum.Granted+t.Granted
		sum.BoundNS, sum.UnansweredNS = t.BoundNS, max(sum.UnansweredNS, t.UnansweredNS)
		sum.Each = append(sum.Each, t.Each...)
		if t.Lifetime != nil {
			sum.Lifetime = t.Lifetime
		}
	}
	return sum, any
}

func (b *builder) takeoverCells(rs []result) []cell {
	t, any := takeovers(rs)
	if !any {
		return filled(b.dash("takeover: "+why(rs, "takeover")), 9)
	}
	bound := cell{Text: "none", Class: warn}
	if t.BoundNS > 0 {
		bound = cell{Text: nanos(float64(t.BoundNS))}
	}
	cells := []cell{bound}
	deaths, lives := fromDeath(t), lifetimes(t)
	if len(deaths) == 0 {
		cells = append(cells, filled(b.dash("time from death: "+why(rs, "from_death_ns")), 3)...)
	} else {
		cells = append(cells, quantiles(deaths, 0.5, 0.99, 1)...)
	}
	if t.Lifetime == nil {
		cells = append(cells, filled(b.dash("lifetime: "+why(rs, "lifetime_ns")), 3)...)
	} else {
		cells = append(cells, quantiles(lives, 0, 0.5, 1)...)
	}
	never := cell{Text: "0"}
	if n := t.Holds - t.Granted; n > 0 {
		never = cell{Text: fmt.Sprintf("%s in %s", count(n), nanos(float64(t.UnansweredNS))), Class: bad}
	}
	return append(cells, cell{Text: fmt.Sprintf("%s/%s", count(t.Granted), count(t.Holds))}, never)
}

// succeeded says whose dead holders were succeeded in time.
func succeeded(es []*experiment) []string {
	var within, allowed, late, unbound, never []string
	for _, e := range es {
		for _, name := range e.rows {
			rs := done(e.of(name))
			t, any := takeovers(rs)
			if !any {
				continue
			}
			if t.Granted < t.Holds {
				never = append(never, fmt.Sprintf("%s (%s in %s)", name, counted(t.Holds-t.Granted, "key", "keys"), nanos(float64(t.UnansweredNS))))
			}
			deaths := fromDeath(t)
			if len(deaths) == 0 {
				continue
			}
			longest := quantile(deaths, 1)
			said := fmt.Sprintf("%s (%s of %s)", name, nanos(longest), nanos(float64(t.BoundNS)))
			switch {
			case t.BoundNS == 0:
				unbound = append(unbound, fmt.Sprintf("%s (%s)", name, nanos(longest)))
			case longest > float64(judgedBy(t, rs)):
				late = append(late, said)
			case longest > float64(t.BoundNS):
				allowed = append(allowed, said)
			case t.Granted == t.Holds:
				within = append(within, fmt.Sprintf("%s (%s)", name, nanos(longest)))
			}
		}
	}
	var out []string
	if len(within) > 0 {
		out = append(out, "A killed holder's lock passed on within the promised bound: "+list(within)+".")
	}
	if len(allowed) > 0 {
		out = append(out, "After the promised bound, by no more than a poll and a busy machine are allowed: "+list(allowed)+".")
	}
	if len(late) > 0 {
		out = append(out, "Later than promised, the waiters' polls included: "+list(late)+".")
	}
	if len(unbound) > 0 {
		out = append(out, "Passed on though nothing was promised: "+list(unbound)+".")
	}
	if len(never) > 0 {
		out = append(out, "Never granted again while the run lasted: "+list(never)+".")
	}
	return out
}

func fromDeath(t scenario.TakeoverTimes) []float64 {
	return sorted(t.Each, func(one scenario.OneTakeover) int64 { return one.FromDeathNS })
}

func lifetimes(t scenario.TakeoverTimes) []float64 {
	return sorted(t.Each, func(one scenario.OneTakeover) int64 { return one.LifetimeNS })
}

func sorted(each []scenario.OneTakeover, of func(scenario.OneTakeover) int64) []float64 {
	var vs []float64
	for _, one := range each {
		vs = append(vs, float64(of(one)))
	}
	slices.Sort(vs)
	return vs
}

// quantiles picks from sorted values: the least that is not below that share of
// them.
func quantiles(vs []float64, shares ...float64) []cell {
	var cells []cell
	for _, share := range shares {
		cells = append(cells, cell{Text: nanos(quantile(vs, share))})
	}
	return cells
}

func quantile(vs []float64, share float64) float64 {
	i := int(share*float64(len(vs))+0.999999) - 1
	return vs[min(max(i, 0), len(vs)-1)]
}

// judgedBy is the bound with what a busy machine and a waiter's poll may add, as
// liveness is judged.
func judgedBy(t scenario.TakeoverTimes, rs []result) int64 {
	bound := t.BoundNS
	for _, r := range rs {
		bound = max(bound, r.Safety.TakeoverBoundNS)
	}
	return bound
}
