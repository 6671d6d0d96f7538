package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/lockbench/lockbench/internal/scenario"
)

// LoadDocument reads result.json of a run's folder. The error is fs.ErrNotExist
// where the run did not get that far.
func LoadDocument(dir string) (scenario.Document, error) {
	var doc scenario.Document
	path := filepath.Join(dir, scenario.FileResult)
	data, err := os.ReadFile(path)
	if err != nil {
		return doc, err
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return doc, fmt.Errorf("read %s: %w", path, err)
	}
	if doc.Schema != scenario.SchemaVersion {
		return doc, fmt.Errorf("read %s: schema %d, but this lockbench reads %d", path, doc.Schema, scenario.SchemaVersion)
	}
	return doc, nil
}
