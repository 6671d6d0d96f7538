package reports

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// browser is a Chromium that is driven over a pipe by the DevTools protocol: messages
// are JSON and end with a zero byte.
type browser struct {
	t       *testing.T
	send    *os.File
	receive *bufio.Reader
	session string
	id      int
	events  []event // that came meanwhile
}

type event struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Params json.RawMessage `json:"params"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
}

// browserLimit ends a browser that does not answer.
const browserLimit = 3 * time.Minute

// openBrowser skips the test without a browser that starts.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path := ""
	for _, name := range []string{"google-chrome", "chromium"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Skip("NOT TESTED IN A BROWSER: install chromium to test the report's page")
	}
	profile, err := os.MkdirTemp("", "lockbench-browser")
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := pipes(t), pipes(t) // to it, from it
	cmd := exec.CommandContext(t.Context(), path, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-pipe", "--user-data-dir="+profile)
	cmd.ExtraFiles = []*os.File{ours[0], theirs[1]} // 3 and 4
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ours[0].Close()
	theirs[1].Close()
	if err := theirs[0].SetReadDeadline(time.Now().Add(browserLimit)); err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t, send: ours[1], receive: bufio.NewReader(theirs[0])}
	t.Cleanup(func() {
		if _, err := b.send.Write([]byte(`{"id":0,"method":"Browser.close"}` + "\x00")); err != nil {
			_ = cmd.Process.Kill()
		}
		_ = cmd.Wait()
		// Its processes may still write there for a moment.
		end := time.Now().Add(browserLimit)
		err := os.RemoveAll(profile)
		for ; err != nil && time.Now().Before(end); err = os.RemoveAll(profile) {
			time.Sleep(50 * time.Millisecond)
		}
		if err != nil {
			t.Errorf("the browser's profile is left behind: %v", err)
		}
	})
	_, err = b.send.Write([]byte(`{"id":0,"method":"Browser.getVersion"}` + "\x00"))
	if err == nil {
		_, err = b.receive.ReadBytes(0)
	}
	if err != nil {
		t.Fatalf("%s does not start: %v", path, err)
	}
	var target struct{ TargetID, SessionID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	b.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

func pipes(t *testing.T) (ends [2]*os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return [2]*os.File{r, w}
}

// call sends a command and reads its result, unless result is nil.
func (b *browser) call(method string, params map[string]any, result any) {
	b.t.Helper()
	b.write(method, params)
	for {
		e := b.next()
		if e.ID != b.id {
			b.events = append(b.events, e)
			continue
		}
		if e.Error != nil {
			b.t.Fatalf("%s: %s", method, e.Error.Message)
		}
		if result != nil {
			if err := json.Unmarshal(e.Result, result); err != nil {
				b.t.Fatalf("%s: %v", method, err)
			}
		}
		return
	}
}

func (b *browser) write(method string, params map[string]any) {
	b.t.Helper()
	b.id++
	message := map[string]any{"id": b.id, "method": method, "params": params}
	if b.session != "" {
		message["sessionId"] = b.session
	}
	data, err := json.Marshal(message)
	if err == nil {
		_, err = b.send.Write(append(data, 0))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

func (b *browser) next() (e event) {
	b.t.Helper()
	data, err := b.receive.ReadBytes(0)
	if err == nil {
		err = json.Unmarshal(bytes.TrimSuffix(data, []byte{0}), &e)
	}
	if err != nil {
		b.t.Fatalf("read from the browser: %v", err)
	}
	return e
}

// load opens a file and waits until it is loaded.
func (b *browser) load(path string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	for {
		if e := b.next(); e.Method != "Page.loadEventFired" {
			b.events = append(b.events, e)
			continue
		}
		return
	}
}

// eval is the value of an expression in the page.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var r struct {
		Result struct {
			Value any `json:"value"`
		} `json:"result"`
		ExceptionDetails *struct{ Text string }
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails.Text)
	}
	return fmt.Sprint(r.Result.Value)
}

func (b *browser) want(expression, want string) {
	b.t.Helper()
	if got := b.eval(expression); got != want {
		b.t.Errorf("%s\nis   %s\nwant %s", expression, got, want)
	}
}

func (b *browser) key(name string) {
	b.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		p := map[string]any{"type": kind, "key": name}
		if len(name) == 1 {
			p["text"] = name
		}
		b.call("Input.dispatchKeyEvent", p, nil)
	}
}

func (b *browser) size(width, height int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}, nil)
}

func (b *browser) media(kind, scheme string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{"media": kind, "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// picture writes a screenshot to the folder that LOCKBENCH_SCREENSHOTS names.
func (b *browser) picture(name string) {
	b.t.Helper()
	dir := os.Getenv("LOCKBENCH_SCREENSHOTS")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	data, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), data, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestPageInABrowser: the page loads without errors and without the network, its matrix
// equals result.json, and a double hold is found by key on any screen.
func TestPageInABrowser(t *testing.T) {
	b := openBrowser(t)
	dir := quickRun(t)
	b.size(1400, 1000)
	b.load(filepath.Join(dir, FileHTML))
	for _, e := range b.events {
		switch e.Method {
		case "Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled":
			t.Errorf("%s: %s", e.Method, e.Params)
		case "Network.requestWillBeSent":
			if !strings.Contains(string(e.Params), `"url":"file://`) && !strings.Contains(string(e.Params), `"url":"data:`) {
				t.Errorf("the page asks the network: %s", e.Params)
			}
		}
	}
	for _, r := range quickDoc().Scenarios {
		if r.Group != "paused" || r.Status != scenario.StatusDone {
			continue
		}
		want := r.Safety.Verdict
		if r.Faults[0].Status == "missed" {
			want = "missed"
		}
		row := fmt.Sprintf(`[...document.querySelectorAll('table.filter tbody tr')].find(r => r.cells[0].textContent.startsWith(%q))`, r.Recipe)
		column := `[...document.querySelectorAll('table.filter thead tr:last-child th')].findIndex(h => h.textContent === 'holder-pause')`
		b.want(row+`.cells[`+column+`].textContent.split(' ')[0]`, want)
	}
	b.want(`document.querySelectorAll('#worst rect.clash').length`, "1")
	b.want(`[...new Set([...document.querySelectorAll('#worst rect.holding')].map(r => r.dataset.lane))].join()`, "client 3,client 5")
	b.picture("1400")
	b.key("n")
	b.want(`location.hash.startsWith('#v-') && document.querySelector('rect.clash.now') !== null`, "true")
	b.want(`document.querySelector('.under').textContent.includes('both held it for 51ms')`, "true")
	b.eval(`document.querySelector('#worst svg.timeline').focus()`)
	b.key("ArrowRight")
	b.want(`document.querySelector('.now').id.startsWith('op-')`, "true")
	b.eval(`document.querySelector('#worst button').click()`)
	b.want(`document.querySelector('#worst button').textContent`, "warped time")
	b.eval(`{ const f = document.querySelector('input[type=search]'); f.value = 'etcd'; f.dispatchEvent(new Event('input')); }`)
	b.want(`[...document.querySelectorAll('table.filter tbody tr')].filter(r => !r.hidden).every(r => r.textContent.includes('etcd'))`, "true")

	b.size(390, 844)
	b.want(`document.documentElement.scrollWidth <= 390`, "true")
	b.picture("390")
	b.size(1400, 1000)
	b.media("screen", "dark")
	b.want(`getComputedStyle(document.body).backgroundColor`, "rgb(22, 24, 27)")
	b.picture("dark")
	b.eval(`scrollTo(0, document.querySelector('#plots').offsetTop)`)
	b.picture("dark-plots")
	b.media("print", "light")
	b.picture("print")
	b.call("Page.printToPDF", nil, nil)
	b.want(`[...document.querySelectorAll('details')].every(d => d.open)`, "true")

	// Split, the style and the script come from files.
	split := t.TempDir()
	doc := run{doc: quickDoc()}
	page, err := renderHTML(build(doc), doc, true)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string]string{FileHTML: string(page), FileStyle: pageStyle, FileScript: pageScript} {
		if err := os.WriteFile(filepath.Join(split, name), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(string(page), "<style>") || strings.Contains(string(page), "<script>") {
		t.Error("the split page has a style or a script within it")
	}
	b.media("screen", "dark")
	b.load(filepath.Join(split, FileHTML))
	b.key("n")
	b.want(`location.hash.startsWith('#v-')`, "true")
	b.want(`getComputedStyle(document.body).backgroundColor`, "rgb(22, 24, 27)")
}
