package scenario_test

import (
	"fmt"
	"reflect"
	"testing"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/scenario"
)

// hurtable are recipes of each kind on servers that keep what they granted, but
// for those that forget it when they are killed.
func hurtable() scenario.Catalogue {
	sound := []string{"exclusive", "symmetric", "cleans-up", "reports-lost"}
	recipe := func(id, bound string, has []string) scenario.RecipeFacts {
		return scenario.RecipeFacts{
			ID: id, Backend: "b", Bound: bound, Properties: has, Topologies: []string{"single", "quorum"}, Steps: []string{"delete"},
			Guarantees: func(topology string, settings map[string]string) scenario.ServerFacts {
				return scenario.ServerFacts{Durable: settings["durable"] != "", MonotonicClock: true, Quorum: topology == "quorum"}
			},
		}
	}
	return scenario.NewCatalogue(chaos.Actions(),
		recipe("b/ttl", "ttl", sound), recipe("b/session", "session", sound), recipe("b/connection", "connection", sound), recipe("b/none", "none", sound),
		recipe("b/mute", "session", sound[:3]),
		recipe("b/blind", "ttl", []string{"exclusive", "cleans-up"}),
	)
}

// e is an expectation by its three answers.
func e(verdict, promise, liveness string) scenario.Expect {
	return scenario.Expect{Verdict: verdict, Promise: promise, Liveness: liveness}
}

func TestExpectationsUnderFaults(t *testing.T) {
	const short, long = "workload: {kind: hot-key, hold: 10ms}", "workload: {kind: hot-key, hold: 5s}"
	all := []string{"b/ttl", "b/session", "b/connection", "b/none", "b/blind"}
	for _, c := range []struct {
		recipes []string
		rest    string
		want    scenario.Expect
	}{
		{all[:2], short + ", faults: holder-pause", e("unsafe", "kept", "live")},
		{all[2:4], short + ", faults: holder-pause", e("safe", "kept", "live")},
		{all[4:], short + ", faults: holder-pause", e("unsafe", "", "live")}, // its late release frees another's

		{all[:3], short + ", faults: holder-kill", e("safe", "kept", "live")},
		{all[3:4], short + ", faults: holder-kill", e("safe", "kept", "")},
		{all[4:], short + ", faults: holder-kill", e("", "", "live")},
		{all[:2], short + ", faults: holder-cut-kill", e("safe", "kept", "live")},
		{all[2:4], short + ", faults: holder-cut-kill", e("safe", "kept", "")},

		{all[:2], short + ", faults: holder-cut", e("safe", "kept", "live")},
		{all[2:4], short + ", faults: holder-cut", e("safe", "kept", "")},
		{[]string{"b/mute"}, short + ", faults: holder-cut", e("safe", "", "live")}, // its late release says nothing
		{[]string{"b/mute"}, short + ", faults: holder-pause", e("unsafe", "", "live")},
		{[]string{"b/mute"}, short + ", faults: holder-kill", e("safe", "", "live")},
		{all[:1], long + ", faults: holder-cut", e("unsafe", "kept", "live")},
		{all[1:2], long + ", faults: holder-cut", e("", "kept", "live")}, // the loss may be reported in time
		{all[:1], "workload: {kind: hot-key, hold: 5s, watch_lease: true}, faults: holder-cut", e("safe", "kept", "live")},
		{all[2:3], long + ", faults: holder-cut", e("safe", "kept", "")}, // no server sees its end
		{all[2:3], long + ", faults: holder-refuse", e("", "", "")},
		{all[2:3], short + ", faults: holder-reset", e("", "", "")},
		{all[:2], short + ", faults: holder-reset", e("safe", "kept", "live")},

		{all[:2], short + ", faults: holder-reply-lost", e("safe", "kept", "live")},
		{all[:4], short + ", faults: {kind: step-reply-lost, step: acquiring}", e("", "kept", "")},
		{all[4:], short + ", faults: {kind: step-reply-lost, step: acquiring}", e("", "", "")},
		{all, short + ", faults: {kind: step-pause, step: delete}", e("", "", "")},
		{all[:4], short + ", faults: holder-delay", e("safe", "kept", "live")},
		{all[:2], short + ", faults: {kind: holder-delay, by: 1s}", e("", "kept", "live")},
		{all[:4], short + ", faults: holder-clock", e("safe", "kept", "live")},

		{all[:2], short + ", faults: next-waiter-pause", e("safe", "kept", "live")},
		{all[2:4], short + ", faults: next-waiter-pause", e("safe", "kept", "")},
		{all[:3], short + ", faults: next-waiter-kill", e("safe", "kept", "live")},
		{all[1:2], short + ", faults: next-waiter-cut-in", e("safe", "kept", "")},
		{all[:4], short + ", faults: random-nonholder-kill", e("safe", "kept", "live")},
		{all[:2], short + ", faults: random-nonholder-pause", e("safe", "kept", "live")},

		{all[:2], short + ", topology: quorum, faults: leader-pause", e("safe", "kept", "live")}, // the others elect a leader
		{all[:2], short + ", topology: quorum, faults: follower-pause", e("safe", "kept", "live")},
		{all[:2], short + ", faults: leader-pause", e("safe", "kept", "")}, // no other server serves
		{all[:2], short + ", topology: quorum, faults: majority-pause", e("safe", "kept", "")},
		{all[:2], short + ", topology: quorum, faults: leader-kill", e("", "", "")}, // it has forgotten
		{all[:2], short + ", topology: quorum, servers: {b: {durable: yes}}, faults: minority-kill", e("safe", "kept", "live")},
		{all[:2], short + ", topology: quorum, servers: {b: {durable: yes}}, faults: each-restart", e("safe", "kept", "")},
		{all[2:3], short + ", topology: quorum, servers: {b: {durable: yes}}, faults: each-restart", e("", "", "")},
		{all[2:3], short + ", faults: leader-reset", e("", "", "")},
		{all[:2], short + ", faults: leader-reset", e("safe", "kept", "live")},
		{all[:2], long + ", topology: quorum, faults: leader-cut-clients", e("", "kept", "live")},
		{all[:2], short + ", clients: 1, faults: leader-reset", e("", "kept", "")},

		// Of several the worst that one of them promises.
		{all[:2], short + ", faults: [holder-pause, leader-restart]", e("unsafe", "", "")},
		{all[:2], short + ", faults: [holder-cut, leader-pause]", e("safe", "kept", "")},
	} {
		for _, id := range c.recipes {
			f := parse(t, fmt.Sprintf("name: t\ndefaults: {clients: 4}\nscenarios:\n  - {name: b, recipes: %s, %s}\n", id, c.rest))
			list, err := f.Expand(hurtable())
			if err != nil {
				t.Errorf("%s, %s: %v", id, c.rest, err)
				continue
			}
			if got := list[0].Expect; !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s, %s: %+v, want %+v", id, c.rest, got, c.want)
			}
		}
	}
}
