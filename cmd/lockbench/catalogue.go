package main

import (
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/run"
	"github.com/lockbench/lockbench/scenario"
)

// catalogue tells the scenario package what it has to know of our recipes.
func catalogue() scenario.Catalogue {
	var facts []scenario.RecipeFacts
	for _, r := range all.Recipes() {
		facts = append(facts, run.Facts(r))
	}
	return scenario.NewCatalogue(facts...)
}

func unknownRecipe(id string) error {
	err := fmt.Errorf("no recipe %q", id)
	if near := catalogue().Nearest(id); len(near) > 0 {
		return fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return fmt.Errorf("%w (see lockbench list recipes)", err)
}
