package main

import (
	"context"
	"fmt"

	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/cluster"
)

// compareMemory puts n clients into one worker, and n bare drivers into one
// process, and compares the most memory that either ever had.
func compareMemory(ctx context.Context, s settings, c *cluster.Cluster, n int) error {
	recipe, _ := all.Find("redis/token")
	if err := prepare(ctx, c, recipe, keyNames(n)); err != nil {
		return err
	}
	one := s
	one.processes = 1
	ours, err := shipped(ctx, one, c, "redis/token", n, 1)
	if err != nil {
		return err
	}
	theirs, err := bare(one, c, "redis/token", n)
	if err != nil {
		return err
	}
	const mib = 1 << 20
	fmt.Printf("\nmemory of %d redis clients in one process: lockbench %d MiB, bare drivers %d MiB, difference %+d MiB\n",
		n, ours.rss/mib, theirs.rss/mib, (ours.rss-theirs.rss)/mib)
	return nil
}
