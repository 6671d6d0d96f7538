package history

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func exportedEDN(t testing.TB, h *History) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteEDN(&b, h); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestEDNRoundTrip(t *testing.T) {
	path, _ := small(t, 300)
	h := sound(t, path)
	text := exportedEDN(t, h)
	file := filepath.Join(t.TempDir(), "history.edn")
	write(t, file, []byte(text))
	same(t, sound(t, file), h)

	// All in one vector, as Jepsen also writes it.
	write(t, file, []byte("; a test\n["+text+"]"))
	same(t, sound(t, file), h)

	// A damaged history stays damaged by way of its export.
	data := load(t, path)
	data[frameSize+headerSize+10*slotSize+20] ^= 1
	write(t, path, data)
	damaged, err := Read(path)
	if err != nil || len(damaged.Damage) == 0 {
		t.Fatal(err, damaged.Damage)
	}
	again, err := ReadEDN(strings.NewReader(exportedEDN(t, damaged)), "name")
	if err != nil {
		t.Fatal(err)
	}
	same(t, again, damaged)
}

// A line lost or cut is noticed.
func TestEDNDamage(t *testing.T) {
	path, _ := small(t, 6)
	lines := strings.SplitAfter(strings.TrimSuffix(exportedEDN(t, sound(t, path)), "\n"), "\n")
	for i := range lines {
		for how, text := range map[string]string{
			"lost": strings.Join(lines[:i], "") + strings.Join(lines[i+1:], ""),
			"cut":  strings.Join(lines[:i], "") + lines[i][:len(lines[i])/2],
		} {
			h, err := ReadEDN(strings.NewReader(text), "cut")
			if err != nil && !errors.Is(err, ErrNoRecords) {
				t.Fatal(err)
			}
			// A lost completion leaves a call open, as a death would: that is no
			// damage, but what follows of the client then is.
			if len(h.Damage) == 0 && !openCall(h) {
				t.Errorf("line %d %s, and no damage was reported: %s", i+1, how, lines[i])
			}
		}
	}
}

func openCall(h *History) bool {
	for _, c := range h.Calls {
		if c.Outcome == Open {
			return true
		}
	}
	return false
}

// TestEDNOfOthers reads what another program would write.
func TestEDNOfOthers(t *testing.T) {
	const text = `
; two clients and a nemesis
#jepsen.history.Op{:index 0, :time 0, :process 0, :type :invoke, :f :acquire, :value nil}
{:index 1 :time 5 :process 1 :type :invoke :f :acquire :value nil #_ :dropped}
{:index 2 :time 10 :process :nemesis :type :info :f :start-partition :value [:isolated {"n1" #{"n2"}}]}
{:index 3 :time 20 :process 0 :type :ok :f :acquire :value 17}
{:index 4 :time 30 :process 0 :type :invoke :f :release :value nil}
{:index 5 :time 40 :process 0 :type :ok :f :release :value nil}
{:index 6 :time 50 :process 1 :type :info :f :acquire :value nil :error [:timeout "1s"]}
{:index 7 :time 60 :process 3 :type :invoke :f :try :value nil}
{:index 8 :time 70 :process 3 :type :fail :f :try :value nil}
{:index 9 :time 80 :process 0 :type :invoke :f :acquire}
{:index 10 :time 90 :process 0 :type :fail :f :acquire}
{:index 11 :time 100 :process 0 :type :invoke :f :release}
{:index 12 :time 110 :process 0 :type :fail :f :release :error :not-held}
`
	h, err := ReadEDN(strings.NewReader(text), "jepsen")
	if err != nil || len(h.Damage) > 0 {
		t.Fatal(err, h.Damage)
	}
	type brief struct {
		client          uint32
		kind            Kind
		outcome         Outcome
		invoke, return_ int64
		fence           uint64
	}
	want := []brief{
		{0, KindAcquire, Held, 1, 21, 17},
		{1, KindAcquire, Unknown, 6, 51, 0},
		{0, KindRelease, Released, 31, 41, 0},
		{3, KindTry, Busy, 61, 71, 0},
		{0, KindAcquire, Failed, 81, 91, 0},
		{0, KindRelease, Lost, 101, 111, 0},
	}
	if len(h.Calls) != len(want) {
		t.Fatalf("%d calls, want %d: %+v", len(h.Calls), len(want), h.Calls)
	}
	for i, c := range h.Calls {
		if got := (brief{c.Client, c.Kind, c.Outcome, c.Invoke, c.Return, c.Fence}); got != want[i] {
			t.Errorf("call %d: %+v, want %+v", i, got, want[i])
		}
	}
	if h.Calls[0].Attempt != h.Calls[2].Attempt || h.Calls[0].Attempt == h.Calls[4].Attempt || h.Calls[0].Attempt.IsZero() {
		t.Errorf("attempts %v, %v, %v", h.Calls[0].Attempt, h.Calls[2].Attempt, h.Calls[4].Attempt)
	}
}

