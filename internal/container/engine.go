// Package container runs commands in containers of a local engine, on networks of
// their own. All that it makes has the labels of a run, so that Sweep removes what
// a killed run left.
package container

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	tcnetwork "github.com/testcontainers/testcontainers-go/network"
)

// ErrEngine: no container engine can be used; the message has the reason.
var ErrEngine = errors.New("no container engine can be used")

// The labels of all that is ours: the folder of the run, and the user and machine
// on which that folder is.
const (
	labelRun   = "lockbench.run"
	labelOwner = "lockbench.owner"
)

// Engine is a connection to the container engine, for one run.
type Engine struct {
	provider *testcontainers.DockerProvider
	client   client.APIClient
	run      string
	found    string
}

// Open connects to the engine. Containers and networks get the folder of the run
// as a label.
func Open(ctx context.Context, run string) (*Engine, error) {
	path, err := socket()
	if err != nil {
		return nil, err
	}
	// The library writes to the standard error what errors return as well.
	log.SetDefault(log.NewNoopLogger())
	// Its own cleaner is a container with rights over the engine, of an image that
	// has to be pulled. Our watchdog and Sweep do the same without.
	if _, set := os.LookupEnv("TESTCONTAINERS_RYUK_DISABLED"); !set {
		if err := os.Setenv("TESTCONTAINERS_RYUK_DISABLED", "true"); err != nil {
			return nil, err
		}
	}
	provider, err := testcontainers.NewDockerProvider(testcontainers.WithLogger(log.NewNoopLogger()), testcontainers.WithDefaultBridgeNetwork(testcontainers.Bridge))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEngine, err)
	}
	ping, err := provider.Client().Ping(ctx, client.PingOptions{})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrEngine, err), provider.Close())
	}
	return &Engine{provider: provider, client: provider.Client(), run: run, found: fmt.Sprintf("engine with API %s at %s", ping.APIVersion, path)}, nil
}

// String describes the engine.
func (e *Engine) String() string { return e.found }

// socket is the engine's unix socket. The engine has to run on this machine,
// because servers' folders are mounted, and clients reach servers by their own
// addresses.
func socket() (string, error) {
	path := "/var/run/docker.sock"
	if host := os.Getenv("DOCKER_HOST"); host != "" {
		var is bool
		if path, is = strings.CutPrefix(host, "unix://"); !is {
			return "", fmt.Errorf("%w: DOCKER_HOST=%s is not a unix socket of this machine", ErrEngine, host)
		}
	}
	if _, err := os.Stat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("no engine listens at %s: install Docker and start it", path)
		}
		return "", fmt.Errorf("%w: %w", ErrEngine, err)
	}
	return path, nil
}

// Close ends the connection.
func (e *Engine) Close() error { return e.provider.Close() }

func (e *Engine) labels() map[string]string {
	return map[string]string{labelRun: e.run, labelOwner: owner()}
}

func owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%d@%s", os.Getuid(), host)
}

// HasImage reports whether the engine has an image already.
func (e *Engine) HasImage(ctx context.Context, image string) (bool, error) {
	_, err := e.client.ImageInspect(ctx, image)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// Network is a network of its own, with addresses that its user gives out.
type Network struct {
	id, name string
	prefix   netip.Prefix
}

// Network makes a network. The caller owes a RemoveNetwork.
func (e *Engine) Network(ctx context.Context) (*Network, error) {
	// The engine gives out fixed addresses only in a range that its user has
	// named, and it alone knows which is free: so it chooses one first.
	for attempt := 1; ; attempt++ {
		free, err := e.network(ctx, nil)
		if err == nil {
			err = e.RemoveNetwork(ctx, free)
		}
		if err != nil {
			return nil, fmt.Errorf("make a network of containers: %w", err)
		}
		n, err := e.network(ctx, &network.IPAM{Config: []network.IPAMConfig{{Subnet: free.prefix}}})
		if err == nil {
			return n, nil
		}
		if attempt == 5 || ctx.Err() != nil {
			return nil, fmt.Errorf("make a network of containers: %w", err)
		}
	}
}

func (e *Engine) network(ctx context.Context, ipam *network.IPAM) (*Network, error) {
	// Internal: only this machine reaches it, and the ports that an image names are
	// not published.
	opts := []tcnetwork.NetworkCustomizer{tcnetwork.WithLabels(e.labels()), tcnetwork.WithInternal()}
	if ipam != nil {
		opts = append(opts, tcnetwork.WithIPAM(ipam))
	}
	made, err := tcnetwork.New(ctx, opts...)
	if err != nil {
		return nil, err
	}
	n := &Network{id: made.ID, name: made.Name}
	info, err := e.client.NetworkInspect(ctx, n.id, client.NetworkInspectOptions{})
	if err == nil && (len(info.Network.IPAM.Config) == 0 || !info.Network.IPAM.Config[0].Subnet.Addr().Is4()) {
		err = errors.New("the engine gave it no IPv4 addresses")
	}
	if err != nil {
		return nil, errors.Join(err, e.RemoveNetwork(context.WithoutCancel(ctx), n))
	}
	n.prefix = info.Network.IPAM.Config[0].Subnet.Masked()
	return n, nil
}

// Prefix is the range of its addresses; this machine has one of them.
func (n *Network) Prefix() netip.Prefix { return n.prefix }

// Address is the i-th address that containers may have.
func (n *Network) Address(i int) netip.Addr {
	a := n.prefix.Addr()
	for range i + 2 { // after that of the network, and of this machine
		a = a.Next()
	}
	return a
}

// RemoveNetwork removes a network that no container uses any more.
func (e *Engine) RemoveNetwork(ctx context.Context, n *Network) error {
	_, err := e.client.NetworkRemove(ctx, n.id, client.NetworkRemoveOptions{})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("remove the network %s: %w", n.name, err)
	}
	return nil
}

// remove removes a container, however it is.
func (e *Engine) remove(ctx context.Context, id string) error {
	_, err := e.client.ContainerRemove(ctx, id, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
	// A conflict: it is being removed already.
	if err != nil && !errdefs.IsNotFound(err) && !errdefs.IsConflict(err) {
		return fmt.Errorf("remove the container %.12s: %w", id, err)
	}
	return nil
}

// Sweep removes the containers and networks of this user's dead runs, and returns
// what it removed. Without an engine it removes nothing: nothing runs then.
func Sweep(ctx context.Context, dead func(run string) bool) (removed []string, err error) {
	if _, err := socket(); err != nil {
		return nil, nil
	}
	c, err := client.New(client.FromEnv)
	if err != nil {
		return nil, fmt.Errorf("sweep containers: %w", err)
	}
	defer c.Close()
	ours := make(client.Filters).Add("label", labelOwner+"="+owner())
	containers, err := c.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: ours})
	if err != nil {
		return nil, nil // no engine that this user may use
	}
	e := &Engine{client: c}
	var errs []error
	for _, found := range containers.Items {
		if !dead(found.Labels[labelRun]) {
			continue
		}
		if err := e.remove(ctx, found.ID); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, fmt.Sprintf("container %.12s", found.ID))
	}
	networks, err := c.NetworkList(ctx, client.NetworkListOptions{Filters: ours})
	errs = append(errs, err)
	for _, found := range networks.Items {
		if !dead(found.Labels[labelRun]) {
			continue
		}
		if err := e.RemoveNetwork(ctx, &Network{id: found.ID, name: found.Name}); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, fmt.Sprintf("network %.12s", found.ID))
	}
	if err := errors.Join(errs...); err != nil {
		return removed, fmt.Errorf("sweep containers: %w", err)
	}
	return removed, nil
}
