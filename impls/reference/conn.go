package reference

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/lockbench/lockbench/impls"
)

// wire is a client's connection. After a call with an unknown outcome it is
// closed, since a late answer would be taken for that of the next call; the
// next call opens a newer generation, and the server drops unread requests of
// the old one.
type wire struct {
	dial    impls.DialFunc
	path    string
	timeout time.Duration

	id         [16]byte
	generation int64
	conn       net.Conn // nil: to be opened
	closed     bool
	buf        []byte
}

// call sends f and waits for its answer, for at most the request timeout.
func (w *wire) call(ctx context.Context, f *frame) (status, uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	if err := impls.NotSent(ctx.Err()); err != nil {
		return 0, 0, err
	}
	if len(f.key) > maxKey {
		return 0, 0, impls.NotSent(fmt.Errorf("key of %d bytes, at most %d are possible", len(f.key), maxKey))
	}
	if w.conn == nil {
		if err := w.open(ctx); err != nil {
			return 0, 0, impls.NotSent(err)
		}
	}
	st, fence, err := w.exchange(ctx, f)
	// The server returns no errors (busy and gone are answers), so every error
	// after sending is unknown.
	return st, fence, impls.Rules{}.Outcome(err)
}

// connect opens the first connection.
func (w *wire) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	return w.open(ctx)
}

// open dials and sends the hello. If it fails, no request was sent.
func (w *wire) open(ctx context.Context) error {
	if w.closed {
		return net.ErrClosed
	}
	c, err := w.dial(ctx, "unix", w.path)
	if err != nil {
		return fmt.Errorf("dial %s: %w", w.path, err)
	}
	w.generation++
	w.conn = c
	if _, _, err := w.exchange(ctx, &frame{op: opHello, id: w.id, n: w.generation}); err != nil {
		return fmt.Errorf("send hello to the reference server: %w", err)
	}
	return nil
}

func (w *wire) exchange(ctx context.Context, f *frame) (st status, fence uint64, err error) {
	c := w.conn
	// A deadline in the past interrupts the read and the write at once.
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	defer func() {
		// An interrupt may come just after the answer: then the answer counts,
		// but the connection cannot be used again.
		if interrupted := !stop(); interrupted || err != nil {
			_ = c.Close()
			w.conn = nil
			if err != nil && interrupted {
				err = fmt.Errorf("%w: %w", ctx.Err(), err)
			}
		}
	}()
	w.buf = f.append(w.buf[:0])
	if _, err := c.Write(w.buf); err != nil {
		return 0, 0, err
	}
	var answer [answerSize]byte
	if _, err := io.ReadFull(c, answer[:]); err != nil {
		return 0, 0, err
	}
	st, fence = status(answer[0]), binary.BigEndian.Uint64(answer[1:])
	if st < statusDone || st > statusGone {
		return 0, 0, fmt.Errorf("status %d: %w", st, errFrame)
	}
	return st, fence, nil
}

func (w *wire) close() error {
	w.closed = true
	if w.conn == nil {
		return nil
	}
	err := w.conn.Close()
	w.conn = nil
	return err
}
