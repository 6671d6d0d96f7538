package run

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

// A run stops while there is still room to merge what its clients recorded.
func TestCrowded(t *testing.T) {
	dir := t.TempDir()
	clients := filepath.Join(dir, scenario.DirScenarios, "s", scenario.DirClients)
	if err := os.MkdirAll(clients, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(clients, "client"), make([]byte, 600_000), 0o644); err != nil {
		t.Fatal(err)
	}
	for limit, stops := range map[scenario.Size]bool{0: false, 2_000_000: false, 1_200_000: true, 500_000: true} {
		if err := crowded(dir, limit); errors.Is(err, ErrDisk) != stops {
			t.Errorf("limit %v: %v, stops: %v", limit, err, stops)
		}
	}
}
