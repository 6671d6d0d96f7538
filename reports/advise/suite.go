package advise

import (
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Suite is what must be measured to answer the question for some recipes. Times
// are scaled down to the shortest TTL that all of them serve, because what
// matters is the hold in TTLs. can reports whether a recipe's servers support a
// fault.
func Suite(q Question, recipes []scenario.RecipeFacts, can func(r scenario.RecipeFacts, topology, fault string) bool) scenario.File {
	ttl := q.TTL
	for _, shorter := range []time.Duration{4 * time.Second, 2 * time.Second} {
		if q.TTL.D() > shorter && !slices.ContainsFunc(recipes, func(r scenario.RecipeFacts) bool {
			return r.CheckTTL != nil && r.CheckTTL(shorter, nil) != nil
		}) {
			ttl = scenario.Duration(shorter)
		}
	}
	longest := time.Duration(q.ratio() * float64(ttl.D()))
	shortest := min(longest, time.Duration(q.Shortest.D().Seconds()/q.TTL.D().Seconds()*float64(ttl.D())))
	holds := scenario.Dist{Kind: scenario.DistUniform, A: shortest, B: longest}
	if shortest == longest {
		holds = scenario.Constant(longest)
	}
	window := scenario.Duration(max(5*time.Second, 5*longest/2))
	brief := scenario.Duration(4 * time.Second)
	guarded := scenario.Load{Kind: scenario.GuardedCounter, Hold: scenario.Constant(50 * time.Millisecond), Think: scenario.Constant(20 * time.Millisecond)}
	file := scenario.File{Name: "advise", Defaults: scenario.Settings{Scenario: scenario.Scenario{TTL: ttl, Warmup: scenario.Duration(500 * time.Millisecond), Expect: scenario.Expect{Verdict: "any", Promise: "any", Liveness: "any"}}}}
	for _, topology := range []string{scenario.TopologySingle, "replicated", "quorum", "sharded"} {
		add := func(name, fault string, load scenario.Load, clients int, duration scenario.Duration) {
			b := scenario.Block{Name: name}
			if topology != scenario.TopologySingle {
				b.Name += "-" + topology
			}
			b.Topology, b.Workload, b.Duration = []string{topology}, load, duration
			if clients > 0 {
				b.Clients = []int{clients}
			}
			if fault != "" {
				b.Faults = []scenario.FaultSpec{{Fault: scenario.Fault{Kind: fault}}}
			}
			for _, r := range recipes {
				if topologyFor(q, r) == topology && (fault == "" || can(r, topology, fault)) {
					b.Recipes = append(b.Recipes, r.ID)
				}
			}
			if load.Kind == scenario.Properties {
				b.Expect = scenario.Expect{}
			}
			if len(b.Recipes) > 0 {
				file.Scenarios = append(file.Scenarios, b)
			}
		}
		add("hold", "", scenario.Load{Kind: scenario.GuardedCounter, Hold: holds}, 4, window)
		add("price", "", scenario.Load{Kind: scenario.HotKey, Hold: scenario.Constant(min(20*time.Millisecond, max(time.Millisecond, q.Shortest.D())))}, 8, brief)
		add("holder-pause", holderPause, guarded, 4, 0)
		add("holder-kill", holderKill, guarded, 4, 0)
		// The hold must go on while the holder is cut off: one that ends at once has
		// ended with the release, although that does not arrive.
		cutOff := guarded
		cutOff.Hold = scenario.Constant(max(longest, guarded.Hold.A))
		add("holder-cut", holderCut, cutOff, 4, 0)
		if slices.Contains(q.Needs, NeedFailover) && topology != scenario.TopologySingle {
			guarded.Hold = scenario.Constant(ttl.D() * 3 / 4)
			for _, fault := range failoverFaults() {
				add(fault, fault, guarded, 4, 0)
			}
		}
		if slices.ContainsFunc(q.Needs, func(need string) bool { return need != NeedFailover && need != NeedFencing }) {
			add("properties", "", scenario.Load{Kind: scenario.Properties}, 0, 0)
		}
	}
	return file
}

// topologyFor is where a recipe is measured: on one server, or if the lock must
// survive the loss of one, on several.
func topologyFor(q Question, r scenario.RecipeFacts) string {
	prefer := []string{scenario.TopologySingle, "quorum", "replicated"}
	if slices.Contains(q.Needs, NeedFailover) {
		prefer = []string{"quorum", "replicated", scenario.TopologySingle}
	}
	for _, topology := range prefer {
		if slices.Contains(r.Topologies, topology) {
			return topology
		}
	}
	return r.Topologies[0]
}
