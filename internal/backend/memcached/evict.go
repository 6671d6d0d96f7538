package memcached

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

// memcached evicts within a class of sizes only, and takes memory for one from
// what no class has taken yet. So the fillers are of the key's own class: first
// as many as there is memory for, page by page, then a few at a time: only then
// does it evict, and its events must not come faster than we read them.
const batchSize = 500

// session is a connection on which commands are sent in masses.
type session struct {
	conn net.Conn
	r    *bufio.Reader
	node *backend.Node
}

func dial(ctx context.Context, n *backend.Node) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, backend.AskLimit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", n.Address)
	if err != nil {
		return nil, err
	}
	return &session{conn, bufio.NewReaderSize(conn, 64<<10), n}, nil
}

// send sends requests that have answers lines of answers together, and takes
// each by its place. It fails when the server does not answer within the limit.
func (t *session) send(ctx context.Context, requests string, lines int, take func(i int, line string) error) error {
	defer context.AfterFunc(ctx, func() { t.conn.Close() })()
	if err := t.conn.SetDeadline(time.Now().Add(backend.RestoreLimit)); err != nil {
		return err
	}
	sent := make(chan error, 1)
	// Side by side with reading: neither of us may stop for the other's sake.
	go func() {
		_, err := io.WriteString(t.conn, requests)
		sent <- err
	}()
	for i := range lines {
		line, err := t.r.ReadString('\n')
		if err == nil {
			err = take(i, strings.TrimSpace(line))
		}
		if err != nil {
			t.conn.Close()
			return errors.Join(err, <-sent, ctx.Err())
		}
	}
	return <-sent
}

// item_ is what the server reports about a key.
type item_ struct{ class, size int }

// errNoItem: the server has no such key.
var errNoItem = errors.New("there is no such key")

func (t *session) item(ctx context.Context, key string) (item item_, err error) {
	// "ME key exp=-1 la=0 cas=1 fetch=no cls=1 size=63"
	err = t.send(ctx, "me "+key+"\r\n", 1, func(_ int, line string) error {
		if line == "EN" {
			return fmt.Errorf("%w: %q", errNoItem, key)
		}
		fields := map[string]string{}
		for _, field := range strings.Fields(line) {
			name, value, _ := strings.Cut(field, "=")
			fields[name] = value
		}
		var noClass, noSize error
		item.class, noClass = strconv.Atoi(fields["cls"])
		item.size, noSize = strconv.Atoi(fields["size"])
		if noClass != nil || noSize != nil {
			return fmt.Errorf("the server answered %q for key %q", line, key)
		}
		return nil
	})
	return item, err
}

// set stores fillers from one number to below another.
func (t *session) set(ctx context.Context, from, to int, value string) error {
	refused, err := t.offer(ctx, from, to, value)
	if err == nil && refused != "" {
		err = fmt.Errorf("%w: it answers a filler by %q", backend.ErrNotEvicted, refused)
	}
	return err
}

// offer sends fillers from one number to below another, and returns the answer to
// the last one that was not stored. It waits for all answers even when ctx ends,
// or some fillers might be stored after the others were removed.
func (t *session) offer(ctx context.Context, from, to int, value string) (refused string, err error) {
	var req strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&req, "set %s%08x 0 0 %d\r\n%s\r\n", backend.FillerPrefix, i, len(value), value)
	}
	if err := ctx.Err(); err != nil {
		return "", err
	}
	stored := int64(0)
	err = t.send(context.WithoutCancel(ctx), req.String(), to-from, func(_ int, line string) error {
		if line == "STORED" {
			stored++
		} else {
			refused = line
		}
		return nil
	})
	t.node.Asked("cmd_set", stored)
	return refused, err
}

// drop removes fillers, from one number to below another, and returns how many
// there were.
func (t *session) drop(ctx context.Context, from, to int) (hits int64, err error) {
	var req strings.Builder
	for i := from; i < to; i++ {
		fmt.Fprintf(&req, "delete %s%08x\r\n", backend.FillerPrefix, i)
	}
	err = t.send(ctx, req.String(), to-from, func(_ int, line string) error {
		if line == "DELETED" {
			hits++
		}
		return nil
	})
	t.node.Asked("delete_hits", hits)
	t.node.Asked("delete_misses", int64(to-from)-hits)
	t.node.Asked("cmd_delete", int64(to-from))
	return hits, err
}

