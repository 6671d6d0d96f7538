package run

import (
	"time"

	"github.com/lockbench/lockbench/cluster"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/scenario"
	"github.com/lockbench/lockbench/workloads"
)

// Facts is what a suite's expansion has to know of a recipe.
func Facts(r impls.Recipe) scenario.RecipeFacts {
	info := r.Info()
	f := scenario.RecipeFacts{
		ID: info.ID, Backend: info.Backend, Bound: string(info.Bound), Fencing: info.Fencing,
		Broken: info.Broken, Topologies: info.Topologies, Takeover: info.Takeover,
		CheckTTL: func(ttl time.Duration, settings map[string]string) error {
			return r.CheckTTL(ttl, cluster.LimitsFor(info.Backend, settings))
		},
	}
	for _, p := range info.Has {
		f.Has = append(f.Has, string(p))
	}
	for _, s := range workloads.Steps(info) {
		f.Steps = append(f.Steps, string(s))
	}
	return f
}
