package redis

import (
	"context"
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/backend"
)

const (
	// fullLimit is a limit that every redis is beyond, so that no release makes
	// room for another lock.
	fullLimit = "1"
	// rejection begins redis's error when it has no space.
	rejection = "OOM "
)

// limitSettings are the settings by which a redis is full, in the order in which
// they are set back: it must not evict while the limit stands.
var limitSettings = []string{"maxmemory", "maxmemory-policy"}

func (Backend) Fill(ctx context.Context, _ *backend.Cluster, n *backend.Node) (how string, err error) {
	full := map[string]string{"maxmemory-policy": "noeviction", "maxmemory": fullLimit}
	if err := configure(ctx, n, []string{"maxmemory-policy", "maxmemory"}, full); err != nil {
		return "", err
	}
	answer, err := probe(ctx, n)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(answer, rejection) {
		return "", fmt.Errorf("%w: it answers a SET by %q", backend.ErrNotFull, answer)
	}
	return fmt.Sprintf("maxmemory set to %s byte with maxmemory-policy noeviction; it answers a SET by %q", fullLimit, answer), nil
}

// Drain sets the limits back to those that the server had at its start. A dead
// one has them when it is started again.
func (Backend) Drain(ctx context.Context, c *backend.Cluster, n *backend.Node) error {
	if !n.Alive() {
		return nil
	}
	if err := configure(ctx, n, limitSettings, c.ReadBack); err != nil {
		return err
	}
	answer, err := probe(ctx, n)
	if err == nil && strings.HasPrefix(answer, rejection) {
		err = fmt.Errorf("%w: it still answers a SET by %q", backend.ErrServer, answer)
	}
	return err
}

// probe writes a key of ours, removes it, and returns the answer to the write.
func probe(ctx context.Context, n *backend.Node) (answer string, err error) {
	answers, err := send(ctx, n, []string{"SET", backend.FillerPrefix + "mark", "1"}, []string{"DEL", backend.FillerPrefix + "mark"})
	if err != nil {
		return "", err
	}
	if refused := answers[0].refused; refused != "" {
		return refused, nil
	}
	return strings.Join(answers[0].words, " "), nil
}
