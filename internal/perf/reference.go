package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/lockbench/lockbench/internal/cluster"
)

const (
	// referenceKeys is from how many keys a release chooses. It is large
	// against the number of releases, so that nearly all find their key.
	referenceKeys = 400_000
	referencePart = 20_000 // commands of each kind in one part
	firstPart     = 5_000  // the same for a single client
	referenceRuns = 5
)

// reference prints how many pairs of redis/token's commands redis-benchmark
// manages: a program in C, of one thread, that neither records nor checks.
//
// It cannot send two commands in turn, so each kind is sent by itself, and a
// pair takes as long as one of each. Acquires are of keys that nobody has;
// releases are of keys that were written before.
func reference(ctx context.Context, c *cluster.Cluster, clients []int) (err error) {
	program, err := exec.LookPath("redis-benchmark")
	if errors.Is(err, exec.ErrNotFound) {
		program, err = exec.LookPath("valkey-benchmark")
	}
	if err != nil {
		return fmt.Errorf("find redis-benchmark (`make servers` brings it, with redis-server): %w", err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: c.Addresses()[0], ReadTimeout: -1})
	defer func() { err = errors.Join(err, rdb.Close()) }()
	script := redis.NewScript(releaseScript)
	if err := script.Load(ctx, rdb).Err(); err != nil {
		return fmt.Errorf("load the script of the release: %w", err)
	}
	token := strings.Repeat("0123456789abcdef", 2)
	fmt.Printf("\nthe same commands through redis-benchmark, pairs a second from the rates of both; median [min..max] of %d\n", referenceRuns)
	fmt.Printf("%7s  %-28s %10s %10s\n", "clients", "pairs/s", "SET/s", "EVALSHA/s")
	for _, n := range clients {
		count := referencePart
		if n == 1 {
			count = firstPart
		}
		var pairs, sets, releases []float64
		for range referenceRuns {
			b := benchmark{program: program, address: c.Addresses()[0], clients: n, count: count}
			set, err := b.rate(ctx, 1_000_000_000, "SET", "key:__rand_int__", token, "NX", "PX", strconv.FormatInt(ttl.Milliseconds(), 10))
			if err != nil {
				return err
			}
			if err := fill(ctx, rdb, token); err != nil {
				return err
			}
			release, err := b.rate(ctx, referenceKeys, "EVALSHA", script.Hash(), "1", "key:__rand_int__", token)
			if err != nil {
				return err
			}
			sets, releases = append(sets, set), append(releases, release)
			pairs = append(pairs, 1/(1/set+1/release))
		}
		fmt.Printf("%7d  %-28s %10.0f %10.0f\n", n, spreadOf(pairs, "%.0f"), median(sets), median(releases))
	}
	return rdb.FlushAll(ctx).Err()
}

// fill writes all keys that a release may choose.
func fill(ctx context.Context, rdb *redis.Client, token string) error {
	err := rdb.FlushAll(ctx).Err()
	if err == nil {
		err = rdb.Eval(ctx, `for i = 0, ARGV[1] - 1 do redis.call('SET', string.format('key:%012d', i), ARGV[2], 'PX', 600000) end return 1`,
			nil, referenceKeys, token).Err()
	}
	if err != nil {
		return fmt.Errorf("fill redis: %w", err)
	}
	return nil
}

// benchmark is one call of redis-benchmark.
type benchmark struct {
	program, address string
	clients, count   int
}

// rate sends one command many times, on random keys out of so many, and
// returns the rate per second.
func (b benchmark) rate(ctx context.Context, keys int, command ...string) (float64, error) {
	host, port, err := net.SplitHostPort(b.address)
	if err != nil {
		return 0, fmt.Errorf("address of redis: %w", err)
	}
	args := append([]string{"-h", host, "-p", port, "-c", strconv.Itoa(b.clients), "-n", strconv.Itoa(b.count),
		"-r", strconv.Itoa(keys), "--csv"}, command...)
	out, err := exec.CommandContext(ctx, b.program, args...).Output()
	if err != nil {
		return 0, fmt.Errorf("run %s: %w: %s", b.program, err, out)
	}
	rows, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil {
		return 0, fmt.Errorf("read the answer of %s: %w: %s", b.program, err, out)
	}
	last := rows[len(rows)-1]
	if len(last) < 2 {
		return 0, fmt.Errorf("read the answer of %s: no rate in %q", b.program, out)
	}
	rate, err := strconv.ParseFloat(last[1], 64)
	if err != nil || rate <= 0 {
		return 0, fmt.Errorf("read the answer of %s: no rate in %q", b.program, out)
	}
	return rate, nil
}
