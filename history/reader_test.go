package history

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What was never a history is not called a damaged one, and a damaged one is not
// called none.
func TestWhyNothingCouldBeRead(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"":                               "the file is empty",
		" \n\n":                          "nothing in it but blanks",
		"12:03:01 web-1 took the lock\n": "neither a history of lockbench nor JSON lines nor EDN",
		streamMagic:                      "header is cut short",
		"LBSTREAN" + strings.Repeat("\x00", headerSize): "no stream begins here",
	} {
		path := filepath.Join(t.TempDir(), "a.log")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path); !errors.Is(err, ErrNoRecords) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: %v, want %q", content, err, want)
		}
		if _, err := ReadKeyed(path, t.TempDir()); !errors.Is(err, ErrNoRecords) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q, by key: %v, want %q", content, err, want)
		}
	}
}