// TestEDNKeys: keys stand before the value, or by themselves; names and
// numbers do not mix.
func TestEDNKeys(t *testing.T) {
	read := func(text string) *History {
		h, err := ReadEDN(strings.NewReader(text), "keys")
		if err != nil && !errors.Is(err, ErrNoRecords) {
			t.Fatal(err)
		}
		return h
	}
	h := read(`{:process 0 :type :invoke :f :acquire :value [:a nil]} {:process 0 :type :ok :f :acquire :value [:a 4]}
{:process 1 :type :invoke :f :acquire :value [:b nil]} {:process 1 :type :ok :f :acquire :value [:b 5]}
{:process 0 :type :invoke :f :acquire :key "a"}`)
	if len(h.Damage) > 0 || h.Calls[0].Key == h.Calls[1].Key || h.Calls[0].Fence != 4 || h.Calls[1].Fence != 5 || h.Calls[2].Key == h.Calls[0].Key {
		t.Errorf("%+v, %v", h.Calls, h.Damage)
	}
	if h := read(`{:process 0 :type :invoke :f :acquire :key 0} {:process 1 :type :invoke :f :acquire :key :a}`); len(h.Damage) == 0 {
		t.Error("a number and a name for keys, and no word of it")
	}
}

func TestEDNOfNoHistory(t *testing.T) {
	for name, text := range map[string]string{
		"nothing":              "",
		"a number":             "7",
		"an open vector":       "[",
		"an odd map":           "{:process}",
		"a second value":       "{:process 0 :process 1}",
		"a stray bracket":      "}",
		"deep":                 strings.Repeat("{:a ", 200),
		"a completion alone":   "{:process 0 :type :ok :f :acquire}",
		"an unknown operation": "{:process 0 :type :invoke :f :cas}",
		"no type":              "{:process 0 :f :acquire}",
		"a release of nothing": "{:process 0 :type :invoke :f :release}",
		"a time that is none":  `{:process 0 :type :invoke :f :acquire :time "now"}`,
		"an unknown flag":      "{:process 0 :type :invoke :f :acquire :flags [:odd]}",
		"no attempt at all":    `{:process 0 :type :invoke :f :acquire :attempt "` + strings.Repeat("0", 32) + `"}`,
		"a negative process":   "{:process -1 :type :invoke :f :acquire}",
	} {
		h, err := ReadEDN(strings.NewReader(text), name)
		if !errors.Is(err, ErrNoRecords) || len(h.Calls) > 0 {
			t.Errorf("%s: %d calls, %v", name, len(h.Calls), err)
		}
		if text != "" && len(h.Damage) == 0 {
			t.Errorf("%s: nothing is said to be wrong", name)
		}
	}
}

// FuzzReadEDN: no text makes the reader panic or hand out what cannot be, and
// what it reads survives the way out and back.
func FuzzReadEDN(f *testing.F) {
	path, _ := small(f, 4)
	h := sound(f, path)
	f.Add(exportedEDN(f, h))
	f.Add(`[{:index 0 :time 0 :process 0 :type :invoke :f :acquire :value [:k nil]} {:process 0 :type :ok :f :acquire}]`)
	f.Add(`#a{:process 0N :type :info :f :lost :time -5} ; x`)
	f.Fuzz(func(t *testing.T, text string) {
		h, err := ReadEDN(strings.NewReader(text), "fuzz")
		if err != nil && !errors.Is(err, ErrNoRecords) {
			t.Fatal(err)
		}
		invariants(t, h)
		if err != nil || len(h.Damage) > 0 {
			return
		}
		again, err := ReadEDN(strings.NewReader(exportedEDN(t, h)), "again")
		if err != nil {
			t.Fatal(err)
		}
		sameCalls(t, again.Calls, h.Calls)
	})
}

// What a foreign log leaves open stays open by way of an export: which attempt a call
// belongs to, and whether a call is missing.
func TestExportKeepsDoubts(t *testing.T) {
	const log = `{"client":0,"kind":"acquire","outcome":"held","invoke":10,"return":20}
{"client":0,"kind":"release","outcome":"released","invoke":30,"return":40}`
	h, err := ReadJSONL(strings.NewReader(log), "log")
	if err != nil || !h.Streams[0].Unnumbered || h.Calls[1].Flags&FlagInferred == 0 {
		t.Fatal(err, h)
	}
	again, err := ReadEDN(strings.NewReader(exportedEDN(t, h)), "edn")
	if err != nil {
		t.Fatal(err)
	}
	same(t, again, h)
	if again, err = ReadJSONL(strings.NewReader(exported(t, h)), "jsonl"); err != nil {
		t.Fatal(err)
	}
	same(t, again, h)
}
