package memcached

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/lockbench/lockbench/internal/backend"
)

// evictions reads the eviction events of a memcached.
type evictions struct {
	conn net.Conn

	mu   sync.Mutex
	keys map[string]bool
	err  error // why the events ended
}

// watchEvictions begins to listen.
func watchEvictions(ctx context.Context, n *backend.Node) (*evictions, error) {
	t, err := dial(ctx, n)
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
	e := &evictions{conn: t.conn, keys: map[string]bool{}}
	go e.listen(t.r)
	return e, nil
}

// listen takes "ts=... gid=... type=eviction key=... fetch=no ttl=... ...", with
// the key as in a URL. Our own fillers are none of our business.
func (e *evictions) listen(r *bufio.Reader) {
	for {
		line, err := r.ReadString('\n')
		key := backend.Between(line, " key=", " ")
		if plain, err := url.PathUnescape(key); err == nil {
			key = plain
		}
		e.mu.Lock()
		if key != "" && !strings.HasPrefix(key, backend.FillerPrefix) {
			e.keys[key] = true
		}
		e.err = err
		e.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// has reports whether an event showed that a key was evicted. The server may
// drop events that it cannot send fast enough.
func (e *evictions) has(key string) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.keys[key], e.err
}

func (e *evictions) hangUp() { e.conn.Close() }

func (Backend) Put(ctx context.Context, n *backend.Node, key string) error {
	n.Asked("cmd_set", 1)
	return order(ctx, n, "set "+key+" 0 0 1\r\n1\r\n", "STORED")
}

func (Backend) Holds(ctx context.Context, n *backend.Node, key string) (found bool, err error) {
	t, err := dial(ctx, n)
	if err != nil {
		return false, err
	}
	defer t.conn.Close()
	err = t.send(ctx, "mg "+key+"\r\n", 1, func(_ int, line string) error {
		found = line == "HD"
		return nil
	})
	n.Asked("cmd_get", 1)
	n.Asked("get_misses", 1)
	return found, err
}

func (Backend) Flush(ctx context.Context, n *backend.Node) (how string, err error) {
	n.Asked("cmd_flush", 1)
	return "flush_all", order(ctx, n, "flush_all\r\n", "OK")
}

// order sends one command. Any answer other than want is an error.
func order(ctx context.Context, n *backend.Node, command, want string) error {
	return n.Ask(ctx, command, func(r *bufio.Reader) error {
		line, err := r.ReadString('\n')
		if line = strings.TrimSpace(line); err == nil && line != want {
			verb, _, _ := strings.Cut(command, "\r")
			err = fmt.Errorf("it answers %q by %q", verb, line)
		}
		return err
	})
}
