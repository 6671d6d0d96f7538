package reports

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// naive is an invented recipe as the documents describe them: nothing ends a
// dead holder's lock.
func naive() kind {
	return kind{"mysql/insert", "mysql", "MariaDB", "10.11.6", "innodb_flush_log_at_trx_commit=1: fsync at each commit", "none", "poll 5ms..15ms", 2.4e6, false}
}

// recipesDoc is a run of something like the suites properties, cost and
// takeover together.
func recipesDoc() scenario.Document {
	d := quickDoc()
	d.Suite, d.Scenarios = "recipes", nil
	subjects := append(kinds(), naive())
	for i, k := range subjects {
		d.Scenarios = append(d.Scenarios, propertiesResult(k, i))
	}
	zero, ms := scenario.Constant(0), scenario.Constant(time.Millisecond)
	for i, k := range subjects {
		r := synthetic(k, "alone", scenario.Load{Kind: "uncontended", Keys: 8, Hold: zero, Think: zero, Arrival: "closed"}, 8, 1)
		r.Throughput, r.Acquire, r.DurationNS, r.Acquired, r.RequestsPerAcquire = ptr(1e9/k.base), lat(k.base), sec, int64(1e9/k.base), ptr(2.0)
		r.CodeLines = &scenario.CodeLines{Recipe: int64(40 + 30*i), Shared: 200}
		r.Safety.Verdict, r.Safety.Liveness = scenario.Undecided, scenario.Undecided
		d.Scenarios = append(d.Scenarios, r)
		r = synthetic(k, "contended", scenario.Load{Kind: "hot-key", Keys: 1, Hold: ms, Think: ms, Arrival: "closed"}, 32, 1)
		r.Throughput, r.Acquire, r.DurationNS, r.Acquired, r.RequestsPerAcquire = ptr(400.0), lat(80e6), 2*sec, 800, ptr(2+float64(i))
		if strings.HasPrefix(k.waits, "woken") {
			r.WokenPerRelease, r.OrderInversions = ptr(1.0), ptr(int64(0))
		} else {
			r.Unmeasured["woken_per_release"] = "the recipe polls and is not woken"
			r.Unmeasured["order_inversions"] = "the recipe promises no order, and shows no queue"
		}
		r.CodeLines = &scenario.CodeLines{Recipe: int64(40 + 30*i), Shared: 200}
		switch k.backend {
		case "etcd":
			r.Expect.Thresholds = []string{"woken < 2"}
		case "redis": // which polls, so that it cannot be decided
			r.Expect.Thresholds, r.AsExpected = []string{"woken < 2"}, nil
		case "memcached":
			r.Expect.Thresholds, r.AsExpected = []string{"acquire.p50 < 1ms"}, ptr(false)
		}
		d.Scenarios = append(d.Scenarios, r)
	}
	for i, k := range subjects {
		d.Scenarios = append(d.Scenarios, takeoverResult(k, i))
	}
	r := synthetic(subjects[0], "tries", scenario.Load{Kind: scenario.TryStorm, Keys: 1, Hold: ms, Think: ms, Arrival: "closed"}, 16, 1)
	r.Throughput, r.TriesPerSecond, r.Acquire, r.DurationNS, r.Acquired, r.Busy, r.Failed = ptr(400.0), ptr(9000.0), lat(61e3), 2*sec, 800, 17_200, 17_200
	d.Scenarios = append(d.Scenarios, r)
	return d
}

func propertiesResult(k kind, i int) scenario.Result {
	r := synthetic(k, "properties", scenario.Load{Kind: scenario.Properties, Keys: 1, Hold: scenario.Constant(0), Think: scenario.Constant(0), Arrival: "closed"}, 1, 1)
	r.Safety = scenario.Safety{}
	promised := map[bool]string{true: scenario.Yes, false: scenario.No}
	for _, p := range []string{"exclusive", "deadlock-free", "symmetric", "available", "reentrant", "blocking", "nonblocking", "expiry", "ordered", "read-write", "batch", "reports-lost", "cleans-up", "signals-loss", "extends", "once"} {
		has := p == "exclusive" || p == "blocking" || p == "nonblocking" || k.bound != "none" && (p == "deadlock-free" || p == "symmetric" || p == "expiry") || k.bound == "session" && p == "ordered"
		one := scenario.Property{Property: p, Promised: promised[has], Measured: promised[has], Evidence: fmt.Sprintf("seen %d times", i+3)}
		switch {
		case p == "signals-loss" && k.bound == "none":
			one.Measured, one.Evidence = scenario.NotApplicable, "nothing ends the hold but its release"
		case p == "ordered" && k.backend == "mysql" && k.bound == "none":
			one.Measured, one.Evidence = scenario.Yes, "7 waiters were served in the order in which they came, in 3 of 3 rounds"
			r.AsExpected, r.Surprises = ptr(false), []string{"ordered: promised no, measured yes: 7 waiters were served in the order in which they came, in 3 of 3 rounds"}
		case p == "available" && k.backend == "etcd":
			one.Measured, one.Evidence = scenario.Undecided, "the killed server did not start again"
			r.AsExpected, r.Surprises = nil, []string{"inconclusive: available: promised no, and not decided: the killed server did not start again"}
		}
		r.Properties = append(r.Properties, one)
	}
	return r
}

