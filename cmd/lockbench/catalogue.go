package main

import (
	"fmt"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/run"
	"github.com/lockbench/lockbench/internal/scenario"
)

// catalogue has what the scenario package needs to know about our recipes.
func catalogue() scenario.Catalogue {
	var facts []scenario.RecipeFacts
	for _, r := range all.Recipes() {
		facts = append(facts, run.Facts(r))
	}
	return scenario.NewCatalogue(chaos.Actions(), facts...)
}

func unknownRecipe(id string) error {
	return fmt.Errorf("no recipe %q; %s", id, scenario.RecipeHint(catalogue(), id))
}
