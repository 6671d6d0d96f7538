package reports

import (
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

// faultDoc is a run of two invented locks under six faults, where the first has
// one bad day and one fault that missed.
func faultDoc() scenario.Document {
	d := scenario.Document{Schema: scenario.SchemaVersion, Suite: "safety", Seed: 3}
	kinds := kinds()
	for i, fault := range []string{"holder-pause", "holder-cut", "leader-kill", "leader-cut-peers", "minority-pause", "holder-reply-lost"} {
		for k, of := range kinds[:2] {
			for rep := 1; rep <= 2; rep++ {
				r := synthetic(of, "safety-"+fault, scenario.Load{Kind: "guarded-counter", Keys: 1, Arrival: "closed", Guard: "both"}, 4, rep)
				r.DurationNS, r.Acquired, r.Expect.Verdict = 8*sec, 100, scenario.Safe
				f := scenario.FaultResult{ID: fault + "-1", Kind: fault, Status: "effective", Target: "client 1 (pid 5)", Mechanism: "dialer", InjectedNS: sec, HealedNS: 3 * sec,
					OutageNS: int64(i+1) * sec, RecoveryNS: int64(i+rep) * 100 * msec}
				switch {
				case k == 0 && fault == "holder-cut" && rep == 2:
					r.Safety.Verdict, r.Safety.Overlaps, r.Safety.OverlapIncidents, r.Safety.OverlapNS = scenario.Unsafe, 3, 1, 40*msec
					r.Safety.Promise, r.Safety.Breaches = scenario.Broken, 2
					r.Safety.Registers = []scenario.Register{{Name: "plain", LostUpdates: 4}, {Name: "fenced"}}
					r.Safety.Causes = []scenario.Cause{{Cause: "lease outlived by a holder that was cut off", Count: 3, Breaches: 2}}
					r.AsExpected, r.Surprises = ptr(false), []string{"verdict: expected safe, but it is unsafe"}
				case k == 0 && fault == "minority-pause":
					f.Status, f.Reason, f.OutageNS, f.RecoveryNS = "missed", "it found no target", 0, 0
					r.Safety.Verdict, r.AsExpected = scenario.Undecided, nil
				}
				r.Faults = []scenario.FaultResult{f}
				d.Scenarios = append(d.Scenarios, r)
			}
		}
	}
	return d
}

func TestFaultMatrix(t *testing.T) {
	c := build(run{doc: faultDoc()})
	text := renderText(c, TextOptions{Width: 120})
	golden(t, "faults.txt", text)
	for _, want := range []string{
		"unsafe 1/2 1× 40.0ms, broken 1/2, lost 4 (0) !", // the worst of its runs, damage with and without tokens
		"missed",
		"Under at least one of 6 faults: 1 of 2 locks let two clients hold the lock at once",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	// Every fault that did not hit is counted.
	if !strings.Contains(text, "2/4") {
		t.Error("the report hides that a fault missed")
	}
}

// Faults that a budget left out are counted, and only the faults that all locks met
// compare them.
func TestFaultsLeftOut(t *testing.T) {
	d := faultDoc()
	d.Scenarios = slices.DeleteFunc(d.Scenarios, func(r result) bool { return r.Recipe == "etcd/mutex" && r.Faults[0].Kind == "holder-cut" })
	d.NotTried = []scenario.NotTried{{Recipe: "etcd/mutex", Topology: "single", Faults: []string{"holder-cut", "each-kill"}}}
	c := build(run{doc: d})
	for _, r := range c.Sections[0].Tables[0].Rows {
		line := ""
		for _, x := range r.Cells {
			line += x.Text + "|"
		}
		want := map[string]string{
			"redis/token": "unsafe, broken|6 of 6|safe|unsafe 1/2 1× 40.0ms, broken 1/2, lost 4 (0) !|safe|safe|missed|safe|–|",
			"etcd/mutex":  "safe|5 of 7|safe|not tried|safe|safe|safe|safe|not tried|",
		}[r.Head]
		if line != want {
			t.Errorf("%s: %s, want %s", r.Head, line, want)
		}
	}
	want := []headline{
		{"Under at least one fault tried on it: 1 of 2 locks let two clients hold the lock at once.", bad},
		{"Under at least one of the faults that all of them met (holder-pause, leader-kill, leader-cut-peers, minority-pause and 1 more): 1 of 2 locks not proven safe.", warn},
	}
	if !slices.Equal(c.Headlines, want) {
		t.Errorf("%+v, want %+v", c.Headlines, want)
	}
}

// What a few faults did is summed up for each lock.
func TestFewFaultsAreSummedUpByLock(t *testing.T) {
	d := faultDoc()
	d.Scenarios = d.Scenarios[:4*(manyFaults-1)]
	for _, s := range build(run{doc: d}).Sections {
		if s.Title == "FAULTS" && (len(s.Tables) != 1 || s.Tables[0].Title != "what the faults did") {
			t.Errorf("of %d faults: %+v", manyFaults-1, s.Tables)
		}
	}
}

// Who kept one holder at a time is not praised for it alone.
func TestSafeIsNotAll(t *testing.T) {
	for _, matrix := range []bool{true, false} {
		d := faultDoc()
		for i := range d.Scenarios {
			r := &d.Scenarios[i]
			if r.Recipe != "etcd/mutex" {
				continue
			}
			switch r.Faults[0].Kind {
			case "holder-pause":
				r.Safety.Liveness = scenario.Stuck
			case "holder-cut":
				r.Safety.Promise = scenario.Broken
			}
			r.Faults[0].LongestWaitNS, r.Faults[0].OutageNS = sec, 5*sec
		}
		if matrix {
			m := groupByFault(d)
			for fault, want := range map[string]string{"holder-pause": "stuck", "holder-cut": "broken", "leader-kill": "safe"} {
				if got := newBuilder(run{doc: d}).faultCell(m.runs[fault]["etcd/mutex"]).Text; got != want {
					t.Errorf("%s: the matrix has %q, want %q", fault, got, want)
				}
			}
			continue
		}
		d.Scenarios = d.Scenarios[:4*(manyFaults-1)]
		want := []string{
			"etcd/mutex (no grant for 5.00s), but it stayed free too long while clients waited",
			"etcd/mutex (no grant for 5.00s), but it broke its guarantee",
		}
		text := strings.Join(answers(run{doc: d}, experiments(loads(d.Scenarios))), "\n")
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("the answers do not say %q:\n%s", w, text)
			}
		}
	}
}

