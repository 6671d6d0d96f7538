package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
)

// Request is a container to start.
type Request struct {
	Name    string // for messages
	Image   string
	Command []string
	Dir     string
	Env     []string
	User    string            // "UID:GID"
	Binds   map[string]string // of the host's files and folders: target by source
	Address netip.Addr        // on the network; invalid: it has no network
}

// Container is the process of a container. Its methods are safe for concurrent
// use.
type Container struct {
	engine   *Engine
	name, id string
	pid      int
	stopped  atomic.Bool // paused by us
	done     chan struct{}
	err      error // how it ended; fixed once done is closed
}

// askLimit is how long the engine may take for one request that waits for nothing.
const askLimit = 20 * time.Second

// Start starts a container; without a network if n is nil.
func (e *Engine) Start(ctx context.Context, n *Network, r Request) (*Container, error) {
	req := testcontainers.ContainerRequest{
		Image: r.Image, Entrypoint: r.Command, Labels: e.labels(),
		ConfigModifier: func(c *container.Config) { c.User, c.WorkingDir, c.Env = r.User, r.Dir, append(c.Env, r.Env...) },
		HostConfigModifier: func(h *container.HostConfig) {
			for source, target := range r.Binds {
				h.Binds = append(h.Binds, source+":"+target)
			}
			h.NetworkMode = "none"
			if n != nil {
				h.NetworkMode = container.NetworkMode(n.name)
			}
		},
	}
	if n != nil {
		req.Networks = []string{n.name}
		req.EndpointSettingsModifier = func(m map[string]*network.EndpointSettings) {
			m[n.name] = &network.EndpointSettings{NetworkID: n.id, IPAMConfig: &network.EndpointIPAMConfig{IPv4Address: r.Address}}
		}
	}
	started, err := e.provider.RunContainer(ctx, req)
	if err != nil {
		if started != nil {
			err = errors.Join(err, started.Terminate(context.WithoutCancel(ctx)))
		}
		return nil, fmt.Errorf("start a container for %s: %w", r.Name, err)
	}
	c := &Container{engine: e, name: r.Name, id: started.GetContainerID(), done: make(chan struct{})}
	info, err := e.client.ContainerInspect(ctx, c.id, client.ContainerInspectOptions{})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start a container for %s: %w", r.Name, err), e.remove(context.WithoutCancel(ctx), c.id))
	}
	if info.Container.State != nil {
		c.pid = info.Container.State.Pid
	}
	go c.wait()
	return c, nil
}

// wait notes the end of the container.
func (c *Container) wait() {
	defer close(c.done)
	end := c.engine.client.ContainerWait(context.Background(), c.id, client.ContainerWaitOptions{Condition: container.WaitConditionNotRunning})
	select {
	case r := <-end.Result:
		if r.StatusCode != 0 {
			c.err = fmt.Errorf("%s: exit status %d", c.describe(), r.StatusCode)
		}
	case err := <-end.Error:
		c.err = fmt.Errorf("%s: it is not known whether it runs: %w", c.describe(), err)
	}
}

func (c *Container) describe() string { return fmt.Sprintf("%s (container %.12s)", c.name, c.id) }

// Name is the name in the request.
func (c *Container) Name() string { return c.name }

// PID is the id of its first process, on the engine's machine.
func (c *Container) PID() int { return c.pid }

// Done is closed when the container has ended.
func (c *Container) Done() <-chan struct{} { return c.done }

// Err returns how it ended: nil while it runs, and after exit status 0.
func (c *Container) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Signal pauses the container (SIGSTOP), lets it go on (SIGCONT), or sends
// another signal to its first process.
func (c *Container) Signal(sig os.Signal) error {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	var err error
	switch sig {
	case syscall.SIGSTOP:
		if c.stopped.Load() {
			return nil
		}
		_, err = c.engine.client.ContainerPause(ctx, c.id, client.ContainerPauseOptions{})
	case syscall.SIGCONT:
		if !c.stopped.Load() {
			return c.ended("signal")
		}
		_, err = c.engine.client.ContainerUnpause(ctx, c.id, client.ContainerUnpauseOptions{})
	default:
		number, ok := sig.(syscall.Signal)
		if !ok {
			return fmt.Errorf("signal %s: %v is no signal of this system", c.describe(), sig)
		}
		_, err = c.engine.client.ContainerKill(ctx, c.id, client.ContainerKillOptions{Signal: fmt.Sprint(int(number))})
	}
	if err != nil {
		return errors.Join(c.ended("signal"), fmt.Errorf("signal %s: %w", c.describe(), err))
	}
	c.stopped.Store(sig == syscall.SIGSTOP)
	return nil
}

// ended is os.ErrProcessDone once the container has ended.
func (c *Container) ended(verb string) error {
	select {
	case <-c.done:
		return fmt.Errorf("%s %s: %w", verb, c.describe(), os.ErrProcessDone)
	default:
		return nil
	}
}

// AwaitStopped is nil when the engine reports the container as paused: it has
// frozen all its processes by then.
func (c *Container) AwaitStopped(ctx context.Context) error {
	info, err := c.engine.client.ContainerInspect(ctx, c.id, client.ContainerInspectOptions{})
	if err != nil {
		return errors.Join(c.ended("pause"), fmt.Errorf("pause %s: %w", c.describe(), err))
	}
	if s := info.Container.State; s == nil || !s.Paused {
		return errors.Join(c.ended("pause"), fmt.Errorf("pause %s: the engine does not report it as paused", c.describe()))
	}
	return nil
}

// State is 'T' while the container is paused, 'Z' when it has ended, else 'S'.
func (c *Container) State() (byte, error) {
	switch {
	case c.ended("") != nil:
		return 'Z', nil
	case c.stopped.Load():
		return 'T', nil
	}
	return 'S', nil
}

// CPU is the CPU time of all processes that ran in the container.
func (c *Container) CPU() (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	reply, err := c.engine.client.ContainerStats(ctx, c.id, client.ContainerStatsOptions{})
	if err != nil {
		return 0, fmt.Errorf("CPU time of %s: %w", c.describe(), err)
	}
	defer reply.Body.Close()
	var stats container.StatsResponse
	if err := json.NewDecoder(reply.Body).Decode(&stats); err != nil {
		return 0, fmt.Errorf("CPU time of %s: %w", c.describe(), err)
	}
	if err := c.ended("CPU time of"); err != nil {
		return 0, err // the engine returns 0
	}
	return time.Duration(stats.CPUStats.CPUUsage.TotalUsage), nil
}

// Stop ends the container: its first process gets SIGTERM, and SIGKILL when grace
// is over or ctx ends.
func (c *Container) Stop(ctx context.Context, grace time.Duration) error {
	if err := c.Signal(syscall.SIGTERM); err == nil {
		// A paused container handles its SIGTERM only after that.
		_ = c.Signal(syscall.SIGCONT)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-c.done:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return c.Kill()
}

// Kill ends the container by SIGKILL, and removes it.
func (c *Container) Kill() error {
	ctx, cancel := context.WithTimeout(context.Background(), askLimit)
	defer cancel()
	if c.ended("") == nil {
		_, err := c.engine.client.ContainerKill(ctx, c.id, client.ContainerKillOptions{Signal: "KILL"})
		if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
			return fmt.Errorf("kill %s: %w", c.describe(), err)
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return fmt.Errorf("%s does not end after SIGKILL", c.describe())
		}
	}
	return c.engine.remove(ctx, c.id)
}
