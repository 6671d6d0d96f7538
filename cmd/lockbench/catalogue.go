package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/cluster"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/scenario"
)

// catalogue tells the scenario package what it has to know of our recipes.
func catalogue() scenario.Catalogue {
	var facts []scenario.RecipeFacts
	for _, r := range all.Recipes() {
		info := r.Info()
		facts = append(facts, scenario.RecipeFacts{
			ID: info.ID, Backend: info.Backend, Bound: string(info.Bound), Fencing: info.Fencing,
			Broken: info.Broken, Topologies: info.Topologies, Has: texts(info.Has), Takeover: info.Takeover,
			Steps:    slices.Concat(texts(info.Steps), []string{string(impls.StepWaiting), string(impls.StepWoken)}),
			CheckTTL: checkTTL(r, info.Backend),
		})
	}
	return scenario.NewCatalogue(facts...)
}

func checkTTL(r impls.Recipe, backend string) func(time.Duration, map[string]string) error {
	return func(ttl time.Duration, settings map[string]string) error {
		return r.CheckTTL(ttl, cluster.LimitsFor(backend, settings))
	}
}

func unknownRecipe(id string) error {
	err := fmt.Errorf("no recipe %q", id)
	if near := catalogue().Nearest(id); len(near) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return err
}