func takeoverResult(k kind, i int) scenario.Result {
	r := synthetic(k, "takeover", scenario.Load{Kind: scenario.Takeover, Keys: 6, Hold: scenario.Constant(0), Think: scenario.Constant(0), Arrival: "closed"}, 12, 1)
	r.DurationNS, r.Acquired = 10*sec, 6
	r.Faults = []scenario.FaultResult{{ID: "holder-kill-1", Kind: scenario.HolderKill, Status: "effective", Target: "client 0 (pid 4711)", Mechanism: "SIGKILL", ArmedNS: 1, InjectedNS: sec, LongestWaitNS: 5 * sec}}
	t := &scenario.TakeoverTimes{Holds: 6, BoundNS: 4 * sec}
	r.Takeover = t
	if k.bound == "none" {
		t.BoundNS, t.UnansweredNS = 0, 9*sec
		r.Unmeasured["from_death_ns"] = "no key of a dead client was granted to another before the end"
		r.Unmeasured["lifetime_ns"] = r.Unmeasured["from_death_ns"]
		r.Safety.Liveness = scenario.Stuck
		r.Expect = scenario.Expect{Liveness: scenario.Stuck}
		return r
	}
	for j := range int64(6) {
		one := scenario.OneTakeover{Key: uint32(j), FromDeathNS: (3500-int64(i)*200)*msec - j*370*msec}
		if k.bound == "ttl" {
			one.LifetimeNS = 4*sec + j*msec
		}
		t.Each = append(t.Each, one)
	}
	t.Granted, t.FromDeath = 6, lat(3e9)
	if k.bound == "ttl" {
		t.Lifetime = lat(4e9)
	} else {
		r.Unmeasured["lifetime_ns"] = "the lock is kept alive beside the calls, so they do not show when it was confirmed last"
	}
	return r
}

// A fault that kills has no while in which it lasts.
func TestNobodyWaitsThroughAKill(t *testing.T) {
	for _, s := range build(run{doc: recipesDoc()}).Sections {
		for _, tb := range s.Tables {
			if text := strings.Join(tb.Below, " "); strings.Contains(text, "No other client") || strings.Contains(text, "Another client") {
				t.Errorf("%s: %s", s.Title, text)
			}
		}
	}
}

func TestPropertiesMarkDifferences(t *testing.T) {
	s := newBuilder(run{doc: recipesDoc()}).properties()
	if len(s.Tables) != 1 || len(s.Tables[0].Rows) != 6 {
		t.Fatalf("%+v", s.Tables)
	}
	find := func(recipe, short string) cell {
		for _, r := range s.Tables[0].Rows {
			for i, c := range s.Tables[0].Cols {
				if r.Head == recipe && c.Name == short {
					return r.Cells[i]
				}
			}
		}
		t.Fatalf("no cell of %s, %s", recipe, short)
		return cell{}
	}
	if c := find("mysql/insert", "order"); c.Text != "yes!" || c.Class != bad || len(c.Marks) != 1 {
		t.Errorf("better than promised: %+v", c)
	}
	if c := find("etcd/mutex", "avail"); c.Text != "?" || c.Class != warn || len(c.Marks) != 1 {
		t.Errorf("not decided: %+v", c)
	}
	if c := find("mysql/insert", "signal"); c.Text != none || len(c.Marks) != 0 {
		t.Errorf("not applicable: %+v", c)
	}
	if c := find("redis/token", "excl"); c.Text != "yes" || c.Class != good || !strings.Contains(c.Hover, "seen 3 times") {
		t.Errorf("as promised: %+v", c)
	}
}

// A property that was not measured is not shown as measured.
func TestPropertiesThatAreNotThere(t *testing.T) {
	d := recipesDoc()
	d.Scenarios[0].Properties = d.Scenarios[0].Properties[1:]
	c := newBuilder(run{doc: d}).properties().Tables[0]
	for i, col := range c.Cols {
		if col.Name == "excl" && c.Rows[0].Cells[i].Text != none {
			t.Errorf("%+v", c.Rows[0].Cells[i])
		}
	}
	if o := outcomeOf(scenario.Result{Status: scenario.StatusDone, Workload: scenario.Load{Kind: scenario.Properties}}); o != outcomeInconclusive {
		t.Errorf("properties without an answer are %s", o)
	}
}

func TestQuantiles(t *testing.T) {
	vs := []float64{1, 2, 3, 4}
	for share, want := range map[float64]float64{0: 1, 0.25: 1, 0.5: 2, 0.51: 3, 0.99: 4, 1: 4} {
		if got := quantile(vs, share); got != want {
			t.Errorf("%v of %v is %v, want %v", share, vs, got, want)
		}
	}
}

func TestRecipesGolden(t *testing.T) {
	golden(t, "recipes.txt", tableText(t, recipesDoc(), TextOptions{Width: 110}))
}

// The page shows the evidence of each property, and draws the takeovers.
func TestRecipesPage(t *testing.T) {
	dir := t.TempDir()
	writeRun(t, dir, recipesDoc())
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	page := slurp(t, dir, FileHTML)
	for _, want := range []string{`title="exclusive: guaranteed yes, measured yes. seen 3 times"`, "<h4>Properties</h4>", "How long a dead client&#39;s lock stayed taken"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	wellFormed(t, page)
	if svg := slurp(t, dir, DirPlots, "takeover-takeover-under-holder-kill.svg"); !strings.Contains(svg, ">never<") {
		t.Error("a lock that was never granted again is not in the plot")
	}
}
