package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

// uncontended: how fast a lock is without contention. One row per recipe, one
// column per number of clients.
func (b *builder) uncontended(es []*experiment) section {
	s := section{Title: "UNCONTENDED", Lead: "Each client acquires and releases its own key as fast as it can: the cost of the lock itself."}
	for _, e := range es {
		if !e.uncontended() {
			continue
		}
		t := table{Title: e.heading(), Head: "recipe"}
		if len(e.counts) > 4 {
			// Too many columns: a row for each number of clients.
			t.Cols = []column{{Name: "clients"}, {Name: "pairs/s"}, {Group: "acquire", Name: "p50"}, {Group: "acquire", Name: "p99"}, {Group: "acquire", Name: "max"}}
			b.rows(&t, e, func(rs []result) []cell {
				return []cell{b.cell(rs, "throughput", mThroughput()), b.cell(rs, "acquire p50", mAcquire(p50)),
					b.percentile(rs, "acquire p99", mAcquire(p99), acquire), b.cell(rs, "acquire max", mAcquire(top))}
			})
		} else {
			b.pairs(&t, e)
		}
		t.Below = append(t.Below, b.caveat(e)...)
		s.Tables = append(s.Tables, t)
	}
	return s
}

// pairs fills a table with a column per number of clients.
func (b *builder) pairs(t *table, e *experiment) {
	for _, n := range e.counts {
		t.Cols = append(t.Cols, column{Group: "pairs/s at clients", Name: fmt.Sprint(n)})
	}
	for _, n := range e.counts {
		t.Cols = append(t.Cols, column{Group: "acquire p50 / p99 at clients", Name: fmt.Sprint(n)})
	}
	for _, name := range e.rows {
		r := row{Head: name, Marks: b.warnings(e.of(name))}
		if why := absent(e.of(name)); why != "" {
			r.Span, r.Class = why, warn
			t.Rows = append(t.Rows, r)
			continue
		}
		for _, n := range e.counts {
			r.Cells = append(r.Cells, b.at(e, name, n, "throughput", mThroughput()))
		}
		for _, n := range e.counts {
			a := b.at(e, name, n, "acquire", mAcquire(p50))
			if z := statOf(e.runs[point{name, n}], mAcquire(p99).get); z.n > 0 {
				a.Text += " / " + nanos(z.med)
			}
			r.Cells = append(r.Cells, b.few(a, e.runs[point{name, n}], acquire))
		}
		t.Rows = append(t.Rows, r)
	}
}

// at is a cell at one number of clients, which may be absent.
func (b *builder) at(e *experiment, name string, clients int, what string, m metric) cell {
	rs := e.runs[point{name, clients}]
	if len(rs) == 0 {
		return b.dash("not part of the suite")
	}
	if why := absent(rs); why != "" {
		return b.dash(why)
	}
	return b.cell(rs, what, m)
}

// rows fills a table with a row per recipe. If there are several numbers of
// clients, each has a row and the first column is that number. A recipe without
// results keeps its row.
func (b *builder) rows(t *table, e *experiment, cells func([]result) []cell) {
	many := len(e.counts) > 1
	for _, name := range e.rows {
		if why := absent(e.of(name)); why != "" {
			t.Rows = append(t.Rows, row{Head: name, Span: why, Class: warn})
			continue
		}
		for _, n := range e.counts {
			rs := e.runs[point{name, n}]
			if len(rs) == 0 {
				continue
			}
			r := row{Head: name, Marks: b.warnings(rs)}
			if why := absent(rs); why != "" {
				r.Span, r.Class = fmt.Sprintf("%d clients: %s", n, why), warn
				t.Rows = append(t.Rows, r)
				continue
			}
			if many {
				r.Cells = append(r.Cells, cell{Text: fmt.Sprint(n)})
			}
			for _, x := range rs {
				if cut(x) {
					r.Marks = append(r.Marks, b.note(fmt.Sprintf("%s is not included: %s", or(clean(x.Name), "a repeat"), absence(x))))
				}
			}
			r.Cells = append(r.Cells, cells(rs)...)
			t.Rows = append(t.Rows, r)
		}
	}
}

// clientsColumn is the column that rows adds if there are several numbers.
func (e *experiment) clientsColumn() []column {
	if len(e.counts) > 1 {
		return []column{{Name: "clients"}}
	}
	return nil
}

