package redis

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/backend"
)

// A redis is filled by values of this size up to a limit that leaves room for
// a few of them; then it has to evict. Many more than that are tried where
// fillers are evicted too, and the key's turn comes by chance.
const (
	fillerSize = 64 << 10
	room       = 4 << 20
	maxFillers = 10000
)

// evictedEvents is the channel on which redis publishes the keys that it evicts.
const evictedEvents = "__keyevent@0__:evicted"

func (Backend) Evict(ctx context.Context, c *backend.Cluster, n *backend.Node, key string) (how string, err error) {
	there, err := Backend{}.Holds(ctx, n, key)
	if err != nil {
		return "", err
	}
	if !there {
		return "", fmt.Errorf("%w: there is no key %q", backend.ErrNotEvicted, key)
	}
	names := []string{"maxmemory", "maxmemory-policy", "notify-keyspace-events"}
	before := map[string]string{}
	for _, name := range names {
		reply, err := ask(ctx, n, "CONFIG", "GET", name)
		if err != nil || len(reply) != 2 {
			return "", fmt.Errorf("read the setting %s: %q: %w", name, reply, err)
		}
		before[name] = reply[1]
	}
	info, err := askInfo(ctx, n, "memory")
	if err != nil {
		return "", err
	}
	used, err := strconv.ParseInt(info["used_memory"], 10, 64)
	if err != nil {
		return "", fmt.Errorf("its used_memory: %w", err)
	}
	policy := before["maxmemory-policy"]
	if policy == "noeviction" {
		policy = "volatile-lru"
	}
	during := map[string]string{
		"maxmemory": strconv.FormatInt(used+room, 10), "maxmemory-policy": policy,
		"notify-keyspace-events": before["notify-keyspace-events"] + "Ee",
	}
	evicted, hangUp, err := subscribe(ctx, n, evictedEvents)
	if err != nil {
		return "", fmt.Errorf("listen for evictions: %w", err)
	}
	defer hangUp()
	filled := 0
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backend.RestoreLimit)
		defer cancel()
		// The limit first: while it stands, clients are refused.
		err = errors.Join(err, configure(ctx, n, names, before), removeFillers(ctx, n, filled))
	}()
	if err := configure(ctx, n, names, during); err != nil {
		return "", err
	}
	filled, err = fillUntilEvicted(ctx, n, evicted, key)
	if err != nil {
		return "", fmt.Errorf("%w (policy %s, maxmemory %s)", err, policy, during["maxmemory"])
	}
	return fmt.Sprintf("filled until it was evicted; by %s at maxmemory %s, after %d fillers of %d KiB", policy, during["maxmemory"], filled, fillerSize>>10), nil
}

// fillUntilEvicted adds fillers until the key is evicted, and returns how many.
func fillUntilEvicted(ctx context.Context, n *backend.Node, evicted <-chan string, key string) (filled int, err error) {
	value, full := strings.Repeat("x", fillerSize), ""
	for filled < maxFillers && full == "" {
		select {
		case name, listening := <-evicted:
			switch {
			case name == key:
				return filled, nil
			case !listening:
				return filled, errors.New("it hung up while we listened for evictions")
			}
			continue
		default:
		}
		if err := ctx.Err(); err != nil {
			return filled, err
		}
		// Each is waited for, or it might go in after the others were taken out.
		answers, err := send(context.WithoutCancel(ctx), n, []string{"SET", backend.FillerPrefix + strconv.Itoa(filled), value})
		if err != nil {
			return filled + 1, err
		}
		if refusal := answers[0].refused; refusal != "" {
			full = "; it answers a further one by " + refusal
			break
		}
		filled++
	}
	// Events that it has sent may still be on their way.
	wait := time.NewTimer(time.Second)
	defer wait.Stop()
	for {
		select {
		case name, listening := <-evicted:
			if name == key {
				return filled, nil
			}
			if listening {
				continue
			}
		case <-wait.C:
		case <-ctx.Done():
		}
		return filled, fmt.Errorf("%w: %d fillers of %d KiB went in and it stayed%s", backend.ErrNotEvicted, filled, fillerSize>>10, full)
	}
}

// removeFillers takes the fillers out again.
func removeFillers(ctx context.Context, n *backend.Node, filled int) error {
	for from := 0; from < filled; from += 1000 {
		del := []string{"DEL"}
		for i := from; i < min(filled, from+1000); i++ {
			del = append(del, backend.FillerPrefix+strconv.Itoa(i))
		}
		if err := order(ctx, n, del); err != nil {
			return fmt.Errorf("take the fillers out: %w", err)
		}
	}
	return nil
}

// configure sets the named settings, in order.
func configure(ctx context.Context, n *backend.Node, names []string, settings map[string]string) error {
	for _, name := range names {
		if err := order(ctx, n, []string{"CONFIG", "SET", name, settings[name]}); err != nil {
			return fmt.Errorf("set %s to %q: %w", name, settings[name], err)
		}
	}
	return nil
}

// subscribe subscribes to a channel, until hangUp; then, or when the server
// hangs up, the messages end.
func subscribe(ctx context.Context, n *backend.Node, channel string) (messages <-chan string, hangUp func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, backend.AskLimit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.Address)
	if err != nil {
		return nil, nil, err
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	r := bufio.NewReader(conn)
	if _, err = io.WriteString(conn, encode([]string{"SUBSCRIBE", channel})); err == nil {
		_, err = readReply(r) // it confirms
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	n.Asked("subscribe", 1)
	_ = conn.SetDeadline(time.Time{})
	into, gone := make(chan string), make(chan struct{})
	go func() {
		defer close(into)
		for {
			reply, err := readReply(r) // "message", the channel, the text
			if err != nil || len(reply) != 3 {
				return
			}
			select {
			case into <- reply[2]:
			case <-gone:
				return
			}
		}
	}()
	return into, func() { close(gone); conn.Close() }, nil
}
