package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/backend"
)

// departure is how long the connections of lockbench's own questions may stay in a
// server's list after they were closed.
const departure = 2 * time.Second

// Permit returns nil if faults may hit all these servers: the user has allowed it,
// they are those that the configuration pins, their owner has marked them, and no
// client is connected. It is called before the run's clients connect.
func (e *External) Permit(ctx context.Context) error {
	return e.servers.Each(func(i int, n *Node) error {
		begin := time.Now()
		return e.refuse(n, backend.Await(ctx, func() (bool, error) {
			sessions, err := e.guarded(ctx, i)
			if err == nil && time.Since(begin) > departure {
				err = strangers(sessions)
			}
			return len(sessions) == 0, err
		}))
	})
}

// guarded checks all conditions but the one on clients, and lists these.
func (e *External) guarded(ctx context.Context, i int) ([]backend.Session, error) {
	n := e.servers.Nodes()[i]
	closer, ok := e.guest.(backend.SessionCloser)
	switch {
	case !e.AllowDestructive:
		return nil, errors.New("a fault on it needs --allow-destructive")
	case !ok:
		return nil, fmt.Errorf("%s does not list its clients, so that others cannot be spared; choose a fault on a holder, waiter or client", e.servers.Backend)
	}
	id, err := e.guest.Identify(ctx, n)
	switch {
	case err != nil:
		return nil, err
	case id.ID == "":
		return nil, fmt.Errorf("it reports no identity, which a fault on it needs; permit the account to read it")
	case len(e.Pinned) == 0:
		return nil, fmt.Errorf("a fault on it needs its identity in the configuration: it is %q; write identities: [...], one for each address", id.ID)
	case len(e.Pinned) != len(e.Addresses):
		return nil, fmt.Errorf("the configuration has %d addresses and %d identities; write one for each address", len(e.Addresses), len(e.Pinned))
	case e.Pinned[i] != id.ID:
		return nil, fmt.Errorf("it is %q, and the configuration pins %q: it is another server, or was started again; correct the address or identities", id.ID, e.Pinned[i])
	}
	marked, err := closer.Marked(ctx, n)
	if err != nil {
		return nil, fmt.Errorf("look for the key or table %s: %w", backend.Marker, err)
	}
	if !marked {
		return nil, fmt.Errorf("its owner has not permitted faults: create the key (redis) or table (in the database) %s", backend.Marker)
	}
	return closer.Sessions(ctx, n)
}

// strangers is the error for clients that are connected.
func strangers(sessions []backend.Session) error {
	if len(sessions) == 0 {
		return nil
	}
	var from []string
	for _, s := range sessions {
		from = append(from, s.From)
	}
	slices.Sort(from)
	return fmt.Errorf("other clients are connected (%s), and a fault would hit them; stop them first", strings.Join(slices.Compact(from), ", "))
}

func (e *External) refuse(n *Node, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s at %s: %s", ErrExternal, e.servers.Backend, n.Address, oneLine(err))
}

// CloseClients closes the connections of the run's clients to a server, and returns
// how many when they are closed. All conditions of Permit are checked again. Other
// clients are now those with another user or host than the run's: the error names
// them, and no connection is closed.
func (e *External) CloseClients(ctx context.Context, node int) (closed int, err error) {
	sessions, err := e.guarded(ctx, node)
	n := e.servers.Nodes()[node]
	if err != nil {
		return 0, e.refuse(n, err)
	}
	var ids []string
	for _, s := range sessions {
		ids = append(ids, s.ID)
	}
	others := slices.DeleteFunc(sessions, func(s backend.Session) bool { return s.Own })
	if err := strangers(others); err != nil {
		return 0, e.refuse(n, err)
	}
	closer := e.guest.(backend.SessionCloser) // guarded has checked it
	if closed, err = closer.CloseSessions(ctx, n, ids); err != nil {
		return closed, e.refuse(n, err)
	}
	err = backend.Await(ctx, func() (bool, error) {
		left, err := closer.Sessions(ctx, n)
		return !slices.ContainsFunc(left, func(s backend.Session) bool { return slices.Contains(ids, s.ID) }), err
	})
	return closed, e.refuse(n, err)
}
