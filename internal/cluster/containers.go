package cluster

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/container"
	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/internal/supervise"
)

// DefaultImage is what `make images` builds: all servers, on Debian.
const DefaultImage = "lockbench-servers:latest"

// Containers is what servers in containers need.
type Containers struct {
	Image string // "": DefaultImage
	// Helper is a command of this program that calls InContainer with the
	// arguments that follow. The program is mounted into every container, and has
	// to run there: a static one runs in any image.
	Helper []string
}

// helperPath is where containers find this program.
const helperPath = "/lockbench"

// containers places servers in containers of a local engine, on a network of the
// cluster's own. Folders are mounted at their own paths, and so a server's command
// is the same as that of a child process.
type containers struct {
	Containers
	run    *supervise.Run
	logs   string
	engine *container.Engine
	dir    string
	net    *container.Network

	mu      sync.Mutex
	started []*container.Container
	cuts    map[string]*linkCut // in force, by id
}

func newContainers(ctx context.Context, run *supervise.Run, spec Spec) (*containers, error) {
	p := &containers{Containers: *spec.Containers, run: run}
	p.Image = cmp.Or(p.Image, DefaultImage)
	if len(p.Helper) == 0 {
		return nil, fmt.Errorf("%w: servers in containers need the command of a helper", ErrSpec)
	}
	var err error
	if p.logs, err = filepath.Abs(cmp.Or(spec.LogDir, run.Dir())); err != nil {
		return nil, err
	}
	if p.engine, err = container.Open(ctx, run.Dir()); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", spec.Backend, ErrMissing, err)
	}
	return p, nil
}

// found is what the helper writes about a server.
type found struct {
	Binary  backend.Binary
	Missing *backend.MissingError
	Error   string
}

func (p *containers) find(ctx context.Context, b backend.Backend, spec Spec) (backend.Binary, error) {
	if has, err := p.engine.HasImage(ctx, p.Image); err != nil || !has && p.Image == DefaultImage {
		return backend.Binary{}, cmp.Or(err, fmt.Errorf("%s: %w: there is no image %s: build it by `make images`, or name another by --image %s=IMAGE", spec.Backend, ErrMissing, p.Image, spec.Backend))
	}
	dir, err := os.MkdirTemp(p.run.Dir(), "find-")
	if err != nil {
		return backend.Binary{}, err
	}
	defer os.RemoveAll(dir)
	answer := filepath.Join(dir, "found.json")
	c, err := p.launch(ctx, container.Request{
		Name: spec.Backend + " search", Binds: map[string]string{dir: dir},
		Command: []string{"find", spec.Backend, spec.Topology, spec.Binary, answer},
	})
	if err != nil {
		return backend.Binary{}, err
	}
	select {
	case <-c.Done():
	case <-ctx.Done():
	}
	if err := errors.Join(c.Err(), ctx.Err(), c.Kill()); err != nil {
		return backend.Binary{}, fmt.Errorf("search %s in the image %s: %w; lockbench runs there only if it is linked statically, as by CGO_ENABLED=0 go build", spec.Backend, p.Image, err)
	}
	var f found
	data, err := os.ReadFile(answer)
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	switch {
	case err != nil:
		return backend.Binary{}, fmt.Errorf("search %s in the image %s: %w", spec.Backend, p.Image, err)
	case f.Missing != nil:
		return backend.Binary{}, fmt.Errorf("%s: %w in the image %s: %s; name another image by --image %s=IMAGE", spec.Backend, ErrMissing, p.Image, f.Missing.What, spec.Backend)
	case f.Error != "":
		return backend.Binary{}, fmt.Errorf("in the image %s: %s", p.Image, f.Error)
	}
	f.Binary.At = cmp.Or(f.Binary.At, f.Binary.Path) + " in " + p.Image
	return f.Binary, nil
}

func (p *containers) open(ctx context.Context, dir string, servers int) (err error) {
	p.dir = dir
	p.net, err = p.engine.Network(ctx)
	return err
}

func (p *containers) host(i int) string     { return p.net.Address(i).String() }
func (p *containers) clients() netip.Prefix { return p.net.Prefix() }

// start runs a command as the first process of a container.
func (p *containers) start(ctx context.Context, n *Node, cmd supervise.Command) (backend.Process, int, error) {
	uid, gid := os.Geteuid(), os.Getegid()
	if cmd.Account != nil {
		uid, gid = int(cmd.Account.UID), int(cmd.Account.GID)
	}
	r := container.Request{
		Name: cmp.Or(cmd.Name, n.Name), Dir: cmp.Or(cmd.Dir, n.Dir), Binds: map[string]string{p.dir: p.dir, p.logs: p.logs},
		Command: append([]string{"exec", n.Log, strconv.Itoa(uid), strconv.Itoa(gid), cmd.Path}, cmd.Args...),
	}
	var err error
	if r.Address, err = netip.ParseAddr(n.Host); err != nil {
		return nil, 0, err
	}
	// The image has an environment of its own; only what a backend adds counts.
	ours := os.Environ()
	for _, kv := range cmd.Env {
		if !slices.Contains(ours, kv) {
			r.Env = append(r.Env, kv)
		}
	}
	if uid != 0 {
		// Some programs look up the name of the account that they run as.
		passwd := filepath.Join(p.dir, "passwd")
		text := fmt.Sprintf("root:x:0:0::/root:/bin/sh\nlockbench:x:%d:%d::/:/bin/sh\n", uid, gid)
		if err := os.WriteFile(passwd, []byte(text), 0o644); err != nil {
			return nil, 0, err
		}
		r.Binds[passwd] = "/etc/passwd:ro"
	}
	c, err := p.launch(ctx, r)
	if err == nil {
		err = p.cutAgain(c, r.Address)
	}
	if err != nil {
		return nil, 0, err // close removes the container
	}
	return c, 1, nil
}

// launch starts the helper in a container.
func (p *containers) launch(ctx context.Context, r container.Request) (*container.Container, error) {
	r.Image = p.Image
	r.Command = slices.Concat([]string{helperPath}, p.Helper[1:], r.Command)
	r.Binds[p.Helper[0]] = helperPath + ":ro"
	if uid := os.Geteuid(); uid != 0 {
		r.User = fmt.Sprintf("%d:%d", uid, os.Getegid())
	}
	c, err := p.engine.Start(ctx, p.net, r)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.started = append(p.started, c)
	return c, nil
}

// close removes the containers that have ended by themselves, and the network.
func (p *containers) close(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var errs []error
	for _, c := range p.started {
		errs = append(errs, c.Kill())
	}
	if p.net != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startLimit)
		defer cancel()
		errs = append(errs, p.engine.RemoveNetwork(ctx, p.net))
	}
	return errors.Join(append(errs, p.engine.Close())...)
}

// notInContainers returns why servers in containers lack an ability; "" if they
// have it.
func notInContainers(t backend.Topology, ability string) string {
	switch {
	case ability == scenario.AbilityClock:
		return "the library that sets a server's clock is built for this machine, and not for the image"
	case ability == scenario.AbilityLinks && t.Keeper:
		return "in containers the keeper reaches a server from the same address as its clients, so that it cannot be cut off with the other servers"
	}
	return ""
}