func (Backend) Evict(ctx context.Context, _ *backend.Cluster, n *backend.Node, key string) (how string, err error) {
	t, err := dial(ctx, n)
	if err != nil {
		return "", err
	}
	defer t.conn.Close()
	item, err := t.item(ctx, key)
	if err != nil {
		return "", fmt.Errorf("%w: %w", backend.ErrNotEvicted, err)
	}
	evicted, err := watchEvictions(ctx, n)
	if err != nil {
		return "", fmt.Errorf("listen for evictions: %w", err)
	}
	defer evicted.hangUp()
	filling := filling{talk: t, item: item, evicted: evicted}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backend.RestoreLimit)
		defer cancel()
		err = errors.Join(err, removeFillers(ctx, n, filling.filled))
	}()
	if err := filling.until(ctx, key); err != nil {
		return "", err
	}
	return fmt.Sprintf("filled until it was evicted; from slab class %d, after %d fillers of %d bytes each", item.class, filling.filled, item.size), nil
}

// filling is a class of sizes that is being filled.
type filling struct {
	talk    *session
	item    item_
	evicted *evictions
	filled  int
}

// until fills until the key is evicted.
func (f *filling) until(ctx context.Context, key string) error {
	value, err := f.value(ctx)
	if err != nil {
		return err
	}
	most := 0
	for {
		room, page, err := f.room(ctx)
		if err != nil {
			return err
		}
		batch := batchSize
		if room > 2*page {
			batch = page
		} else if most == 0 {
			// By then everything in the class is younger than the key, unless
			// it is asked for all the time.
			most = f.filled + 3*(f.filled+2*page)
		}
		if most > 0 && f.filled >= most {
			return fmt.Errorf("%w: %d fillers went into its slab class and it stayed, as one does that is asked for all the time", backend.ErrNotEvicted, f.filled)
		}
		f.filled += batch
		if err := f.talk.set(ctx, f.filled-batch, f.filled, value); err != nil {
			return err
		}
		if found, err := f.evicted.has(key); found || err != nil {
			return err
		}
	}
}

// value makes an item as large as the key's, by a first filler.
func (f *filling) value(ctx context.Context) (string, error) {
	f.filled = 1
	if err := f.talk.set(ctx, 0, 1, ""); err != nil {
		return "", err
	}
	bare, err := f.talk.item(ctx, backend.FillerPrefix+"00000000")
	if err != nil {
		return "", err
	}
	if bare.size > f.item.size && bare.class != f.item.class {
		return "", fmt.Errorf("%w: it lies in slab class %d, for which our fillers are too long", backend.ErrNotEvicted, f.item.class)
	}
	value := strings.Repeat("x", max(0, f.item.size-bare.size))
	if err := f.talk.set(ctx, 0, 1, value); err != nil {
		return "", err
	}
	filler, err := f.talk.item(ctx, backend.FillerPrefix+"00000000")
	if err == nil && filler.class != f.item.class {
		err = fmt.Errorf("%w: it lies in slab class %d, a filler as large as it in %d", backend.ErrNotEvicted, f.item.class, filler.class)
	}
	return value, err
}

// room is how many more items of the class fit before one is evicted, roughly,
// and how many fit into a page of memory.
func (f *filling) room(ctx context.Context) (room, page int, err error) {
	slabs, err := askStats(ctx, f.talk.node, "stats slabs")
	if err != nil {
		return 0, 0, err
	}
	settings, err := askStats(ctx, f.talk.node, "stats settings")
	if err != nil {
		return 0, 0, err
	}
	class := strconv.Itoa(f.item.class)
	page, noPage := strconv.Atoi(slabs[class+":chunks_per_page"])
	free, noFree := strconv.Atoi(slabs[class+":free_chunks"])
	taken, noTaken := strconv.Atoi(slabs["total_malloced"])
	limit, noLimit := strconv.Atoi(settings["maxbytes"])
	if err := errors.Join(noPage, noFree, noTaken, noLimit); err != nil {
		return 0, 0, fmt.Errorf("its statistics of slab class %s: %w", class, err)
	}
	return free + max(0, limit-taken)>>20*page, page, nil
}

// removeFillers removes fillers, up to a number and as long as there are some, on a
// new connection: the failure that ended the filling may have closed the old one.
func removeFillers(ctx context.Context, n *backend.Node, filled int) error {
	t, err := dial(ctx, n)
	if err != nil {
		return fmt.Errorf("take the fillers out: %w", err)
	}
	defer t.conn.Close()
	const batch = 10000
	for from, hits := 0, int64(0); from < filled || hits > 0; from += batch {
		if hits, err = t.drop(ctx, from, from+batch); err != nil {
			return fmt.Errorf("take the fillers out: %w", err)
		}
	}
	return nil
}
