package scenario

import (
	"bytes"
	"fmt"

	"github.com/goccy/go-yaml"
)

// Resolved is a suite after its expansion: suite.yaml of a run's folder.
type Resolved struct {
	Suite     string     `yaml:"suite"`
	Seed      uint64     `yaml:"seed"`
	Scenarios []Scenario `yaml:"scenarios"`
}

const resolvedHeader = `# The suite as it was run: every scenario, with every default written out.
`

// MarshalSuite writes resolved scenarios as YAML: suite.yaml of a run's
// folder, which ParseResolved reads.
func MarshalSuite(name string, seed uint64, scenarios []Scenario) ([]byte, error) {
	body, err := yaml.MarshalWithOptions(Resolved{Suite: name, Seed: seed, Scenarios: scenarios}, yaml.IndentSequence(true))
	if err != nil {
		return nil, fmt.Errorf("write the resolved suite %s: %w", name, err)
	}
	return append([]byte(resolvedHeader), body...), nil
}

// IsResolved reports whether MarshalSuite wrote the file, not a person: its first
// field is "suite" instead of "name".
func IsResolved(data []byte) bool {
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte("suite:")) {
			return true
		}
	}
	return false
}

// ParseResolved reads what MarshalSuite wrote, and checks it as ParseFile and
// Expand do a suite. With a nil catalogue what depends on the recipes is left
// unchecked. The error is an *Invalid.
func ParseResolved(name string, data []byte, c Catalogue) (Resolved, error) {
	var r Resolved
	d, err := decodeYAML(name, data, maxResolved, &r)
	if err != nil {
		return Resolved{}, err
	}
	e := expansion{file: File{source: name, places: d.places}, names: map[string]bool{}}
	if !isName(r.Suite) {
		e.problem("suite", fmt.Sprintf("invalid suite name %q", r.Suite), nameHint)
	}
	if len(r.Scenarios) == 0 {
		e.problem("scenarios", "the suite has no scenarios", "")
	}
	for i := range r.Scenarios {
		forgetZeros(&r.Scenarios[i])
		sc := r.Scenarios[i]
		path := fmt.Sprintf("scenarios[%d]", i)
		if sc.Name == "" || sc.Name != slug(sc.Name) || len(sc.Name) > 200 {
			e.problem(path+".name", fmt.Sprintf("invalid scenario name %q", sc.Name), "use lower-case letters, digits and hyphens, 200 at most")
		}
		if e.names[sc.Name] {
			e.problem(path+".name", fmt.Sprintf("a second scenario named %q", sc.Name), "give each its own name")
		}
		e.names[sc.Name] = true
		facts, known := RecipeFacts{}, false
		if sc.Recipe == "" {
			e.problem(path+".recipe", "missing recipe", "")
		} else if c != nil {
			if facts, known = c.Recipe(sc.Recipe); !known {
				e.catalogue = c
				e.unknownRecipe(path+".recipe", sc.Recipe)
			}
		}
		for _, x := range append(check(sc, facts, known, nil), checkExpect("expect", sc.Expect)...) {
			e.problem(join(path, x.path), x.message, x.hint)
		}
	}
	if err := e.err(); err != nil {
		return Resolved{}, err
	}
	return r, nil
}
