package cluster

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"
)

// memcachedEvictions listens to what a memcached tells of its evictions.
type memcachedEvictions struct {
	conn net.Conn

	mu   sync.Mutex
	keys map[string]bool
	err  error // it tells no more
}

// memcachedWatch begins to listen.
func memcachedWatch(ctx context.Context, n *Node) (*memcachedEvictions, error) {
	t, err := memcachedDial(ctx, n)
	if err != nil {
		return nil, err
	}
	err = t.send(ctx, "watch evictions\r\n", 1, func(_ int, line string) error {
		if line != "OK" {
			return fmt.Errorf("it answers %q", line)
		}
		return nil
	})
	if err != nil {
		t.conn.Close()
		return nil, err
	}
	_ = t.conn.SetDeadline(time.Time{})
	e := &memcachedEvictions{conn: t.conn, keys: map[string]bool{}}
	go e.listen(t.r)
	return e, nil
}

// listen takes "ts=... gid=... type=eviction key=... fetch=no ttl=... ...", with
// the key as in a URL. Our own fillers are none of our business.
func (e *memcachedEvictions) listen(r *bufio.Reader) {
	for {
		line, err := r.ReadString('\n')
		key := between(line, " key=", " ")
		if plain, err := url.PathUnescape(key); err == nil {
			key = plain
		}
		e.mu.Lock()
		if key != "" && !strings.HasPrefix(key, fillerPrefix) {
			e.keys[key] = true
		}
		e.err = err
		e.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// has tells whether a key was evicted, as far as we were told. The server may
// leave out what it cannot tell fast enough.
func (e *memcachedEvictions) has(key string) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.keys[key], e.err
}

func (e *memcachedEvictions) hangUp() { e.conn.Close() }

func (memcached) put(ctx context.Context, n *Node, key string) error {
	n.asked.add("cmd_set", 1)
	return memcachedOrder(ctx, n, "set "+key+" 0 0 1\r\n1\r\n", "STORED")
}

func (memcached) holds(ctx context.Context, n *Node, key string) (found bool, err error) {
	t, err := memcachedDial(ctx, n)
	if err != nil {
		return false, err
	}
	defer t.conn.Close()
	err = t.send(ctx, "mg "+key+"\r\n", 1, func(_ int, line string) error {
		found = line == "HD"
		return nil
	})
	n.asked.add("cmd_get", 1)
	n.asked.add("get_misses", 1)
	return found, err
}

func (memcached) flush(ctx context.Context, n *Node) (how string, err error) {
	n.asked.add("cmd_flush", 1)
	return "flush_all", memcachedOrder(ctx, n, "flush_all\r\n", "OK")
}

// memcachedOrder sends one command, any other answer to which than want is an
// error.
func memcachedOrder(ctx context.Context, n *Node, command, want string) error {
	return ask(ctx, n.Address, command, func(r *bufio.Reader) error {
		line, err := r.ReadString('\n')
		if line = strings.TrimSpace(line); err == nil && line != want {
			verb, _, _ := strings.Cut(command, "\r")
			err = fmt.Errorf("it answers %q by %q", verb, line)
		}
		return err
	})
}