// contended: how fast a lock changes hands under contention.
func (b *builder) contended(es []*experiment) section {
	s := section{Title: "CONTENDED", Lead: "Many clients compete for the same keys. The time between two grants is at least hold + handoff. The handoff of a polling lock depends on its poll interval."}
	noSpeed := matrixed(es) // a run of many faults is not about speed
	for _, e := range es {
		if e.uncontended() || len(e.faults) > 0 || e.meantToFail() || noSpeed {
			continue
		}
		t := table{Title: e.heading(), Head: "recipe", Cols: e.clientsColumn()}
		t.Cols = append(t.Cols, column{Name: "verdict", Left: true}, column{Group: "acquires/s", Name: "median"}, column{Group: "acquires/s", Name: "min..max"},
			column{Group: "wait", Name: "p50"}, column{Group: "wait", Name: "p99"}, column{Group: "wait", Name: "max"},
			column{Group: "handoff", Name: "p50"}, column{Group: "fairness", Name: "Jain"}, column{Name: "wait policy", Left: true})
		b.rows(&t, e, func(rs []result) []cell {
			return []cell{
				badge(done(rs)), b.cell(rs, "throughput", mThroughput()), b.spread(rs, mThroughput()),
				b.cell(rs, "wait p50", mAcquire(p50)), b.percentile(rs, "wait p99", mAcquire(p99), acquire), b.cell(rs, "longest wait", mAcquire(top)),
				b.cell(rs, "handoff", mHandoff()), b.cell(rs, "fairness", mFairness()), {Text: waits(rs)},
			}
		})
		t.Below = append(t.Below, b.caveat(e)...)
		t.Below = append(t.Below, keptOne(e)...)
		s.Tables = append(s.Tables, t)
	}
	return s
}

// tries: how many tries per second a lock answers.
func (b *builder) tries(es []*experiment) section {
	s := section{Title: "TRIES", Lead: "Clients try the lock and never wait: answers per second, held or busy."}
	for _, e := range es {
		if len(e.faults) > 0 || !slices.ContainsFunc(done(e.all()), func(r result) bool { return r.TriesPerSecond != nil }) {
			continue
		}
		t := table{Title: e.heading(), Head: "recipe", Cols: e.clientsColumn()}
		t.Cols = append(t.Cols, column{Group: "answers/s", Name: "median"}, column{Group: "answers/s", Name: "min..max"},
			column{Group: "answers", Name: "held"}, column{Group: "answers", Name: "busy"}, column{Group: "requests", Name: "per acquire"})
		b.rows(&t, e, func(rs []result) []cell {
			var held, busy int64
			for _, r := range done(rs) {
				held, busy = held+r.Acquired, busy+r.Busy
			}
			return []cell{b.cell(rs, "tries", mTries()), b.spread(rs, mTries()), {Text: count(held)}, {Text: count(busy)}, b.cell(rs, "requests per acquire", mRequests())}
		})
		s.Tables = append(s.Tables, t)
	}
	return s
}

// cost: what an acquire costs servers and clients.
func (b *builder) cost(es []*experiment) section {
	s := section{Title: "COST", Lead: "The cost of one acquire: requests as the servers count them, and CPU time of servers and clients (seconds per 1000 acquires = milliseconds per acquire)."}
	noSpeed := matrixed(es)
	s.Tables = nonEmpty(b.price(es))
	for _, e := range es {
		if len(e.faults) > 0 || e.meantToFail() || noSpeed {
			continue
		}
		t := table{Title: e.heading(), Head: "recipe", Cols: e.clientsColumn(), Detail: e.uncontended()}
		t.Cols = append(t.Cols, column{Group: "requests", Name: "per acquire"}, column{Group: "CPU s per 1000 acquires", Name: "server"},
			column{Group: "CPU s per 1000 acquires", Name: "clients"}, column{Group: "acquires", Name: "held"}, column{Group: "acquires", Name: "busy"}, column{Group: "acquires", Name: "failed"}, column{Group: "calls", Name: "unknown"})
		b.rows(&t, e, func(rs []result) []cell {
			var held, busy, failed, unknown int64
			for _, r := range done(rs) {
				held += r.Acquired
				busy += r.Busy
				failed += r.Failed - r.Busy + r.Settled
				unknown += r.Unknown
			}
			return []cell{b.cell(rs, "requests per acquire", mRequests()), b.cell(rs, "server CPU", mServerCPU()),
				b.cell(rs, "client CPU", mClientCPU()), {Text: count(held)}, {Text: count(busy)}, {Text: count(failed)}, counter(unknown, warn)}
		})
		t.Below = renewalLine(e)
		s.Tables = append(s.Tables, t)
	}
	return s
}

