package backend

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// AskLimit is how long one question to a server may take. On loopback an answer
// takes microseconds; a server that is paused or busy takes long.
const AskLimit = 5 * time.Second

// RestoreLimit is how long undoing a fault may take, also when the fault's
// context has ended.
const RestoreLimit = 20 * time.Second

// FillerPrefix begins the names of the keys that lockbench puts into a server.
const FillerPrefix = "lockbench-filler-"

// Ask sends a request on a connection of its own, and lets read take the answer.
func (n *Node) Ask(ctx context.Context, request string, read func(*bufio.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, AskLimit)
	defer cancel()
	var d net.Dialer
	conn, err := impls.Encrypted(d.DialContext, n.Access.TLS)(ctx, "tcp", n.Address)
	if err != nil {
		return err
	}
	defer conn.Close()
	// Closing wakes a read when ctx is cancelled.
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	_, writing := io.WriteString(conn, request)
	if err := read(bufio.NewReader(conn)); err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("no answer: %w", ctx.Err())
		}
		return err // also after a failed write: the server may have written why
	}
	return writing
}

// Get fetches a page of the node's HTTP port, or posts body if there is one.
func (n *Node) Get(ctx context.Context, page, body string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, AskLimit)
	defer cancel()
	url := "http://" + n.Address + page
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	// A transport of its own keeps no connection and asks no proxy.
	tr := &http.Transport{DisableKeepAlives: true}
	res, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %.200s", url, res.Status, data)
	}
	return data, nil
}

// Pick copies the named entries of m, and those that the caller set.
func Pick(m map[string]string, set map[string]string, names ...string) map[string]string {
	out := map[string]string{}
	for _, name := range names {
		if v, ok := m[name]; ok {
			out[name] = v
		}
	}
	for name := range set {
		if v, ok := m[name]; ok {
			out[name] = v
		}
	}
	return out
}

// Between is the part of s after before and ahead of the first of the stop
// characters; "" if before is not in s.
func Between(s, before, stop string) string {
	_, s, ok := strings.Cut(s, before)
	if !ok {
		return ""
	}
	if i := strings.IndexAny(s, stop); i >= 0 {
		s = s[:i]
	}
	return s
}
