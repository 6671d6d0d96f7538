package advise

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/lockbench/lockbench/internal/printable"
)

// Text writes the page: the answers from the best to the worst, each point with
// the folder of the scenario that proves it.
func Text(w io.Writer, q Question, answers []Answer) error {
	var b strings.Builder
	needs := ""
	if len(q.Needs) > 0 {
		needs = ", needs " + strings.Join(q.Needs, " and ")
	}
	hold := q.Longest.String()
	if q.Shortest < q.Longest {
		hold = q.Shortest.String() + " to " + hold
	}
	fmt.Fprintf(&b, "Which lock for holds of %s with TTL %s%s?\n", hold, q.TTL, needs)
	if q.Longest.D().Seconds() > mostTTLs*q.TTL.D().Seconds() {
		fmt.Fprintf(&b, "Holds were measured up to %d TTLs.\n", mostTTLs)
	}
	b.WriteString("A hold counts in TTLs: the scenarios may use shorter times.\n")
	width, parent := 0, ""
	for _, a := range answers {
		for _, p := range a.Points {
			switch dir := filepath.Dir(p.Scenario); {
			case p.Scenario == "":
			case parent == "":
				parent = dir
			case parent != dir:
				parent = "." // several runs: no path can be shortened
			}
		}
		width = max(width, len(printable.Name(a.Recipe)))
	}
	prefix := ""
	if parent != "" && parent != "." {
		prefix = parent + string(filepath.Separator)
		fmt.Fprintf(&b, "Scenarios are in %s\n", printable.Line(parent))
	}
	for _, a := range answers {
		fmt.Fprintf(&b, "\n%-12s  %-*s  %s\n", strings.ToUpper(a.Verdict), width, printable.Name(a.Recipe), a.priceText())
		for _, p := range a.Points {
			verdict := p.Verdict
			if verdict == YesIf {
				verdict = "if"
			}
			fmt.Fprintf(&b, "  %-13s %s: %s\n", p.Rule, verdict, printable.Line(strings.ReplaceAll(p.Text, prefix, "")))
			if p.Change != "" {
				fmt.Fprintf(&b, "  %-13s to change that: %s\n", "", printable.Line(strings.ReplaceAll(p.Change, prefix, "")))
			}
			if p.Scenario != "" {
				fmt.Fprintf(&b, "  %-13s -> %s\n", "", printable.Line(strings.TrimPrefix(p.Scenario, prefix)))
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// priceText is what the lock costs, as far as it was measured.
func (a Answer) priceText() string {
	or := func(text string) string {
		if text == "" {
			return NotMeasured
		}
		return text
	}
	return fmt.Sprintf("requests per acquire %s, wait p99 %s, takeover %s", or(a.Requests), or(a.Wait), or(a.Takeover))
}
