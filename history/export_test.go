package history

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func exported(t testing.TB, h *History) string {
	t.Helper()
	var b bytes.Buffer
	if err := WriteJSONL(&b, h); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func same(t testing.TB, got, want *History) {
	t.Helper()
	sameCalls(t, got.Calls, want.Calls)
	if !slices.Equal(got.Streams, want.Streams) {
		t.Errorf("streams %+v, want %+v", got.Streams, want.Streams)
	}
	if !slices.Equal(got.Damage, want.Damage) {
		t.Errorf("damage %v, want %v", got.Damage, want.Damage)
	}
}

func TestJSONLRoundTrip(t *testing.T) {
	path, _ := small(t, 300)
	h := sound(t, path)
	file := filepath.Join(t.TempDir(), "history.jsonl")
	write(t, file, []byte(exported(t, h)))
	same(t, sound(t, file), h)

	// A damaged history stays damaged by way of its export.
	data := load(t, path)
	data[frameSize+headerSize+10*slotSize+20] ^= 1
	data[frameSize+headerSize+12*slotSize+returnAt+20] ^= 1
	write(t, path, data)
	h, err := Read(path)
	if err != nil || len(h.Damage) < 2 {
		t.Fatal(err, h.Damage)
	}
	again, err := ReadJSONL(strings.NewReader(exported(t, h)), "name")
	if err != nil {
		t.Fatal(err)
	}
	same(t, again, h)
}

// A line lost, cut or altered is noticed.
func TestJSONLDamage(t *testing.T) {
	path, calls := small(t, 6)
	text := exported(t, sound(t, path))
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	read := func(text string) *History {
		h, err := ReadJSONL(strings.NewReader(text), "file")
		if err != nil && !errors.Is(err, ErrNoRecords) {
			t.Fatal(err)
		}
		invariants(t, h)
		return h
	}
	for n := 0; n < len(text)-2; n += oneIn() { // without the last brace and line end
		if h := read(text[:n]); len(h.Damage) == 0 && n >= len(lines[0])-1 {
			t.Fatalf("cut at %d of %d: unnoticed", n, len(text))
		}
	}
	for i := 1; i < len(lines); i++ {
		if h := read(strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "")); len(h.Damage) == 0 {
			t.Errorf("line %q is gone: unnoticed", lines[i])
		}
		if h := read(strings.Join(slices.Insert(slices.Clone(lines), i, lines[i]), "")); len(h.Damage) == 0 {
			t.Errorf("line %q twice: unnoticed", lines[i])
		}
	}
	if h := read(text + lines[len(lines)-2]); len(h.Damage) != 1 || len(h.Calls) != len(calls) {
		t.Errorf("%d calls, damage %v", len(h.Calls), h.Damage)
	}
}

