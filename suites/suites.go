package suites

import "github.com/lockbench/lockbench/scenario"

// Names lists the built-in suites, the default first.
func Names() []string { panic("stub") }

// Load parses a built-in suite. An unknown name is a scenario.ErrInvalid that
// tells the nearest ones.
func Load(name string) (scenario.File, error) { panic("stub") }
