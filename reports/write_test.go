package reports

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"html"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

func written(t *testing.T, d scenario.Document) (dir string) {
	t.Helper()
	dir = t.TempDir()
	writeRun(t, dir, d)
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// shared is one run with its reports, for the tests that only read: drawing is
// the slow part of them all.
var shared struct {
	once sync.Once
	dir  string
}

func quickRun(t *testing.T) string {
	t.Helper()
	shared.once.Do(func() {
		dir, err := os.MkdirTemp("", "lockbench-reports-")
		if err != nil {
			t.Fatal(err)
		}
		shared.dir = dir
		writeRun(t, dir, quickDoc())
		if err := Write(dir); err != nil {
			t.Fatal(err)
		}
	})
	return shared.dir
}

func TestMain(m *testing.M) {
	code := m.Run()
	if shared.dir != "" {
		if err := os.RemoveAll(shared.dir); err != nil && code == 0 {
			code = 1
		}
	}
	os.Exit(code)
}

func slurp(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestMarkdownGolden(t *testing.T) {
	golden(t, "quick.md", slurp(t, quickRun(t), FileMarkdown))
}

// skeleton is a page's structure: headings, tables by their columns, figures
// and folded parts, without the drawings.
func skeleton(page string) string {
	page = regexp.MustCompile(`(?s)<svg.*?</svg>`).ReplaceAllString(page, "<svg/>")
	var b strings.Builder
	for _, m := range regexp.MustCompile(`(?s)<(?:h[1-4]|section|figure|summary|details|th|svg)\b[^>]*/?>[^<]*`).FindAllString(page, -1) {
		b.WriteString(strings.TrimSpace(m) + "\n")
	}
	return b.String()
}

func TestHTMLGolden(t *testing.T) {
	golden(t, "quick.html.txt", skeleton(slurp(t, quickRun(t), FileHTML)))
}

// withoutScript takes the page's own script out, and checks that the content security
// policy allows that script and no other.
func withoutScript(t *testing.T, page string) string {
	t.Helper()
	before, rest, _ := strings.Cut(page, "<script>")
	script, after, ok := strings.Cut(rest, "</script>")
	if !ok || script != pageScript {
		t.Fatal("the page has not exactly its own script")
	}
	hash := sha256.Sum256([]byte(script))
	if policy := "script-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) + "'"; !strings.Contains(html.UnescapeString(before), "default-src 'none'; style-src 'unsafe-inline'; "+policy) {
		t.Errorf("the policy is not %s", policy)
	}
	return before + after
}

// The page must open offline: nothing in it may be fetched.
func TestHTMLStandsAlone(t *testing.T) {
	dir := quickRun(t)
	page := withoutScript(t, slurp(t, dir, FileHTML))
	for _, bad := range []string{"fetch", "XMLHttp", "import", "eval", "innerHTML", "<", "&"} {
		if strings.Contains(pageScript, bad) {
			t.Errorf("the script has %q", bad)
		}
	}
	for _, bad := range []string{"<script", "<link", "<iframe", "@import", "url(", "src=\"http", "href=\"http", "<img"} {
		if strings.Contains(page, bad) {
			t.Errorf("the page holds %q", bad)
		}
	}
	for _, m := range regexp.MustCompile(`href="([^"#]+)"`).FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join(dir, filepath.FromSlash(m[1]))); err != nil {
			t.Errorf("dead link %s", m[1])
		}
	}
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(`id="([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]] {
			t.Errorf("id %s stands twice", m[1])
		}
		ids[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(page, -1) {
		if !ids[m[1]] {
			t.Errorf("dead anchor %s", m[1])
		}
	}
	wellFormed(t, page)
}

// wellFormed parses the page as XML as far as HTML allows.
func wellFormed(t *testing.T, page string) {
	t.Helper()
	dec := xml.NewDecoder(strings.NewReader(page))
	dec.Strict = true
	dec.Entity = xml.HTMLEntity
	for {
		_, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("the page is not well formed: %v", err)
		}
	}
}

func TestLoadErrorsSayWhatToDo(t *testing.T) {
	empty := t.TempDir()
	if err := Write(empty); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "not a run's folder") {
		t.Errorf("no result.json: %v", err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, scenario.FileResult), []byte(`{"schema":`), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(broken); err == nil {
		t.Error("half a result.json was accepted")
	}
	newer := t.TempDir()
	putJSON(t, filepath.Join(newer, scenario.FileResult), scenario.Document{Schema: scenario.SchemaVersion + 1})
	if err := Write(newer); err == nil || !strings.Contains(err.Error(), "newer") {
		t.Errorf("a newer schema: %v", err)
	}
	damaged := t.TempDir()
	writeRun(t, damaged, selfTestDoc())
	if err := os.WriteFile(filepath.Join(damaged, scenario.FileEnvironment), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(damaged); err != nil {
		t.Errorf("a damaged environment.json cost the report: %v", err)
	}
	if !strings.Contains(slurp(t, damaged, FileHTML), "cannot be read") {
		t.Error("the report hides that environment.json is damaged")
	}
}

func TestWriteIsRepeatable(t *testing.T) {
	dir := written(t, selfTestDoc())
	golden(t, "self-test.md", slurp(t, dir, FileMarkdown))
	before := map[string]string{}
	for _, f := range []string{FileHTML, FileMarkdown, FileJUnit, FileBench} {
		before[f] = slurp(t, dir, f)
	}
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	for f, want := range before {
		if slurp(t, dir, f) != want {
			t.Errorf("%s differs when it is made again", f)
		}
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) > 0 {
		t.Errorf("temporary files were left: %v %v", left, err)
	}
}

// The fixtures must be what the rest of lockbench writes: they survive JSON.
func TestFixtureSurvivesJSON(t *testing.T) {
	data, err := json.Marshal(quickDoc())
	if err != nil {
		t.Fatal(err)
	}
	var d scenario.Document
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if tableText(t, d, TextOptions{}) != tableText(t, quickDoc(), TextOptions{}) {
		t.Error("the summary differs after a trip through result.json")
	}
}
