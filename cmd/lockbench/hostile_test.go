package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// takeover is a client's name that sets the title of the terminal, and overwrites
// "unsafe" by "safe".
const takeover = "\x1b]0;owned\x07web-1\r\x1b[2K\x1b[1A\x1b[32mverdict safe: all is well\x1b[0m\nverdict safe"

// doubleHold is a log of two clients that hold one key at once.
func doubleHold(client, key string) string {
	quoted := func(s string) string {
		data, err := json.Marshal(s)
		if err != nil {
			panic(err) // a string always has a form in JSON
		}
		return string(data)
	}
	line := func(name, kind, outcome, at, end string) string {
		return `{"client":` + quoted(name) + `,"key":` + quoted(key) + `,"kind":"` + kind + `","outcome":"` + outcome + `","invoke":` + at + `,"return":` + end + "}\n"
	}
	return line(client, "acquire", "held", "1000000000", "1001000000") + line("second", "acquire", "held", "2000000000", "2001000000") +
		line(client, "release", "released", "5000000000", "5001000000") + line("second", "release", "released", "6000000000", "6001000000")
}

// outputs are what the commands print about a log.
func outputs(t *testing.T, log string) map[string]string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lock.jsonl")
	if err := os.WriteFile(path, []byte(log), 0o644); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, args := range [][]string{
		{"check", path}, {"check", path, "--explain", "1"}, {"check", path, "--format", "json"}, {"check", path, "--model", "mutex"},
		{"check", path, "--export", "jsonl"}, {"check", path, "--export", "edn"}, {"check", log}, {"run", "--recipe", log}, {"list", log},
	} {
		var stdout, stderr bytes.Buffer
		execute(context.Background(), args, strings.NewReader(""), &stdout, &stderr)
		cmd := strings.NewReplacer(path, "FILE", log, "LOG").Replace(strings.Join(args, " "))
		out[cmd], out[cmd+", errors"] = stdout.String(), stderr.String()
	}
	return out
}

// raw finds a character that a terminal obeys, or that changes or hides text.
func raw(s string) string {
	for i, r := range s {
		if r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			return s[max(0, i-20):min(len(s), i+20)]
		}
	}
	return ""
}

func TestNamesInALogCannotChangeTheVerdict(t *testing.T) {
	out := outputs(t, doubleHold(takeover, "orders\u202e71\x1b[8m"))
	for cmd, text := range out {
		if at := raw(text); at != "" {
			t.Errorf("%s: %q", cmd, at)
		}
	}
	text := out["check FILE"]
	if !strings.HasPrefix(text, "verdict unsafe: ") || strings.Contains(text, "\nverdict safe") || !strings.Contains(text, `\u001b]0;owned\u0007web-1`) {
		t.Errorf("the names are not quoted, or the verdict is not legible:\n%s", text)
	}
	if text := out["check FILE --explain 1"]; !strings.Contains(text, `\u001b]0;owned\u0007web-1`) || !strings.Contains(text, "both hold it") {
		t.Errorf("the explanation:\n%s", text)
	}
}

// No output of any command has a raw control character.
func TestNoOutputHasControlCharacters(t *testing.T) {
	for _, names := range [][2]string{
		{takeover, "k"}, {"a", "orders\u202e71\u2066\u200b\u009b31m\x7f"}, {"not utf-8 \xff\x9b", "\U000e0041\u2028\ufeff"}, {strings.Repeat("long ", 100), "\r\x1b[K"},
	} {
		for cmd, text := range outputs(t, doubleHold(names[0], names[1])) {
			if at := raw(text); at != "" {
				t.Errorf("%q: %s: %q", names, cmd, at)
			}
		}
	}
}
