package reports

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

const stoppedEarly = "stopped before its end; the figures are of what there was"

// interruptedDoc is the quick run, stopped while the last of a recipe's repeats
// was going on: etcd's faults had not begun, redis was at them.
func interruptedDoc() scenario.Document {
	d := quickDoc()
	d.Interrupted = true
	d.Scenarios = d.Scenarios[15:]
	for i := range d.Scenarios {
		r := &d.Scenarios[i]
		switch {
		case r.Group == "paused" && r.Backend == "redis", r.Group == "contended" && r.Repeat == 3 && r.Backend == "mysql":
			r.Status, r.Reason, r.AsExpected = scenario.StatusInterrupted, stoppedEarly, nil
		case r.Group == "paused" || r.Backend == "etcd":
			*r = scenario.Result{Name: r.Name, Group: r.Group, Repeat: r.Repeat, Recipe: r.Recipe, Backend: r.Backend, Topology: r.Topology, Workload: r.Workload, Clients: r.Clients, TTL: r.TTL,
				Status: scenario.StatusInterrupted, Reason: "the run was interrupted before it began", Faults: r.Faults}
		}
	}
	return d
}

// The findings and the servers of an interrupted run are reported; it is not
// mixed with what came to its end.
func TestInterruptedTellsWhatThereWas(t *testing.T) {
	d := interruptedDoc()
	env := environmentOf(d)
	c := build(run{doc: d, env: &env})
	text := map[string]string{}
	for _, s := range c.Sections {
		for _, table := range s.Tables {
			for _, r := range table.Rows {
				line := r.Span
				for _, cell := range r.Cells {
					line += " " + cell.Text
				}
				for _, m := range r.Marks {
					line += " [" + c.Notes[m-1] + "]"
				}
				text[s.Title+" "+r.Head] += line + "\n"
			}
		}
	}
	const figures = "(until then: 14.4 acquires/s in 20.0s, wait p99 198ms, verdict unsafe, 113 overlaps)"
	for _, want := range [][2]string{
		{"SERVERS redis", "redis 7.0.15"}, {"SERVERS redis", "memory only"},
		{"SERVERS etcd", "etcd 3.7.3"}, // up, though none of its scenarios ran
		{"SERVERS memcached", "missing: "},
		{"SAFETY redis/token", figures},
		{"SAFETY etcd/mutex", "interrupted: the run was interrupted before it began"},
		{"CONTENDED mysql/lease-row", "[contended-mysql-lease-row-16c-r3 is not included: interrupted: " + stoppedEarly + " (until then: "},
	} {
		if !strings.Contains(text[want[0]], want[1]) {
			t.Errorf("%s does not say %q but:\n%s", want[0], want[1], text[want[0]])
		}
	}
	if strings.Contains(text["CONTENDED redis/token"], "not included") || strings.Contains(text["SERVERS redis"], "interrupted") {
		t.Errorf("whole repeats are called cut short: %s%s", text["CONTENDED redis/token"], text["SERVERS redis"])
	}
	for _, n := range c.Notes {
		if strings.Contains(n, "interrupted before its end") {
			t.Errorf("a note that nothing points to: %s", n)
		}
	}
	if !strings.HasSuffix(c.Subtitle, "INTERRUPTED") {
		t.Errorf("the subtitle does not say INTERRUPTED: %s", c.Subtitle)
	}
	found := false
	for _, s := range c.Surprises {
		found = found || s.Kind == "interrupted" && s.Text == stoppedEarly+" "+figures
	}
	if !found {
		t.Errorf("what was seen is in no line of the summary: %+v", c.Surprises)
	}

	data, err := junit(run{doc: d})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range parseJUnit(t, string(data)).Suites {
		for _, x := range s.Cases {
			if x.Name != "paused-redis-token-6c-r1" {
				continue
			}
			if e := x.Error; e == nil || e.Message != stoppedEarly+" "+figures || !strings.Contains(e.Text, "verdict unsafe: 113 pairs") {
				t.Errorf("JUnit says %+v", e)
			}
		}
	}
}
