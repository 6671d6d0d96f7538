package cluster

import (
	"context"
	"fmt"
	"strings"
)

const (
	// redisFull is a limit that every redis is beyond, so that no release makes
	// room for another lock.
	redisFull = "1"
	// redisRefused is how a redis begins to say that it has no room.
	redisRefused = "OOM "
)

// redisLimits are the settings by which a redis is full, in the order in which
// they are set back: it must not evict while the limit stands.
var redisLimits = []string{"maxmemory", "maxmemory-policy"}

func (redis) fill(ctx context.Context, _ *Cluster, n *Node) (how string, err error) {
	full := map[string]string{"maxmemory-policy": "noeviction", "maxmemory": redisFull}
	if err := redisConfigure(ctx, n, []string{"maxmemory-policy", "maxmemory"}, full); err != nil {
		return "", err
	}
	answer, err := redisProbe(ctx, n)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(answer, redisRefused) {
		return "", fmt.Errorf("%w: it answers a SET by %q", ErrNotFull, answer)
	}
	return fmt.Sprintf("maxmemory set to %s byte with maxmemory-policy noeviction; it answers a SET by %q", redisFull, answer), nil
}

// drain sets the limits back to those that the server had at its start. A dead
// one has them when it is started again.
func (redis) drain(ctx context.Context, c *Cluster, n *Node) error {
	if !n.alive() {
		return nil
	}
	if err := redisConfigure(ctx, n, redisLimits, c.settings); err != nil {
		return err
	}
	answer, err := redisProbe(ctx, n)
	if err == nil && strings.HasPrefix(answer, redisRefused) {
		err = fmt.Errorf("%w: it still answers a SET by %q", ErrServer, answer)
	}
	return err
}

// redisProbe writes a key of ours, takes it out again, and tells what the write
// was answered.
func redisProbe(ctx context.Context, n *Node) (answer string, err error) {
	answers, err := redisTell(ctx, n, []string{"SET", fillerPrefix + "mark", "1"}, []string{"DEL", fillerPrefix + "mark"})
	if err != nil {
		return "", err
	}
	if refused := answers[0].refused; refused != "" {
		return refused, nil
	}
	return strings.Join(answers[0].words, " "), nil
}
