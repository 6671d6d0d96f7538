package redis_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"testing"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/internal/recipetest"
)

// filter is a client's way to several masters, some of which cannot be reached,
// or whose replies are lost.
type filter struct {
	mu             sync.Mutex
	refuse, silent map[string]bool
	conns          map[string]net.Conn
}

// set names those that cannot be reached and those whose replies are lost.
func (f *filter) set(refuse, silent []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse, f.silent = map[string]bool{}, map[string]bool{}
	for _, a := range silent {
		f.silent[a] = true
	}
	for _, a := range refuse {
		f.refuse[a] = true
		_ = f.conns[a].Close()
	}
}

func (f *filter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, network, address)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && f.refuse[address] {
		_ = c.Close()
		err = errCut
	}
	if err != nil {
		return nil, err
	}
	f.conns[address] = c
	return &filtered{c, f, address}, nil
}

// filtered is a connection that may end when an answer comes, which is lost.
type filtered struct {
	net.Conn
	filter  *filter
	address string
}

func (c *filtered) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.filter.mu.Lock()
	defer c.filter.mu.Unlock()
	if c.filter.silent[c.address] {
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}

// TestRedlockOutcomes: what calls come to, by how many masters cannot be
// reached, and how many replies are lost.
func TestRedlockOutcomes(t *testing.T) {
	m := serveMasters(t)
	failed, unknown, busy := impls.ErrFailed, impls.ErrUnknown, impls.ErrBusy
	for _, row := range []struct {
		taken                  int // by another, of those that answer, where it acquires
		refused, silent        int
		acquire                error
		extend, release, clean error // of holds that all masters had
	}{
		{0, 0, 0, nil, nil, nil, nil},
		// A majority answers.
		{0, 2, 0, nil, nil, nil, nil},
		{0, 0, 2, nil, nil, nil, nil},
		{0, 1, 1, nil, nil, nil, nil},
		{1, 2, 0, busy, nil, nil, nil},
		{1, 0, 2, busy, nil, nil, nil}, // what masters without a reply have of it is no hold
		{3, 0, 2, busy, nil, nil, nil},
		// A minority answers. It cannot have been granted by those that were
		// not asked, and a hold may be there still.
		{0, 3, 0, failed, unknown, unknown, unknown},
		{0, 2, 1, failed, unknown, unknown, unknown},
		{0, 1, 2, failed, unknown, unknown, unknown},
		{0, 0, 3, unknown, unknown, unknown, unknown},
		{2, 0, 3, unknown, unknown, unknown, unknown},
		{0, 0, 5, unknown, unknown, unknown, unknown},
		// Nothing was sent.
		{0, 5, 0, failed, failed, failed, failed},
	} {
		t.Run(fmt.Sprintf("%d taken, %d refused, %d without a reply", row.taken, row.refused, row.silent), func(t *testing.T) {
			t.Parallel()
			f := &filter{conns: map[string]net.Conn{}}
			c := m.open(t, func(cfg *impls.Config) { cfg.Dial = f.dial })
			key, mine := recipetest.NewKey(), recipetest.NewAttempt()
			addresses := m.Addresses()
			var holds []impls.Hold
			for range 3 {
				holds = append(holds, recipetest.Try(t, c, recipetest.NewKey()))
			}
			for i := range row.taken {
				m.occupy(t, key, "another's", i)
			}
			last := 5 - row.refused
			f.set(addresses[last:], addresses[last-row.silent:last])
			// The first to meet a broken connection does not know that.
			_, _ = c.TryAcquire(t.Context(), recipetest.NewKey(), recipetest.NewAttempt())

			recipetest.WantOutcome(t, "extend", holds[0].Extend(t.Context()), row.extend)
			recipetest.WantOutcome(t, "release", holds[1].Release(t.Context()), row.release)
			recipetest.WantOutcome(t, "clean-up", c.Cleanup(t.Context(), holds[2].Key(), holds[2].Attempt()), row.clean)
			_, err := c.TryAcquire(t.Context(), key, mine)
			recipetest.WantOutcome(t, "try", err, row.acquire)

			f.set(nil, nil)
			if errors.Is(err, unknown) {
				_ = m.cleanUp(t, c, key, mine, row.taken)
			}
			// What a doubt has taken out is not forgotten; what a clean-up has
			// left on a minority is there until the next one.
			err = m.cleanUp(t, c, holds[2].Key(), holds[2].Attempt(), 0)
			if row.clean != nil && row.silent < 5 {
				recipetest.WantOutcome(t, "clean-up", err, nil)
			}
			recipetest.WantOutcome(t, "another clean-up", c.Cleanup(t.Context(), holds[2].Key(), holds[2].Attempt()), impls.ErrLost)
		})
	}
}

// cleanUp cleans up until no more than left masters have the key. It returns
// the first definite answer.
func (m masters) cleanUp(t *testing.T, c impls.Client, key string, a impls.Attempt, left int) error {
	t.Helper()
	err := recipetest.CleanUp(t, c, key, a)
	for len(m.on(t, key)) > left {
		_ = recipetest.CleanUp(t, c, key, a)
	}
	return err
}
