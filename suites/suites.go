package suites

import (
	"embed"
	"fmt"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/scenario"
)

//go:embed *.yaml
var files embed.FS

// Default is the suite that run takes when none is named.
const Default = "quick"

// Names lists the built-in suites, the default first.
func Names() []string {
	return []string{Default, "safety", "self-test", "properties", "cost", "takeover", "known-failures", "claims"}
}

// Load parses a built-in suite. The error for a name that is none of Names is
// a scenario.ErrInvalid with a hint.
func Load(name string) (scenario.File, error) {
	data, err := files.ReadFile(name + ".yaml")
	if err != nil {
		return scenario.File{}, &scenario.Invalid{Problems: []scenario.Problem{{
			Message: fmt.Sprintf("no built-in suite %q, and no file of that name", name),
			Hint:    scenario.Suggest(name, Names()),
		}}}
	}
	return scenario.ParseFile("suite "+name, data, chaos.Actions())
}

// Entry is a suite and its line in a list.
type Entry = scenario.Entry

// List describes the built-in suites, in the order of Names.
func List() ([]Entry, error) {
	entries := make([]Entry, 0, len(Names()))
	for _, name := range Names() {
		f, err := Load(name)
		if err != nil {
			return nil, fmt.Errorf("load the built-in suite %s: %w", name, err)
		}
		entries = append(entries, Entry{Name: name, Summary: f.Description})
	}
	return entries, nil
}
