package reports

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports/claims"
)

// claimsDoc is a run of the suite claims that decides one claim.
func claimsDoc() scenario.Document {
	d := scenario.Document{Schema: scenario.SchemaVersion, Suite: claims.Suite}
	for g, group := range []string{"dead-holder", "late-release", "dilemma-dead-ttl-1s", "dilemma-dead-ttl-8s"} {
		for i := range 3 {
			d.Scenarios = append(d.Scenarios, scenario.Result{
				Name: group + "-redis-token-4c-r" + string(rune('1'+i)), Group: group, Recipe: "redis/token", Backend: "redis", Repeat: i + 1, Clients: 4, Status: scenario.StatusDone,
				TTL:      scenario.Duration(1+g) * scenario.Duration(time.Second),
				Takeover: &scenario.TakeoverTimes{Holds: 1, Granted: 1, FromDeath: &scenario.Latency{P50: 1e6 << (3 * g), Count: 1}},
				Safety:   scenario.Safety{Verdict: scenario.Unsafe, Promise: scenario.Kept, Liveness: scenario.Live},
			})
		}
	}
	return d
}

func TestClaimsAreDecidedAndDrawnWithTheReport(t *testing.T) {
	dir := written(t, claimsDoc())
	var list []claims.Decision
	data, err := os.ReadFile(filepath.Join(dir, claims.File))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	for _, d := range list {
		if want := map[bool]string{true: claims.Confirmed, false: claims.Inconclusive}[d.ID == "redis-token-lua"]; d.Verdict != want {
			t.Errorf("%s is %s, want %s: %s", d.ID, d.Verdict, want, d.Reason)
		}
	}
	for file, texts := range map[string][]string{
		FileMarkdown: {"## Claims", "| redis-token-lua | confirmed |", "rank-performance: the documents' order", "(report.html#s4)", "Hazelcast was not run"},
		FileHTML:     {`id="CLAIMS"`, `href="#s4"`, "redis-token-lua"},
	} {
		page, err := os.ReadFile(filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range texts {
			if !strings.Contains(string(page), want) {
				t.Errorf("%s has no %q", file, want)
			}
		}
	}
	plots, err := filepath.Glob(filepath.Join(dir, DirPlots, "*.svg"))
	if err != nil || len(plots) != 1 || !strings.Contains(plots[0], "cache-ttl-dilemma-time-that-the-lock-of-a-dead-holder-is-idle") {
		t.Errorf("plots: %v, %v", plots, err)
	}
}

func TestOnlyRunsOfTheSuiteDecideClaims(t *testing.T) {
	d := claimsDoc()
	d.Suite = "safety"
	dir := written(t, d)
	if _, err := os.Stat(filepath.Join(dir, claims.File)); err == nil {
		t.Error("a run of another suite has a " + claims.File)
	}
	if _, err := Claims([]string{dir}, nil); err == nil || !strings.Contains(err.Error(), `only the suite "claims" decides claims`) {
		t.Errorf("claims of another suite: %v", err)
	}
}

func TestClaimsNameTheFoldersOfSeveralRuns(t *testing.T) {
	a, b, one := t.TempDir(), t.TempDir(), t.TempDir() // claims are decided from what runs wrote: no report is drawn
	writeRun(t, a, claimsDoc())
	writeRun(t, b, claimsDoc())
	list, err := Claims([]string{a, b}, []string{"redis-token-lua"})
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if got := list[0].Parts[0].Scenarios; len(got) != 6 || got[3] != filepath.ToSlash(b)+"/scenarios/late-release-redis-token-4c-r1" {
		t.Errorf("scenarios: %v", got)
	}
	d := claimsDoc()
	d.Started = time.Unix(1e9, 0)
	writeRun(t, one, d)
	link := filepath.Join(t.TempDir(), "latest")
	if err := os.Symlink(one, link); err != nil {
		t.Fatal(err)
	}
	if again, err := Claims([]string{one, link}, []string{"redis-token-lua"}); err != nil || len(again[0].Parts[0].Scenarios) != 3 {
		t.Errorf("a run under two names: %v, %v", again, err)
	}
	var text strings.Builder
	if err := ClaimsText(&text, list, TextOptions{}); err != nil || !strings.Contains(text.String(), "1 claim: 1 confirmed") {
		t.Errorf("%v:\n%s", err, text.String())
	}
}
