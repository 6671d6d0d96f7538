package impls

import "testing"

func TestCountCode(t *testing.T) {
	for src, want := range map[string]int64{
		"package a\n": 1,
		"// A comment.\npackage a\n\n\nvar x = 1 // why\n": 2,
		"package a\nvar s = `one\n\tthree`\n":              3,
	} {
		if got := countCode([]byte(src)); got != want {
			t.Errorf("%q has %d lines of code, want %d", src, got, want)
		}
	}
}

// Variants of a recipe share its file; a longer name does not take the file of a
// shorter one that is another recipe.
func TestCodeLinesFindsTheFile(t *testing.T) {
	own := func(id string) int64 { n, _ := CodeLines(id); return n }
	if own("mysql/for-update") != own("mysql/for-update-no-index") {
		t.Error("for-update and for-update-no-index are one file and have different counts")
	}
	if a, b := own("mysql/insert-reentrant"), own("mysql/insert-reentrant-count"); a == b {
		t.Errorf("insert-reentrant and insert-reentrant-count are two files and both have %d lines", a)
	}
	for _, id := range []string{"redis/none", "none/token", "reference/mutex", ""} {
		if own, shared := CodeLines(id); own != 0 || shared != 0 {
			t.Errorf("%q has %d and %d lines, want none", id, own, shared)
		}
	}
}
