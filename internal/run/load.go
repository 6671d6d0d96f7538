package run

import (
	"fmt"
	"path/filepath"

	"github.com/lockbench/lockbench/internal/scenario"
)

// LoadDocument reads result.json of a run's folder. The error is fs.ErrNotExist
// where the run did not get that far.
func LoadDocument(dir string) (scenario.Document, error) {
	var doc scenario.Document
	path := filepath.Join(dir, scenario.FileResult)
	if err := scenario.ReadJSON(path, &doc); err != nil {
		return doc, fmt.Errorf("read the run in %s: %w", dir, err)
	}
	if doc.Schema != scenario.SchemaVersion {
		return doc, fmt.Errorf("read %s: schema %d, but this lockbench reads %d", path, doc.Schema, scenario.SchemaVersion)
	}
	return doc, nil
}