func TestJSONLByHand(t *testing.T) {
	const held = `{"client":0,"seq":0,"kind":"acquire","outcome":"held","invoke":10,"return":20}` + "\n"
	good, err := ReadJSONL(strings.NewReader(held+`{"client":0,"seq":1,"kind":"release","invoke":30}`), "hand")
	if err != nil || len(good.Damage) != 0 || len(good.Calls) != 2 || len(good.Streams) != 1 || good.Calls[0].Intended != 10 || good.Calls[1].Outcome != Open {
		t.Fatalf("%v %+v", err, good)
	}
	for line, what := range map[string]string{
		`{"client":0,"seq":1,"kind":"acqiure","invoke":10}`:                              `line 2: kind "acqiure" is not one of`,
		`{"client":0,"seq":1,"kind":"try","outcome":"won","invoke":10}`:                  `outcome "won" is not one of those of a call of kind try: held, busy, failed, unknown`,
		`{"client":0,"seq":1,"kind":"try","outcome":"held","invoke":30}`:                 `needs a return`,
		`{"client":0,"seq":1,"kind":"try","outcome":"held","invoke":30,"return":29}`:     `before its invoke`,
		`{"client":0,"seq":1,"kind":"try","outcome":"released","invoke":30,"return":40}`: `outcome "released" is not one of`,
		`{"client":0,"seq":1,"kind":"try","invoke":30,"return":40}`:                      `an open call has no return`,
		`{"client":0,"seq":1,"kind":"try","invoke":0}`:                                   `stamps must be above 0`,
		`{"client":0,"seq":1,"kind":"try","invoke":30,"falgs":["drain"]}`:                `unknown field "falgs"`,
		`{"client":0,"seq":1,"kind":"try","invoke":30,"flags":["dry"]}`:                  `flag "dry" is not one of`,
		`{"client":0,"seq":0,"kind":"try","invoke":30}`:                                  `comes again`,
		`{"client":0,"seq":1,"kind":"try","invoke":5}`:                                   `stamps go backwards`,
		`{"client":0,"seq":3,"kind":"try","invoke":30}`:                                  `2 calls are missing`,
		`{"seq":3,"kind":"try","invoke":30}`:                                             `needs a client`,
		`{"client":"a","kind":"try","invoke":30}`:                                        `a is no client`,
		`{"client":-1,"kind":"try","invoke":30}`:                                         `-1 is no client`,
		`{"client":0,"kind":"try","key":1.5,"invoke":30}`:                                `1.5 is no key`,
		`{"client":0,"kind":"try","invoke":"yesterday"}`:                                 `invoke yesterday: want`,
		`{"client":1,"kind":"release","invoke":30}`:                                      `which never asked for it`,
		`{"client":0,"kind":"unlock","outcome":"freed","invoke":30}`:                     `of kind release: released, lost, failed, unknown`,
		`{"client":0,"kind":"renew","outcome":"renewed","invoke":30}`:                    `of kind extend: extended, lost, failed, unknown`,
		`{"client":0,"kind":"lost","outcome":"gone","invoke":30}`:                        `of kind lost: lost, failed, unknown, accepted`,
		`{}`:                             `holds nothing`,
		`[]`:                             `cannot be understood`,
		`{"format":"other","version":1}`: `this program reads`,
		`{"client":0,"seq":1,"kind":"try","invoke":30,"attempt":"` + strings.Repeat("a", maxLine) + `"}`: `longer than`,
	} {
		h, err := ReadJSONL(strings.NewReader(held+line), "hand")
		if err != nil || len(h.Calls) < 1 || !said(h, what) {
			t.Errorf("%.100s: %v, want %q, got %v", line, err, what, h.Damage)
		}
	}
	if _, err := ReadJSONL(strings.NewReader("{}"), "hand"); !errors.Is(err, ErrNoRecords) {
		t.Errorf("got %v", err)
	}
}

// TestDamageNamesTheClient: the author of the log knows its clients by their names.
func TestDamageNamesTheClient(t *testing.T) {
	for line, want := range map[string]string{
		`{"client":"web-7","kind":"lock","outcome":"won","invoke":10,"return":20}`:  `offset 72, web-7: line 2: outcome "won"`,
		`{"client":"web-7","kind":"unlock","outcome":"ok","invoke":10,"return":20}`: `web-7: line 2: a release of a key by a client which never asked`,
	} {
		const sound = `{"client":"web-1","kind":"lock","outcome":"ok","invoke":10,"return":20}` + "\n"
		h, err := ReadJSONL(strings.NewReader(sound+line), "hand")
		if err != nil || len(h.Damage) != 1 || !strings.Contains(h.Damage[0].String(), want) {
			t.Errorf("%s: %v %v, want %q", line, err, h.Damage, want)
		}
	}
}

