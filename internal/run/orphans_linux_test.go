package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/scenario"
)

// findPlanted also finds recipes with a planted defect, which leave orphans.
func findPlanted(id string) (impls.Recipe, bool) {
	of := map[string]string{"etcd/mutex-forgets": "etcd/mutex", "redis/redlock-leaves-copy": "redis/redlock"}[id]
	if of == "" {
		return all.Find(id)
	}
	r, ok := all.Find(of)
	return planted{r, id}, ok
}

type planted struct {
	impls.Recipe
	id string
}

func (p planted) Info() impls.Info {
	i := p.Recipe.Info()
	i.ID = p.id
	return i
}

func (p planted) Open(ctx context.Context, cfg impls.Config) (impls.Client, error) {
	c, err := p.Recipe.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if p.Recipe.Info().ID == "redis/redlock" {
		return leavesCopy{c.(impls.Lister), cfg}, nil
	}
	return forgets{c.(impls.Lister)}, nil
}

// forgets reports an acquire that gave up as failed, and leaves its place in the queue.
type forgets struct{ impls.Lister }

func (c forgets) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	h, err := c.Lister.Acquire(ctx, key, a)
	if errors.Is(err, impls.ErrUnknown) {
		err = fmt.Errorf("%w: %v", impls.ErrFailed, err)
	}
	return h, err
}

// leavesCopy leaves the key on the last master.
type leavesCopy struct {
	impls.Lister
	cfg impls.Config
}

func (c leavesCopy) Acquire(ctx context.Context, key string, a impls.Attempt) (impls.Hold, error) {
	h, err := c.Lister.Acquire(ctx, key, a)
	if err != nil {
		return nil, err
	}
	return copied{h, c.cfg}, nil
}

type copied struct {
	impls.Hold
	cfg impls.Config
}

func (h copied) Release(ctx context.Context) error {
	if err := h.Hold.Release(ctx); err != nil {
		return err
	}
	conn, err := h.cfg.Dial(ctx, "tcp", h.cfg.Addresses[len(h.cfg.Addresses)-1])
	if err != nil {
		return err
	}
	defer conn.Close()
	return h.setAgain(conn)
}

func (h copied) setAgain(conn net.Conn) error {
	if _, err := fmt.Fprintf(conn, "SET %s %s PX %d\r\n", h.Key(), h.Attempt(), h.cfg.TTL.Milliseconds()); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 16))
	return err
}

// A copy on one of five masters and the place of an attempt that gave up are found on
// the servers, with the attempt and the call that should have removed it; the sound
// recipe in the same scenario leaves nothing.
func TestOrphansOfServers(t *testing.T) {
	t.Parallel()
	settings := func(topology string) scenario.Settings {
		return scenario.Settings{Clients: []int{4}, Topology: []string{topology}, Scenario: scenario.Scenario{
			TTL: scenario.Duration(4 * time.Second), Duration: scenario.Duration(time.Second),
			Workload: scenario.Load{Kind: scenario.HotKey, Hold: scenario.Dist{Kind: scenario.DistConstant, A: 50 * time.Millisecond}, AcquireLimit: scenario.Duration(80 * time.Millisecond)},
		}}
	}
	sound := func(t *testing.T, r scenario.Result) {
		if r.Safety.Orphans == nil || *r.Safety.Orphans != 0 {
			t.Errorf("orphans %v: %v", r.Safety.Orphans, r.Warnings)
		}
	}
	caught := func(t *testing.T, r scenario.Result) {
		if r.Safety.Orphans == nil || *r.Safety.Orphans != 1 || !slices.ContainsFunc(r.Safety.Witnesses, func(w scenario.Witness) bool { return w.Class == "orphan" && len(w.Calls) > 0 }) {
			t.Errorf("orphans %v, witnesses %+v", r.Safety.Orphans, r.Safety.Witnesses)
		}
	}
	trials := []trial{
		{name: "redlock", recipe: "redis/redlock", settings: settings("quorum"), check: sound},
		{name: "redlock-leaves-copy", recipe: "redis/redlock", settings: settings("quorum"), check: caught},
		{name: "mutex", recipe: "etcd/mutex", settings: settings("single"), check: sound},
		{name: "mutex-forgets", recipe: "etcd/mutex", settings: settings("single"), check: caught},
	}
	tryWith(t, trials, func(o *Options) {
		o.enough, o.Find = nil, findPlanted
		o.Scenarios[1].Recipe, o.Scenarios[3].Recipe = "redis/redlock-leaves-copy", "etcd/mutex-forgets"
	})
}
