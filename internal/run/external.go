package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/scenario"
)

// visitLimit is how long the first requests to external servers may take, and the
// removal of what a run created.
const visitLimit = 30 * time.Second

// space begins the names of all that the run creates on servers.
func (r *runner) space() string {
	prefix := "lb"
	if r.External != nil {
		prefix = r.External.Prefix
	}
	return prefix + "." + r.sup.ID()
}

// visit makes the servers of the user's ready for the run: all answer, and a lock
// can be acquired and released. why is the reason if the user has named none.
func (r *runner) visit(ctx context.Context, n need) (_ *cluster.External, why string, err error) {
	s := r.External.Backends[n.key.backend]
	if s == nil {
		return nil, fmt.Sprintf("the configuration names no servers of %s", n.key.backend), nil
	}
	if s.Topology != n.key.topology {
		return nil, fmt.Sprintf("the configuration has a %s %s, not a %s one; run with --topology %[1]s", s.Topology, n.key.backend, n.key.topology), nil
	}
	ctx, cancel := context.WithTimeout(ctx, visitLimit)
	defer cancel()
	e, err := cluster.Visit(ctx, n.key.backend, n.key.topology, cluster.External{Addresses: s.Addresses, Account: s.Account, TLS: s.Security,
		AllowDestructive: r.AllowDestructive, Pinned: s.Identities})
	if err != nil {
		return nil, "", err
	}
	if r.hurts(n.key) {
		if err := e.Permit(ctx); err != nil {
			return nil, "", err
		}
	}
	at := placeOf(n.key.backend, s)
	for _, left := range leftOvers(filepath.Dir(r.sup.Dir()), at) {
		if err := e.Remove(ctx, left.Space, left.names); err != nil {
			return nil, "", fmt.Errorf("the run %s was killed: %w", left.Run, err)
		}
		if err := os.Remove(left.path); err != nil {
			return nil, "", err
		}
		r.Progress.Note(fmt.Sprintf("removed from %s at %v what the run %s left, which was killed", n.key.backend, e.Addresses, left.Run))
	}
	if err := r.noteLeft(n.key, leftRecord{Run: r.sup.ID(), Space: r.space(), Place: at}); err != nil {
		return nil, "", err
	}
	if err := e.Claim(ctx, r.space()); err != nil {
		return nil, "", errors.Join(err, os.Remove(r.leftPath(n.key)))
	}
	if err := r.tryOut(ctx, n.key, e); err != nil {
		r.leave(ctx, n.key, e)
		return nil, "", e.Explain(err)
	}
	info := e.Info()
	r.Progress.Note(fmt.Sprintf("%s %s at %v (%s, external)", info.Product, info.Version, e.Addresses, info.Topology))
	return e, "", nil
}

// hurts reports whether a scenario has a fault that hits these servers.
func (r *runner) hurts(key clusterKey) bool {
	for i, sc := range r.Scenarios {
		if r.keys[i] == key && hurtsServers(sc) {
			return true
		}
	}
	return false
}

// tryOut acquires and releases one lock, so that a missing privilege is found
// before the first scenario.
func (r *runner) tryOut(ctx context.Context, key clusterKey, e *cluster.External) error {
	for i, sc := range r.Scenarios {
		if r.keys[i] != key {
			continue
		}
		recipe, _ := r.Find(sc.Recipe) // needs has checked it
		s, err := visited(e, r.space())
		if err != nil {
			return err
		}
		var d net.Dialer
		cfg := s.config(sc, d.DialContext)
		name := r.space() + ".first"
		if err := r.created(key, name); err != nil {
			return err
		}
		if err := impls.PreparePatiently(ctx, recipe, cfg, []string{name}); err != nil {
			return err
		}
		c, err := impls.OpenPatiently(ctx, recipe, cfg)
		if err != nil {
			return err
		}
		defer c.Close()
		return acquireOnce(ctx, c, name, sc.Timeout.D())
	}
	return nil
}

// visited are the servers of a scenario's clients.
func visited(e *cluster.External, space string) (servers, error) {
	secure, err := e.TLS.Config()
	return servers{addresses: e.Addresses, account: e.Account, tls: e.TLS, secure: secure, space: space, info: e.Info(), external: e}, err
}

// isExternal reports whether the servers are the user's.
func (s servers) isExternal() bool { return s.info.Environment == scenario.EnvExternal }

// created records names that clients will use, to be removed.
func (r *runner) created(key clusterKey, names ...string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.names[key] = append(r.names[key], names...)
	return r.noteLeft(key, names)
}

// leaveAll removes what the run created on external servers, also when ctx has
// ended, and returns what could not be removed.
func (r *runner) leaveAll(ctx context.Context) (left []string) {
	for key, e := range r.externals {
		if why := r.leave(ctx, key, e); why != "" {
			left = append(left, why)
		}
	}
	return left
}

func (r *runner) leave(ctx context.Context, key clusterKey, e *cluster.External) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), visitLimit)
	defer cancel()
	r.mu.Lock()
	names := r.names[key]
	r.mu.Unlock()
	err := e.Remove(ctx, r.space(), names)
	if err == nil {
		err = os.Remove(r.leftPath(key))
	}
	if err != nil {
		why := fmt.Sprintf("%v: keys, nodes and tables whose names contain %s may be left", err, r.space())
		r.Progress.Note(why)
		return why
	}
	return ""
}