// TestJSONLOfOthers: what a team's own log may look like.
func TestJSONLOfOthers(t *testing.T) {
	const log = `
{"client":"web-1","kind":"lock","key":"orders/17","outcome":"ok","invoke":"2026-01-02T03:04:05.000000001Z","return":"2026-01-02T04:04:05.00000002+01:00","fence":4}
{"client":"web-2","kind":"try","key":"orders/17","outcome":"busy","invoke":"2026-01-02T03:04:06Z","return":"2026-01-02T03:04:07Z","attempt":"job 12"}
{"client":"web-1","kind":"unlock","key":"orders/17","outcome":"ok","invoke":"2026-01-02T03:04:08Z","return":"2026-01-02T03:04:09Z"}
{"client":"web-2","kind":"lock","key":"orders/18","outcome":"unknown","invoke":"2026-01-02T03:04:10Z"}
{"client":"web-2","kind":"release","key":"orders/18","outcome":"lost","invoke":"2026-01-02T03:04:11Z","return":"2026-01-02T03:04:12Z"}
`
	h, err := ReadJSONL(strings.NewReader(log), "log")
	if err != nil || len(h.Damage) > 0 || len(h.Calls) != 5 {
		t.Fatal(err, h)
	}
	c := h.Calls
	if c[0].Kind != KindAcquire || c[0].Outcome != Held || c[0].Return-c[0].Invoke != 19 || c[0].Fence != 4 || c[0].Attempt != c[2].Attempt || c[2].Outcome != Released {
		t.Errorf("%+v", c)
	}
	if c[1].Client == c[0].Client || c[1].Attempt == c[3].Attempt || c[3].Attempt != c[4].Attempt || c[3].Key == c[0].Key || c[4].Seq != 2 {
		t.Errorf("%+v", c)
	}
}

// A history of format version 1, as it was written when that was new, is read
// as ever: testdata/v1.lbh and its export.
func TestVersion1(t *testing.T) {
	got := sound(t, filepath.Join("testdata", "v1.lbh"))
	want, err := os.ReadFile(filepath.Join("testdata", "v1.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if text := exported(t, got); text != string(want) {
		t.Errorf("the export differs from testdata/v1.jsonl:\n%s", text)
	}
	same(t, sound(t, filepath.Join("testdata", "v1.jsonl")), got)
}

func FuzzReadJSONL(f *testing.F) {
	path, _ := small(f, 3)
	f.Add([]byte(exported(f, sound(f, path))))
	f.Add([]byte(`{"client":"a","kind":"lock","outcome":"ok","invoke":10,"return":20,"flags":["shared"]}` + "\n" + `{ "client" : "\u0061", "kind":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for line := range bytes.Lines(data) {
			scannedAsDecoded(t, line)
		}
		h, err := ReadJSONL(bytes.NewReader(data), "file")
		if err != nil && !errors.Is(err, ErrNoRecords) {
			t.Fatal(err)
		}
		invariants(t, h)
		again, err := ReadJSONL(strings.NewReader(exported(t, h)), "file")
		if err != nil && !errors.Is(err, ErrNoRecords) {
			t.Fatal(err)
		}
		sameCalls(t, again.Calls, h.Calls)
		if len(h.Damage) == 0 && len(again.Damage) > 0 {
			t.Fatalf("damage %v", again.Damage)
		}
	})
}

// scannedAsDecoded checks that a line which the fast way understands means the same
// to encoding/json.
func scannedAsDecoded(t *testing.T, line []byte) {
	t.Helper()
	var fast, slow callLine
	if !fast.scan(line) {
		return
	}
	if err := new(anyLine).decode(line, &slow); err != nil || !reflect.DeepEqual(fast, slow) {
		t.Errorf("%s: scanned as %+v, decoded as %+v, %v", line, fast, slow, err)
	}
}

// The first line may begin with a byte order mark, and the objects may be those of an
// array.
func TestJSONLMarkAndArray(t *testing.T) {
	lines := []string{
		`{"client":"a","kind":"acquire","outcome":"held","invoke":10,"return":20}`,
		`{"client":"a","kind":"release","outcome":"released","invoke":30,"return":40}`,
	}
	for _, text := range []string{
		byteOrderMark + strings.Join(lines, "\n"), "[" + strings.Join(lines, ",\n ") + "]\n", byteOrderMark + " [\n" + strings.Join(lines, ",") + "]",
	} {
		file := filepath.Join(t.TempDir(), "log")
		write(t, file, []byte(text))
		if h := sound(t, file); len(h.Calls) != 2 || h.Calls[1].Attempt != h.Calls[0].Attempt {
			t.Errorf("%q: %+v", text, h.Calls)
		}
		write(t, file, []byte(text[:len(text)-len(text)/4]))
		if h, err := Read(file); err != nil || len(h.Calls) != 1 || len(h.Damage) == 0 {
			t.Errorf("%q, cut: %v, %+v", text, err, h)
		}
	}
}
