package printable

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestNamesAreQuotedAndShortened(t *testing.T) {
	for in, want := range map[string]string{
		"client 1":                    "client 1",
		"größer → 锁":                  "größer → 锁",
		"\x1b]0;owned\x07safe":        `\u001b]0;owned\u0007safe`,
		"a\r\nverdict safe":           "a verdict safe",
		"a\u202efe\u2066b\u200bc":     `a\u202efe\u2066b\u200bc`,
		"tag\U000e0041":               `tag\udb40\udc41`,
		"c1\u009b31m":                 `c1\u009b31m`,
		"not utf-8 \xff":              "not utf-8 \ufffd",
		strings.Repeat("ab", 40):      strings.Repeat("ab", 31) + "a…",
		strings.Repeat("ab", 32) + "": strings.Repeat("ab", 32),
	} {
		if got := Name(in); got != want {
			t.Errorf("Name(%q) = %q, want %q", in, got, want)
		}
	}
}

// The guard lets lockbench's colours pass, keeps JSON valid and equal, and does not
// depend on how a text is cut into writes.
func TestWriter(t *testing.T) {
	const title = "\x1b]0;owned\x07"
	value := "x" + "\u202e" + "\u009b" + "ü" + "\U000e0041" + "\x7f"
	doc, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	in := title + "\x1b[31munsafe\x1b[0m\tü\n" + "\rsafe\x1b[K\n" + string(doc)
	for cut := range len(in) + 1 {
		if len(title) < cut && cut < strings.Index(in, "\t") {
			continue // lockbench writes a sequence at once
		}
		var out bytes.Buffer
		w := NewWriter(&out)
		for _, part := range []string{in[:cut], in[cut:]} {
			if n, err := w.Write([]byte(part)); err != nil || n != len(part) {
				t.Fatal(n, err)
			}
		}
		rest, ok := strings.CutPrefix(out.String(), `\u001b]0;owned\u0007`+"\x1b[31munsafe\x1b[0m\tü\n"+`\u000dsafe\u001b[K`+"\n")
		if !ok {
			t.Fatalf("cut at %d: %q", cut, out.String())
		}
		var got string
		if err := json.Unmarshal([]byte(rest), &got); err != nil || got != value {
			t.Errorf("cut at %d: JSON %s is %q, %v", cut, rest, got, err)
		}
		if strings.ContainsFunc(rest, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) }) {
			t.Errorf("cut at %d: a control character in %q", cut, rest)
		}
	}
}

// FuzzWriter: every command prints through a Writer, so no output of any command has
// a raw control character but those of lockbench's own colours.
func FuzzWriter(f *testing.F) {
	f.Add([]byte("\x1b]0;owned\x07\rverdict safe\n\x1b[31munsafe\x1b[0m"), 5)
	f.Add([]byte("\u202e\u2066\u200b\u009b31m\x7f \xff\x9b \U000e0041"), 1)
	colours := strings.NewReplacer("\t", "", "\n", "", "\x1b[0m", "", "\x1b[1m", "", "\x1b[2m", "", "\x1b[31m", "", "\x1b[32m", "", "\x1b[33m", "")
	f.Fuzz(func(t *testing.T, text []byte, cut int) {
		cut = min(max(0, cut), len(text))
		var out bytes.Buffer
		w := NewWriter(&out)
		for _, part := range [][]byte{text[:cut], text[cut:]} {
			if n, err := w.Write(part); err != nil || n != len(part) {
				t.Fatal(n, err)
			}
		}
		if s := colours.Replace(out.String()); strings.ContainsFunc(s, hidden) || !utf8.ValidString(s) {
			t.Errorf("%q", out.String())
		}
		if s := Name(string(text)); strings.ContainsFunc(s, hidden) || utf8.RuneCountInString(s) > longName {
			t.Errorf("name %q", s)
		}
	})
}
