package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestLatestPointsToTheNewestRun(t *testing.T) {
	out := t.TempDir()
	link := filepath.Join(out, "latest")
	for _, name := range []string{"first", "second"} {
		if err := os.Mkdir(filepath.Join(out, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := pointTo(filepath.Join(out, name)); err != nil {
			t.Fatal(err)
		}
		if to, err := os.Readlink(link); err != nil || to != name {
			t.Errorf("latest points to %q (%v), want %q", to, err, name)
		}
	}
	// A folder of the user's own stays.
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(link, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := pointTo(filepath.Join(out, "first")); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Lstat(link); err != nil || !st.IsDir() {
		t.Errorf("the user's folder is gone: %v, %v", st, err)
	}
	if left, err := filepath.Glob(link + "-*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
