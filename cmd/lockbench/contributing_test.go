package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/testenv"
)

// walk is one section of CONTRIBUTING.md: files to add, lines to add to files,
// and commands.
type walk struct {
	files    map[string]string // new content by path
	commands []string
}

// TestContributing follows the walks of CONTRIBUTING.md: it applies their code
// blocks to the module by an overlay, and runs their commands.
func TestContributing(t *testing.T) {
	t.Parallel()
	testenv.NeedsServers(t)
	text, err := os.ReadFile("../../CONTRIBUTING.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	walks := 0
	for _, section := range strings.Split(string(text), "\n## ")[1:] {
		title, body, _ := strings.Cut(section, "\n")
		if !strings.HasPrefix(title, "Your first ") {
			continue
		}
		walks++
		t.Run(strings.ReplaceAll(title, " ", "-"), func(t *testing.T) {
			w, err := parseWalk(root, body)
			if err != nil {
				t.Fatal(err)
			}
			if len(w.files) == 0 || len(w.commands) == 0 {
				t.Fatalf("%d files and %d commands", len(w.files), len(w.commands))
			}
			overlay := w.overlay(t, root)
			build := append([]string{"-overlay", overlay}, asBuilt()...)
			for _, command := range w.commands {
				args := strings.Fields(command)
				switch {
				case args[0] == "lockbench":
					args = slices.Concat([]string{"go", "run"}, build, []string{"./cmd/lockbench"}, args[1:])
				case strings.HasPrefix(command, "go test "):
					args = slices.Concat([]string{"go", "test", "-vet=off", "-v"}, build, args[2:])
				default:
					t.Fatalf("cannot run %q", command)
				}
				cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
				cmd.Dir = root
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%s: %v\n%s", command, err, out)
				}
				if args[1] == "test" && !strings.Contains(string(out), "--- PASS") {
					t.Errorf("%s: no test ran\n%s", command, out)
				}
			}
		})
	}
	if walks == 0 {
		t.Error("CONTRIBUTING.md has no section \"Your first ...\"")
	}
}

// asBuilt are the flags by which this test was built: what they build is in the
// cache already.
func asBuilt() []string {
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return []string{"-race"}
	}
	return nil
}

// A code block belongs to the path that was last named before it, in
// backquotes.
var (
	codeBlock = regexp.MustCompile("(?ms)^```([a-z]*)\n(.*?)^```$")
	pathBlock = regexp.MustCompile("`([a-z][a-zA-Z0-9_/.-]*\\.[a-z]+)`")
)

func parseWalk(root, text string) (walk, error) {
	w := walk{files: map[string]string{}}
	from := 0
	for _, at := range codeBlock.FindAllStringSubmatchIndex(text, -1) {
		paths := pathBlock.FindAllStringSubmatch(text[from:at[0]], -1)
		from = at[1]
		kind, block := text[at[2]:at[3]], text[at[4]:at[5]]
		if kind == "" {
			for line := range strings.Lines(block) {
				w.commands = append(w.commands, strings.TrimSpace(line))
			}
			continue
		}
		if len(paths) == 0 {
			return w, fmt.Errorf("no path before the block\n%s", block)
		}
		path := paths[len(paths)-1][1]
		if kind != "diff" {
			if _, err := os.Stat(filepath.Join(root, path)); err == nil {
				return w, fmt.Errorf("new file %s exists", path)
			}
			w.files[path] = block
			continue
		}
		old, ok := w.files[path]
		if !ok {
			data, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				return w, err
			}
			old = string(data)
		}
		changed, err := apply(old, block)
		if err != nil {
			return w, fmt.Errorf("%s: %w", path, err)
		}
		w.files[path] = changed
	}
	return w, nil
}

// apply changes text by a diff of one place without line numbers.
func apply(text, diff string) (string, error) {
	var before, after strings.Builder
	for line := range strings.Lines(diff) {
		if line[0] != '+' {
			before.WriteString(line[1:])
		}
		if line[0] != '-' {
			after.WriteString(line[1:])
		}
	}
	if n := strings.Count(text, before.String()); n != 1 {
		return "", fmt.Errorf("these lines occur %d times:\n%s", n, before.String())
	}
	return strings.Replace(text, before.String(), after.String(), 1), nil
}

// overlay writes the walk's files to a folder and returns the file that maps
// them into the module, for the flag -overlay of go.
func (w walk) overlay(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	var overlay struct{ Replace map[string]string }
	overlay.Replace = map[string]string{}
	for path, text := range w.files {
		name := filepath.Join(dir, strings.ReplaceAll(path, "/", "_"))
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		overlay.Replace[filepath.Join(root, path)] = name
	}
	data, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}
