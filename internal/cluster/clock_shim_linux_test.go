package cluster

import (
	"os"
	"path/filepath"
	"testing"
)

// A file that was created but not filled would kill every process that maps it:
// ours, and the server.
func TestShimFileCutShort(t *testing.T) {
	n := &Node{Dir: t.TempDir()}
	if err := os.WriteFile(filepath.Join(n.Dir, shimFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for want := range int64(2) {
		err := withShim(n, func(s *shimState) error {
			if got := s.late.Add(1); got != want+1 {
				t.Errorf("it keeps %d, want %d", got, want+1)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
