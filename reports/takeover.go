package reports

import (
	"fmt"
	"slices"

	"github.com/lockbench/lockbench/internal/scenario"
)

// takeover: how long the lock of a killed client stayed taken, and the recipe's
// takeover bound.
func (b *builder) takeover(es []*experiment) section {
	s := section{Title: "TAKEOVER", Lead: "Clients were killed (SIGKILL) while they held a lock that other clients waited for. From death: until another client was granted the lock. Lifetime: the same, but from the last confirmed acquire or renewal of the killed client; this is the real length of the lease."}
	for _, e := range es {
		if !slices.ContainsFunc(done(e.all()), func(r result) bool { return r.Takeover != nil }) {
			continue
		}
		t := table{Title: e.heading(), Head: "recipe", Cols: e.clientsColumn()}
		t.Cols = append(t.Cols, column{Group: "takeover", Name: "bound"},
			column{Group: "from death", Name: "p50"}, column{Group: "from death", Name: "p99"}, column{Group: "from death", Name: "max"},
			column{Group: "lifetime", Name: "min"}, column{Group: "lifetime", Name: "p50"}, column{Group: "lifetime", Name: "max"},
			column{Group: "keys", Name: "granted"}, column{Group: "keys", Name: "never", Left: true})
		b.rows(&t, e, func(rs []result) []cell { return b.takeoverCells(done(rs)) })
		t.Below = []string{"Bound: declared by the recipe for this TTL; a polling waiter can add its interval. Never: keys not granted again before the end, and the longest time that clients waited for one."}
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

// succeeded states which locks were granted again in time after their holder was
// killed.
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
			text := fmt.Sprintf("%s (%s of %s)", name, nanos(longest), nanos(float64(t.BoundNS)))
			switch {
			case t.BoundNS == 0:
				unbound = append(unbound, fmt.Sprintf("%s (%s)", name, nanos(longest)))
			case longest > float64(judgedBy(t, rs)):
				late = append(late, text)
			case longest > float64(t.BoundNS):
				allowed = append(allowed, text)
			case t.Granted == t.Holds:
				within = append(within, fmt.Sprintf("%s (%s)", name, nanos(longest)))
			}
		}
	}
	return slices.Concat(
		listed("The lock of a killed holder was granted again within the takeover bound", within),
		listed("After the takeover bound, but within the allowance for polling and a busy machine", allowed),
		listed("After the takeover bound and the allowance for polling", late),
		listed("Granted again although the recipe declares no takeover bound", unbound),
		listed("Not granted again before the end of the run", never))
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

// quantiles picks from sorted values the lowest that is not below each share.
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

// judgedBy is the bound plus the allowance for a busy machine and for polling, as
// for the liveness answer.
func judgedBy(t scenario.TakeoverTimes, rs []result) int64 {
	bound := t.BoundNS
	for _, r := range rs {
		bound = max(bound, r.Safety.TakeoverBoundNS)
	}
	return bound
}
