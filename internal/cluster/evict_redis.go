package cluster

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
)

// A redis is filled by values of this size up to a limit that leaves room for
// a few of them; then it has to evict. Many more than that are tried where
// fillers are evicted too, and the key's turn comes by chance.
const (
	redisFiller  = 64 << 10
	redisRoom    = 4 << 20
	redisFillers = 10000
)

// redisEvicted is where a redis tells the names of the keys that it evicts.
const redisEvicted = "__keyevent@0__:evicted"

// restoreLimit is how long it may take to undo what was done to a server, also
// when the context of the fault has ended.
const restoreLimit = 20 * time.Second

func (redis) evict(ctx context.Context, c *Cluster, n *Node, key string) (how string, err error) {
	there, err := redis{}.holds(ctx, n, key)
	if err != nil {
		return "", err
	}
	if !there {
		return "", fmt.Errorf("%w: there is no key %q", ErrNotEvicted, key)
	}
	names := []string{"maxmemory", "maxmemory-policy", "notify-keyspace-events"}
	before := map[string]string{}
	for _, name := range names {
		reply, err := redisAsk(ctx, n, "CONFIG", "GET", name)
		if err != nil || len(reply) != 2 {
			return "", fmt.Errorf("read the setting %s: %q: %w", name, reply, err)
		}
		before[name] = reply[1]
	}
	info, err := redisInfo(ctx, n, "memory")
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
		"maxmemory": strconv.FormatInt(used+redisRoom, 10), "maxmemory-policy": policy,
		"notify-keyspace-events": before["notify-keyspace-events"] + "Ee",
	}
	evicted, hangUp, err := redisListen(ctx, n, redisEvicted)
	if err != nil {
		return "", fmt.Errorf("listen for evictions: %w", err)
	}
	defer hangUp()
	filled := 0
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreLimit)
		defer cancel()
		// The limit first: while it stands, clients are refused.
		err = errors.Join(err, redisConfigure(ctx, n, names, before), redisEmpty(ctx, n, filled))
	}()
	if err := redisConfigure(ctx, n, names, during); err != nil {
		return "", err
	}
	filled, err = redisFill(ctx, n, evicted, key)
	if err != nil {
		return "", fmt.Errorf("%w (policy %s, maxmemory %s)", err, policy, during["maxmemory"])
	}
	return fmt.Sprintf("filled until it was evicted; by %s at maxmemory %s, after %d fillers of %d KiB", policy, during["maxmemory"], filled, redisFiller>>10), nil
}

// redisFill puts in fillers until the key is evicted, and tells how many.
func redisFill(ctx context.Context, n *Node, evicted <-chan string, key string) (filled int, err error) {
	value, full := strings.Repeat("x", redisFiller), ""
	for filled < redisFillers && full == "" {
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
		answers, err := redisTell(context.WithoutCancel(ctx), n, []string{"SET", fillerPrefix + strconv.Itoa(filled), value})
		if err != nil {
			return filled + 1, err
		}
		if refusal := answers[0].refused; refusal != "" {
			full = "; it answers a further one by " + refusal
			break
		}
		filled++
	}
	// What it has told until now may still be on its way.
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
		return filled, fmt.Errorf("%w: %d fillers of %d KiB went in and it stayed%s", ErrNotEvicted, filled, redisFiller>>10, full)
	}
}

// redisEmpty takes the fillers out again.
func redisEmpty(ctx context.Context, n *Node, filled int) error {
	for from := 0; from < filled; from += 1000 {
		del := []string{"DEL"}
		for i := from; i < min(filled, from+1000); i++ {
			del = append(del, fillerPrefix+strconv.Itoa(i))
		}
		if err := redisOrder(ctx, n, del); err != nil {
			return fmt.Errorf("take the fillers out: %w", err)
		}
	}
	return nil
}

// redisConfigure sets the named settings, in order.
func redisConfigure(ctx context.Context, n *Node, names []string, settings map[string]string) error {
	for _, name := range names {
		if err := redisOrder(ctx, n, []string{"CONFIG", "SET", name, settings[name]}); err != nil {
			return fmt.Errorf("set %s to %q: %w", name, settings[name], err)
		}
	}
	return nil
}

// redisListen subscribes to a channel, until hangUp; then, or when the server
// hangs up, the messages end.
func redisListen(ctx context.Context, n *Node, channel string) (messages <-chan string, hangUp func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.Address)
	if err != nil {
		return nil, nil, err
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	r := bufio.NewReader(conn)
	if _, err = io.WriteString(conn, redisRequest([]string{"SUBSCRIBE", channel})); err == nil {
		_, err = redisReply(r) // it confirms
	}
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	n.asked.add("subscribe", 1)
	_ = conn.SetDeadline(time.Time{})
	into, gone := make(chan string), make(chan struct{})
	go func() {
		defer close(into)
		for {
			reply, err := redisReply(r) // "message", the channel, what was said
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