// renewalLine states the requests per acquire with renewals and without, for the
// recipes that renew.
func renewalLine(e *experiment) []string {
	var parts []string
	for _, name := range e.rows {
		rs := e.of(name)
		renewals := statOf(rs, func(r result) (float64, bool) {
			if r.RenewalsPerAcquire == nil {
				return 0, false
			}
			return *r.RenewalsPerAcquire, true
		})
		all := statOf(rs, mRequests().get)
		if renewals.n == 0 || all.n == 0 {
			continue
		}
		with, without := all.med, all.med-renewals.med
		if done(rs)[0].Bound != "ttl" {
			with, without = all.med+renewals.med, all.med // the renewals of a session are not in the requests
		}
		parts = append(parts, fmt.Sprintf("%s %s, %s without renewal", name, fixed2(with), fixed2(without)))
	}
	return listed("Requests per acquire with the cost of renewal", parts)
}

// openLoop: what became of the arrivals, and response times.
func (b *builder) openLoop(es []*experiment) section {
	s := section{Title: "OPEN LOOP", Lead: "Clients arrive at a given rate. Response time counts from the intended start of a call. Arrived = completed + dropped + in flight."}
	for _, e := range es {
		if !e.open() {
			continue
		}
		t := table{Title: e.heading(), Head: "recipe", Cols: e.clientsColumn()}
		t.Cols = append(t.Cols, column{Name: "verdict", Left: true}, column{Name: "arrived"}, column{Name: "completed"}, column{Name: "dropped"}, column{Name: "in flight"},
			column{Group: "response", Name: "p50"}, column{Group: "response", Name: "p99"}, column{Group: "response", Name: "max"}, column{Group: "pacer late", Name: "p99"})
		b.rows(&t, e, func(rs []result) []cell {
			a, measured := arrivals(rs)
			cs := []cell{badge(done(rs)), {Text: count(a.Arrived)}, {Text: count(a.Completed)}, counter(a.Dropped, warn), {Text: count(a.InFlight)}}
			tail := cell{Text: nanos(float64(a.PacerLateNS))}
			if !measured {
				x := b.dash("arrivals were not measured: " + why(done(rs), "arrivals"))
				cs, tail = []cell{cs[0], x, x, x, x}, x
			}
			if a.Dropped > 0 && statOf(rs, mResponse(p50).get).n == 0 {
				x := b.dash(noteDropped)
				return append(cs, x, x, x, tail)
			}
			cs = append(cs, b.cell(rs, "response p50", mResponse(p50)), b.percentile(rs, "response p99", mResponse(p99), response), b.cell(rs, "response max", mResponse(top)))
			return append(cs, tail)
		})
		s.Tables = append(s.Tables, t)
	}
	return s
}

// arrivals adds up those of several runs.
func arrivals(rs []result) (sum scenario.Arrivals, measured bool) {
	for _, r := range done(rs) {
		if a := r.Arrivals; a != nil {
			measured = true
			sum.Arrived, sum.Completed, sum.Dropped, sum.InFlight = sum.Arrived+a.Arrived, sum.Completed+a.Completed, sum.Dropped+a.Dropped, sum.InFlight+a.InFlight
			sum.PacerLateNS = max(sum.PacerLateNS, a.PacerLateNS)
		}
	}
	return sum, measured
}

// spread shows the lowest and the highest of the repeats.
func (b *builder) spread(rs []result, m metric) cell {
	switch s := statOf(rs, m.get); {
	case s.n == 0:
		return cell{Text: none, Class: mute}
	case s.n == 1:
		return cell{Text: "1 run", Class: mute}
	default:
		return cell{Text: m.format(s.min) + ".." + m.format(s.max)}
	}
}

// waits is the wait policy: polling, or woken by the server.
func waits(rs []result) string {
	for _, r := range done(rs) {
		if r.WaitPolicy != "" {
			return strings.TrimSuffix(clean(r.WaitPolicy), " by the server")
		}
	}
	return none
}

func (e *experiment) heading() string {
	// A run without a suite has the workload's name as its title: do not repeat it.
	h := e.title() + ": " + e.conditions()
	if rest, ok := strings.CutPrefix(e.conditions(), clean(e.load.Kind)+" · "); ok && strings.HasPrefix(e.title(), clean(e.load.Kind)) {
		h = e.title() + ": " + rest
	}
	if n := e.repeats(); n > 1 {
		h += fmt.Sprintf(" · median of %d repeats", n)
	}
	return h
}

// caveat warns where a table is not a comparison.
func (b *builder) caveat(e *experiment) []string {
	if e.repeats() == 1 {
		return []string{"Each number is from one run: only repeats show how much it varies."}
	}
	return nil
}