// A violation is told beside each kind of fault of its run, not of the first
// alone.
func TestViolationsOfSeveralFaults(t *testing.T) {
	r := faultDoc().Scenarios[0]
	r.Safety.OverlapIncidents, r.Safety.Breaches = 7, 5
	second := r.Faults[0]
	second.Kind = "leader-kill"
	r.Faults = append(r.Faults, second, second)
	b := newBuilder(run{})
	for _, row := range b.inflicted(experiments([]result{r}), false).Rows {
		if row.Cells[4].Text != "7" || row.Cells[5].Text != "5" {
			t.Errorf("%s: %+v", row.Head, row.Cells)
		}
	}
}

// A lock that was unsafe without a fault is in no matrix: it has its own table, and
// the summary names the scenario.
func TestUnsafeWithoutFaultsBesideAMatrix(t *testing.T) {
	d := faultDoc()
	r := synthetic(kinds()[0], "hold-too-long", scenario.Load{Kind: "guarded-counter", Keys: 1, Arrival: "closed", Guard: "both"}, 4, 1)
	r.Safety.Verdict, r.Safety.Overlaps, r.Safety.OverlapIncidents, r.AsExpected = scenario.Unsafe, 9, 1, ptr(true)
	d.Scenarios = append(d.Scenarios, r)
	text := renderText(build(run{doc: d}), TextOptions{Width: 200})
	for _, want := range []string{
		"hold-too-long: guarded-counter",
		"the one contended run was unsafe: redis/token (in hold-too-long). That was expected.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report does not say %q:\n%s", want, text)
		}
	}
}

// The report says how many holds outlived their lease, where one did.
func TestHoldsThatOutlivedTheirLease(t *testing.T) {
	d := faultDoc()
	d.Scenarios = d.Scenarios[:4]
	d.Scenarios[0].Safety.Verdict = scenario.Unsafe
	for i := range d.Scenarios {
		d.Scenarios[i].Leased = &scenario.LeasedHolds{Holds: 50}
	}
	d.Scenarios[0].Leased = &scenario.LeasedHolds{Holds: 60, Outlived: 2, WorstNS: 1500 * msec}
	if text, want := renderText(build(run{doc: d}), TextOptions{Width: 200}), "Holds that outlived their lease: redis/token (2 of 110, by up to 1.50s)."; !strings.Contains(text, want) {
		t.Errorf("%q is not in\n%s", want, text)
	}
}
