package memcached

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/lockbench/lockbench/internal/backend"
)

const (
	// rejection is memcached's answer when it has no space.
	rejection = "SERVER_ERROR out of memory"
	// Large fillers take all the memory first. Each class of small items still
	// gets one page, which is filled then: a key has some bytes more than its
	// value, and classes are further apart than a step.
	largeValue = 7000
	smallValue = 448
	valueStep  = 16
)

func (Backend) Fill(ctx context.Context, _ *backend.Cluster, n *backend.Node) (how string, err error) {
	t, err := dial(ctx, n)
	if err != nil {
		return "", err
	}
	defer t.conn.Close()
	filled, answer := 0, ""
	sizes := []int{largeValue}
	for size := 0; size <= smallValue; size += valueStep {
		sizes = append(sizes, size)
	}
	for _, size := range sizes {
		value := strings.Repeat("x", size)
		for answer = ""; answer == ""; filled += batchSize {
			if answer, err = t.offer(ctx, filled, filled+batchSize, value); err != nil {
				return "", err
			}
		}
		if !strings.HasPrefix(answer, rejection) {
			return "", fmt.Errorf("%w: it answers a filler of %d bytes by %q", backend.ErrNotFull, size, answer)
		}
	}
	return fmt.Sprintf("filled until it refused; items of %d sizes, the last by %q, after %d fillers", len(sizes), answer, filled), nil
}

// Drain removes the fillers. A dead server has none when it is started again.
func (Backend) Drain(ctx context.Context, _ *backend.Cluster, n *backend.Node) error {
	if !n.Alive() {
		return nil
	}
	if err := removeFillers(ctx, n, 1); err != nil {
		return err
	}
	t, err := dial(ctx, n)
	if err != nil {
		return err
	}
	defer t.conn.Close()
	answer, err := t.offer(ctx, 0, 1, "")
	if err == nil && answer != "" {
		err = fmt.Errorf("%w: it still answers a filler by %q", backend.ErrServer, answer)
	}
	_, left := t.drop(context.WithoutCancel(ctx), 0, 1)
	return errors.Join(err, left)
}
