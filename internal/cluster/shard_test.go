package cluster_test

import (
	"errors"
	"testing"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
)

func TestWhoHas(t *testing.T) {
	t.Parallel()
	c := clustertest.Start(t, "memcached", "sharded")
	for i, address := range c.Addresses() {
		key := string(rune('a' + i))
		if got := lines(t, address, "set "+key+" 0 0 1\r\nx\r\n", 1); got != "STORED" {
			t.Fatalf("stored on %s: %q", address, got)
		}
		if node, err := c.WhoHas(t.Context(), key); err != nil || node != i {
			t.Errorf("%s is on node %d, %v; want %d", key, node, err, i)
		}
	}
	if _, err := c.WhoHas(t.Context(), "z"); !errors.Is(err, cluster.ErrNowhere) {
		t.Errorf("where nothing is: %v", err)
	}
	if err := c.Pause(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if node, err := c.WhoHas(t.Context(), "c"); err != nil || node != 2 {
		t.Errorf("beside a paused server it is on node %d, %v", node, err)
	}
	single := clustertest.Start(t, "memcached", "single")
	if _, err := single.WhoHas(t.Context(), "a"); !errors.Is(err, cluster.ErrUnsupported) {
		t.Errorf("of one server: %v", err)
	}
}
