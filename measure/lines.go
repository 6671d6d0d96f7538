package measure

import (
	_ "embed"
	"encoding/json"
	"strings"

	"github.com/lockbench/lockbench/scenario"
)

// lines.json counts the lines of code of our recipes. A test counts them again,
// and tells how to write the file anew.
//
//go:embed lines.json
var countedLines []byte

// lineCounts is what lines.json holds: lines with code on them, so without
// comments, blank lines and tests.
type lineCounts struct {
	// Recipes counts what is a recipe's alone, by its id.
	Recipes map[string]int64 `json:"recipes"`
	// Shared counts what the recipes of a backend have in common, by backend:
	// connections, errors, the queue.
	Shared map[string]int64 `json:"shared"`
}

// codeLines is the effort that a recipe is, or nil for one that is not ours.
func codeLines(id string) *scenario.CodeLines {
	var c lineCounts
	if err := json.Unmarshal(countedLines, &c); err != nil {
		return nil // the test of the file fails then, and nobody else can mend it
	}
	own, ok := c.Recipes[id]
	if !ok {
		return nil
	}
	backend, _, _ := strings.Cut(id, "/")
	return &scenario.CodeLines{Recipe: own, Shared: c.Shared[backend]}
}
