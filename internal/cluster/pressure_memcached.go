package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

const (
	// memcachedRefused is how a memcached says that it has no room.
	memcachedRefused = "SERVER_ERROR out of memory"
	// Large fillers take all the memory first. Each class of small items still
	// gets one page, which is filled then: a key has some bytes more than its
	// value, and classes are further apart than a step.
	memcachedLarge = 7000
	memcachedSmall = 448
	memcachedStep  = 16
)

func (memcached) fill(ctx context.Context, _ *Cluster, n *Node) (how string, err error) {
	t, err := memcachedDial(ctx, n)
	if err != nil {
		return "", err
	}
	defer t.conn.Close()
	filled, answer := 0, ""
	sizes := []int{memcachedLarge}
	for size := 0; size <= memcachedSmall; size += memcachedStep {
		sizes = append(sizes, size)
	}
	for _, size := range sizes {
		value := strings.Repeat("x", size)
		for answer = ""; answer == ""; filled += memcachedBatch {
			if answer, err = t.offer(ctx, filled, filled+memcachedBatch, value); err != nil {
				return "", err
			}
		}
		if !strings.HasPrefix(answer, memcachedRefused) {
			return "", fmt.Errorf("%w: it answers a filler of %d bytes by %q", ErrNotFull, size, answer)
		}
	}
	return fmt.Sprintf("filled until it refused; items of %d sizes, the last by %q, after %d fillers", len(sizes), answer, filled), nil
}

// drain takes the fillers out. A dead server has none when it is started again.
func (memcached) drain(ctx context.Context, _ *Cluster, n *Node) error {
	if !n.alive() {
		return nil
	}
	if err := memcachedEmpty(ctx, n, 1); err != nil {
		return err
	}
	t, err := memcachedDial(ctx, n)
	if err != nil {
		return err
	}
	defer t.conn.Close()
	answer, err := t.offer(ctx, 0, 1, "")
	if err == nil && answer != "" {
		err = fmt.Errorf("%w: it still answers a filler by %q", ErrServer, answer)
	}
	_, left := t.drop(context.WithoutCancel(ctx), 0, 1)
	return errors.Join(err, left)
}
