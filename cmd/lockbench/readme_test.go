package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/scenario"
)

// documents returns the project's Markdown files by their path from the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		paths, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v, %v", pattern, paths, err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.ToSlash(strings.TrimPrefix(path, filepath.Join("..", "..")+string(filepath.Separator)))] = string(data)
		}
	}
	return texts
}

// Every suite in the documents is valid; other YAML can be parsed.
func TestSuitesInDocuments(t *testing.T) {
	examples := map[string]int{}
	for path, text := range documents(t) {
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(text, -1) {
			suite := block[1]
			if strings.HasPrefix(strings.TrimSpace(suite), "faults:") { // a part of a scenario
				suite = "name: part\nscenarios:\n  - name: part\n    recipes: redis/token\n    workload: {kind: hot-key, hold: 3500ms}\n" + suite
			}
			if !strings.HasPrefix(suite, "name:") {
				var any any
				if err := yaml.Unmarshal([]byte(suite), &any); err != nil {
					t.Errorf("%s: %v\n%s", path, err, suite)
				}
				continue
			}
			file, err := scenario.ParseFile(path, []byte(suite), chaos.Actions())
			if err != nil {
				t.Error(err)
				continue
			}
			if _, err := file.Expand(catalogue()); err != nil {
				t.Error(err)
			}
			examples[path]++
		}
	}
	if examples["README.md"] < 1 || examples["docs/guide.md"] < 1 || examples["docs/faults.md"] < 1 {
		t.Errorf("suites found by document: %v", examples)
	}
}

// Every command in the documents is understood. Runs are only planned.
func TestCommandsInDocuments(t *testing.T) {
	ran := map[string]int{}
	for path, text := range documents(t) {
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "  ")
			args := strings.Fields(line)
			if path == "CONTRIBUTING.md" { // TestContributing runs its commands
				continue
			}
			if len(args) < 2 || args[0] != "lockbench" || strings.ContainsAny(line, ".|[>") {
				continue
			}
			switch args[1] {
			case "run":
				if strings.Contains(line, "results/") {
					continue
				}
				args = append(args, "--dry-run")
			case "list", "version", "completion":
			default:
				continue
			}
			ran[path]++
			var stdout, stderr bytes.Buffer
			if code := execute(t.Context(), args[1:], strings.NewReader(""), &stdout, &stderr); code != exitOK || stdout.Len() == 0 {
				t.Errorf("%s: %s ends with %d: %s", path, strings.Join(args, " "), code, stderr.String())
			}
		}
	}
	if ran["README.md"] < 2 || ran["docs/guide.md"] < 10 {
		t.Errorf("commands run by document: %v", ran)
	}
}

// Every relative link in the documents leads to a file, and its fragment to a
// heading.
func TestLinksInDocuments(t *testing.T) {
	texts := documents(t)
	headings := map[string][]string{}
	notInAnchors := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	for path, text := range texts {
		for line := range strings.Lines(text) {
			if title, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " "); ok && strings.HasPrefix(line, "#") {
				anchor := notInAnchors.ReplaceAllString(strings.ToLower(strings.TrimSpace(title)), "")
				headings[path] = append(headings[path], strings.ReplaceAll(anchor, " ", "-"))
			}
		}
	}
	links := 0
	for path, text := range texts {
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(text, -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			links++
			file, fragment, _ := strings.Cut(link[1], "#")
			target := path
			if file != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(path), file))
			}
			if _, err := os.Stat(filepath.Join("../..", target)); err != nil {
				t.Errorf("%s links to %s: %v", path, link[1], err)
			}
			if fragment != "" && !slices.Contains(headings[target], fragment) {
				t.Errorf("%s links to %s, and %s has the headings %q", path, link[1], target, headings[target])
			}
		}
	}
	if links < 20 {
		t.Errorf("only %d links were found", links)
	}
}

func TestReadmeStaysShort(t *testing.T) {
	const limit = 250
	if lines := strings.Count(documents(t)["README.md"], "\n"); lines > limit {
		t.Errorf("README.md has %d lines, the limit is %d: move text to docs/", lines, limit)
	}
}

// The workflow file is YAML, and runs the targets that the Makefile has.
func TestWorkflow(t *testing.T) {
	data, err := os.ReadFile("../../.github/workflows/ci.yml")
	if err != nil {
		t.Fatal(err)
	}
	var workflow struct {
		Jobs map[string]struct {
			RunsOn string `yaml:"runs-on"`
			Steps  []struct{ Run string }
		}
	}
	if err := yaml.Unmarshal(data, &workflow); err != nil {
		t.Fatal(err)
	}
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for name, job := range workflow.Jobs {
		if job.RunsOn == "" || len(job.Steps) == 0 {
			t.Errorf("job %s has no runner or no steps", name)
		}
		for _, step := range job.Steps {
			target, ok := strings.CutPrefix(step.Run, "make ")
			if !ok {
				continue
			}
			targets = append(targets, target)
			if !strings.Contains(string(makefile), "\n"+target+":") {
				t.Errorf("job %s runs make %s, which the Makefile lacks", name, target)
			}
		}
	}
	if !slices.Contains(targets, "test") || !slices.Contains(targets, "release") {
		t.Errorf("the workflow runs make for %q", targets)
	}
}
