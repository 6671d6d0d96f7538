package scenario

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// KnownFailures are failures that the user accepts. They are reported as known
// and do not change the exit code.
type KnownFailures struct {
	file    string
	entries []knownFailure
}

type knownFailure struct{ pattern, reason string }

// ParseKnownFailures reads one failure per line: the name of a scenario, in which *
// stands for any text, and perhaps a reason after it. # begins a comment. The file's
// name is used in messages only.
func ParseKnownFailures(file string, data []byte) (KnownFailures, error) {
	k := KnownFailures{file: file}
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line, _, _ = strings.Cut(line, "#")
		pattern, reason, _ := strings.Cut(strings.TrimSpace(line), " ")
		if pattern == "" {
			continue
		}
		if _, err := path.Match(pattern, ""); err != nil {
			return KnownFailures{}, fmt.Errorf("%s:%d: %q is not the name of a scenario: write one as lockbench run --dry-run prints it, perhaps with a *", file, n, pattern)
		}
		reason = strings.TrimSpace(reason)
		if reason == "" {
			reason = fmt.Sprintf("line %d of %s", n, file)
		}
		k.entries = append(k.entries, knownFailure{pattern, reason})
	}
	return k, nil
}

func (f knownFailure) names(scenario string) bool {
	ok, _ := path.Match(f.pattern, scenario) // the pattern was checked
	return ok
}

// Unmatched lists the entries that name none of the scenarios.
func (k KnownFailures) Unmatched(scenarios []Scenario) []string {
	var list []string
	for _, f := range k.entries {
		if !slices.ContainsFunc(scenarios, func(sc Scenario) bool { return f.names(sc.Name) }) {
			list = append(list, fmt.Sprintf("%s names %s, which is no scenario of this run", k.file, f.pattern))
		}
	}
	return list
}

// Mark notes in a result that its failure is known. A scenario that decided nothing
// or did not run, and an error of lockbench or of a server, are not the failure of a
// lock.
func (k KnownFailures) Mark(r *Result) {
	if !r.Fails() {
		return
	}
	if i := slices.IndexFunc(k.entries, func(f knownFailure) bool { return f.names(r.Name) }); i >= 0 {
		r.KnownFailure = k.entries[i].reason
	}
}

// Gone lists the entries whose scenarios ran and passed.
func (k KnownFailures) Gone(results []Result) []string {
	var list []string
	for _, f := range k.entries {
		ran, passed := 0, 0
		for _, r := range results {
			if f.names(r.Name) && r.Status == StatusDone {
				ran++
				if r.AsExpected != nil && *r.AsExpected {
					passed++
				}
			}
		}
		if ran > 0 && passed == ran {
			list = append(list, fmt.Sprintf("known failure %s did not fail in this run: remove it from %s if it is fixed", f.pattern, k.file))
		}
	}
	return list
}

// Fails reports whether the scenario ran and did not meet an expectation. One that
// decided nothing does not fail, and does not pass either.
func (r Result) Fails() bool { return r.Status == StatusDone && r.AsExpected != nil && !*r.AsExpected }
