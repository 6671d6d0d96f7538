package reports

import (
	"encoding/xml"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/scenario"
)

type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	junitTotals
	Suites []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	junitTotals
	Cases []junitCase `xml:"testcase"`
}

// junitTotals are the attributes of the whole and of each suite.
type junitTotals struct {
	Name     string `xml:"name,attr"`
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
	Skipped  int    `xml:"skipped,attr"`
	Time     string `xml:"time,attr"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	Class     string        `xml:"classname,attr"`
	Time      string        `xml:"time,attr"`
	Failure   *junitMessage `xml:"failure"`
	Error     *junitMessage `xml:"error"`
	Skipped   *junitMessage `xml:"skipped"`
	SystemOut string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Type    string `xml:"type,attr,omitempty"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// junit writes a case per scenario, for CI servers. An inconclusive scenario is a
// failure and an interrupted one is an error: a missing answer must not turn a
// build green.
func junit(run run) ([]byte, error) {
	d := run.doc
	all := junitSuites{junitTotals: junitTotals{Name: "lockbench " + clean(d.Suite)}}
	at := map[string]int{}
	var times []int64
	var total int64
	for n, r := range d.Scenarios {
		i, ok := at[r.Group]
		if !ok {
			i = len(all.Suites)
			at[r.Group] = i
			all.Suites = append(all.Suites, junitSuite{junitTotals: junitTotals{Name: or(clean(r.Group), "scenarios")}})
			times = append(times, 0)
		}
		s := &all.Suites[i]
		c := testCase(r, run.evidence(n))
		s.Cases = append(s.Cases, c)
		s.Tests++
		all.Tests++
		times[i] += r.DurationNS
		total += r.DurationNS
		switch {
		case c.Failure != nil:
			s.Failures++
			all.Failures++
		case c.Error != nil:
			s.Errors++
			all.Errors++
		case c.Skipped != nil:
			s.Skipped++
			all.Skipped++
		}
	}
	for i := range all.Suites {
		all.Suites[i].Time = xmlSeconds(times[i])
	}
	all.Time = xmlSeconds(total)
	data, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return nil, err
	}
	return slices.Concat([]byte(xml.Header), data, []byte("\n")), nil
}

// evidence is the first violation of a scenario in a sentence, and where to see more
// of it; "" if it has none.
func (r run) evidence(n int) string {
	res := r.doc.Scenarios[n]
	if len(res.Safety.Witnesses) == 0 {
		return ""
	}
	dir := clean(filepath.ToSlash(r.dir))
	return fmt.Sprintf("first violation: %s\nreport: %s#s%d\nexplain: lockbench check %s --explain 1",
		clean(res.Safety.Witnesses[0].Sentence), path.Join(dir, FileHTML), n+1, path.Join(dir, scenario.DirScenarios, clean(res.Name)))
}

func testCase(r result, evidence string) junitCase {
	c := junitCase{Name: clean(r.Name), Class: "lockbench." + strings.ReplaceAll(clean(r.Recipe), "/", "."), Time: xmlSeconds(r.DurationNS)}
	reason := or(clean(r.Reason), noReason)
	text := strings.TrimSpace(reasons(r) + "\n" + evidence)
	o := outcomeOf(r)
	surprises := make([]string, 0, len(r.Surprises))
	for _, s := range r.Surprises {
		surprises = append(surprises, reasonOf(o, s))
	}
	msg := or(strings.Join(surprises, "; "), "no reason recorded")
	switch o {
	case outcomeMissing:
		c.Skipped = &junitMessage{Message: reason}
	case outcomeKnown:
		c.Skipped = &junitMessage{Message: "known to fail, " + clean(r.KnownFailure) + ": " + msg}
		c.SystemOut = text
	case outcomeFailed, outcomeInterrupted:
		c.Error = &junitMessage{Type: string(o), Message: reason + soFar(r), Text: text}
	case outcomeWrong:
		c.Failure = &junitMessage{Type: "not as expected", Message: msg, Text: text}
	case outcomeInconclusive:
		c.Failure = &junitMessage{Type: "inconclusive", Message: msg, Text: text}
	default:
		c.SystemOut = text
	}
	return c
}

// reasons lists the answers with their reasons, a line each.
func reasons(r result) string {
	if r.Status != scenario.StatusDone && !cut(r) {
		return ""
	}
	var lines []string
	for _, a := range answerKinds() {
		lines = append(lines, strings.TrimSuffix(fmt.Sprintf("%s %s: %s", a.Name, or(clean(a.Of(r.Safety)), scenario.Undecided), a.why(r.Safety)), ": "))
	}
	return strings.Join(lines, "\n")
}

func xmlSeconds(ns int64) string { return fmt.Sprintf("%.3f", float64(ns)/1e9) }
