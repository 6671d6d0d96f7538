// Plainenglish rejects words that this project does not use in its comments,
// messages, identifiers, suites and documents, and names the words to use. It
// reads every text file of the module:
//
//	go run ./tools/plainenglish            fail on words that are not in the baseline
//	go run ./tools/plainenglish -all [DIR] list every occurrence, those of the baseline too
//	go run ./tools/plainenglish -update    lower the baseline to what is there
//
// words.go holds the words. allowed.txt lists where a word may stand, with the
// reason: "PATH WORD REASON", where a path that ends in / is a folder and the
// word * is every word. baseline.txt lists files with words from before this
// check and how many: "PATH COUNT". The counts may only fall.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	allowedFile  = "tools/plainenglish/allowed.txt"
	baselineFile = "tools/plainenglish/baseline.txt"
)

func main() {
	all := flag.Bool("all", false, "list every occurrence, also those that the baseline permits")
	update := flag.Bool("update", false, "lower the baseline to the occurrences that are left")
	flag.Parse()
	if err := check(os.Stdout, ".", flag.Arg(0), *all, *update); err != nil {
		fmt.Fprintln(os.Stderr, "plainenglish:", err)
		os.Exit(1)
	}
}

// check reads the module at root and prints what it finds to out. With a
// folder it lists that folder only.
func check(out io.Writer, root, folder string, all, update bool) error {
	allowed, err := readAllowed(filepath.Join(root, allowedFile))
	if err != nil {
		return err
	}
	baseline, err := readBaseline(filepath.Join(root, baselineFile))
	if err != nil {
		return err
	}
	found, err := findAll(root, allowed)
	if err != nil {
		return err
	}
	if update {
		return writeBaseline(filepath.Join(root, baselineFile), baseline, found)
	}
	shown, excess := 0, 0
	for _, path := range sortedKeys(found) {
		over := len(found[path]) > baseline[path]
		if over {
			excess += len(found[path]) - baseline[path]
		}
		if !strings.HasPrefix(path, folder) || !over && !all {
			continue
		}
		for _, f := range found[path] {
			fmt.Fprintln(out, f)
			shown++
		}
		if over && baseline[path] > 0 {
			fmt.Fprintf(out, "%s: %d occurrences, and the baseline permits %d\n", path, len(found[path]), baseline[path])
		}
	}
	if all {
		fmt.Fprintf(out, "%d occurrences\n", shown)
	}
	if excess > 0 {
		return fmt.Errorf("%d occurrences of words that words.go rules out; for quoted text of others add a line to %s", excess, allowedFile)
	}
	return nil
}

// findAll returns the findings of every text file below root, by path.
func findAll(root string, allowed []allowance) (map[string][]finding, error) {
	found := map[string][]finding{}
	table := newTable(rules)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		if d.IsDir() {
			if skipped(d.Name()) && relative != "." {
				return fs.SkipDir
			}
			return nil
		}
		if !isText(d.Name()) {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, f := range table.find(relative, string(data)) {
			if !slices.ContainsFunc(allowed, func(a allowance) bool { return a.covers(f) }) {
				found[relative] = append(found[relative], f)
			}
		}
		return nil
	})
	return found, err
}

func skipped(folder string) bool {
	return folder == "bin" || folder == "results" || strings.HasPrefix(folder, ".") && folder != ".github"
}

func isText(name string) bool {
	switch filepath.Ext(name) {
	case ".go", ".yaml", ".yml", ".md", ".txtar", ".txt", ".sh", ".json", ".html", ".tmpl":
		return true
	}
	return name == "Makefile"
}

// allowance is a place where a word may stand.
type allowance struct{ path, word string }

func (a allowance) covers(f finding) bool {
	inPath := a.path == f.path || strings.HasSuffix(a.path, "/") && strings.HasPrefix(f.path, a.path)
	return inPath && (a.word == "*" || strings.EqualFold(a.word, f.word))
}

func readAllowed(path string) ([]allowance, error) {
	var list []allowance
	err := eachLine(path, func(line string) error {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			return fmt.Errorf("%q: want PATH WORD REASON", line)
		}
		list = append(list, allowance{fields[0], fields[1]})
		return nil
	})
	return list, err
}

func readBaseline(path string) (map[string]int, error) {
	counts := map[string]int{}
	err := eachLine(path, func(line string) error {
		file, number, _ := strings.Cut(line, " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			return fmt.Errorf("%q: want PATH COUNT", line)
		}
		counts[file] = n
		return nil
	})
	return counts, err
}

// eachLine calls f with every line of a file but empty ones and comments. A
// file that does not exist has no lines.
func eachLine(path string, f func(string) error) error {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := f(line); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return lines.Err()
}

// writeBaseline stores the counts of what was found. A file may have moved, so
// only the sum is compared with that of the old baseline.
func writeBaseline(path string, old map[string]int, found map[string][]finding) error {
	before, now := 0, 0
	for _, n := range old {
		before += n
	}
	var b strings.Builder
	b.WriteString("# Occurrences from before the check, by file. They may only become fewer: go run ./tools/plainenglish -update\n")
	for _, file := range sortedKeys(found) {
		fmt.Fprintf(&b, "%s %d\n", file, len(found[file]))
		now += len(found[file])
	}
	if len(old) > 0 && now > before {
		return fmt.Errorf("%d occurrences, %d more than the baseline permits: use the words that the check suggests", now, now-before)
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}

func sortedKeys(m map[string][]finding) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
