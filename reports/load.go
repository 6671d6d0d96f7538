package reports

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports/claims"
)

// run is a run's folder as far as reports need it.
type run struct {
	dir string // "" for a document alone
	doc scenario.Document
	env *scenario.Environment // nil: see envNote
	// envNote is the reason why there is no environment.
	envNote string
}

// load reads a run's folder; environment.json may be missing.
func load(dir string) (run, error) {
	r := run{dir: dir}
	var err error
	if r.doc, err = scenario.ReadDocument(dir); errors.Is(err, fs.ErrNotExist) {
		return run{}, fmt.Errorf("no %s in %s: not a run's folder, or the run ended before its first scenario: %w", scenario.FileResult, dir, err)
	} else if err != nil {
		return run{}, err
	}
	var env scenario.Environment
	switch err := scenario.ReadJSON(filepath.Join(dir, scenario.FileEnvironment), &env); {
	case err == nil:
		r.env = &env
	case errors.Is(err, fs.ErrNotExist):
		r.envNote = "The run's folder has no " + scenario.FileEnvironment + "."
	default:
		r.envNote = "The run's " + scenario.FileEnvironment + " cannot be read: " + err.Error()
	}
	return r, nil
}

// has reports whether the run's folder has a file; name is slash-separated.
func (r run) has(name string) bool {
	if r.dir == "" || !filepath.IsLocal(filepath.FromSlash(name)) {
		return false
	}
	_, err := os.Stat(filepath.Join(r.dir, filepath.FromSlash(name)))
	return err == nil
}

// links are the run's files that the numbers come from.
func links(r run) []link {
	var out []link
	for _, l := range []link{
		{scenario.FileResult, "every number of this report, and more"},
		{scenario.FileEnvironment, "host, versions, settings read back from the servers"},
		{scenario.FileSuite, "the resolved suite with its seed; repeat it with lockbench run"},
		{claims.File, "the verdicts on the documents' claims, with the rules and the numbers"},
		{FileBench, "the numbers for benchstat"},
		{FileJUnit, "the results for CI"},
		{FileAnnotations, "the times of the faults, for Grafana"},
		{scenario.DirScenarios, "a folder per scenario: history (every call), latency.hlog (histograms by second), faults.jsonl, samples.json"},
		{scenario.DirServers, "the servers' logs"},
	} {
		if r.has(l.Path) || l.Path == FileBench || l.Path == FileJUnit || l.Path == claims.File && r.doc.Suite == claims.Suite {
			out = append(out, l)
		}
	}
	return out
}
