package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/backend/all"
	"github.com/lockbench/lockbench/internal/scenario"
)

// ErrExternal: a server of the user's cannot be used.
var ErrExternal = errors.New("an external server cannot be used")

// External are servers that lockbench did not start. It reads what they are,
// removes what it created, and closes its clients' connections if that is
// permitted; other faults and restarts are not possible.
type External struct {
	Addresses []string
	Account   impls.Account
	TLS       *impls.TLS
	// AllowDestructive and Pinned, the identities by address, permit faults on the
	// servers (see Permit).
	AllowDestructive bool
	Pinned           []string

	guest   backend.Guest
	servers *backend.Cluster
	info    scenario.ClusterInfo
}

// ExternalTopologies lists those of a backend that can be external; none if there
// is no such backend.
func ExternalTopologies(name string) []string {
	b, err := all.Find(name)
	if g, ok := b.(backend.Guest); err == nil && ok {
		return g.External()
	}
	return nil
}

// Visit logs in to every server and reads what it is. The error is ErrExternal, one
// line.
func Visit(ctx context.Context, name, topology string, e External) (*External, error) {
	b, err := all.Find(name)
	guest, ok := b.(backend.Guest)
	if err != nil || !ok || !slices.Contains(guest.External(), topology) {
		return nil, fmt.Errorf("%w: no external %s with the topology %q: choose from %v", ErrExternal, name, topology, ExternalTopologies(name))
	}
	described, _ := b.Describe().Topology(topology)
	if one := described.Nodes[0] == 1 && len(described.Nodes) == 1; one && len(e.Addresses) != 1 {
		return nil, fmt.Errorf("%w: a %s %s has one server, and there are %d addresses", ErrExternal, topology, name, len(e.Addresses))
	}
	secure, err := e.TLS.Config()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrExternal, name, err)
	}
	e.guest = guest
	e.servers = &backend.Cluster{Backend: name, Topology: described, ReadBack: map[string]string{}}
	e.info = scenario.ClusterInfo{Backend: name, Topology: topology, Environment: scenario.EnvExternal, Settings: e.servers.ReadBack}
	for i, address := range e.Addresses {
		n := &Node{Name: fmt.Sprintf("%s-%d", name, i+1), Index: i, Address: address, Access: backend.Access{TLS: secure, Account: e.Account}}
		e.servers.SetNode(n)
		e.info.Nodes = append(e.info.Nodes, scenario.NodeInfo{Name: n.Name, Address: address})
	}
	identities := make([]backend.Identity, len(e.Addresses))
	err = e.servers.Each(func(i int, n *Node) (err error) {
		identities[i], err = guest.Identify(ctx, n)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			// The first handshake of a server that has just started takes long.
			identities[i], err = guest.Identify(ctx, n)
		}
		if err == nil && identities[i].ReadOnly != "" {
			err = errors.New("read-only: " + identities[i].ReadOnly)
		}
		return e.explain(n.Address, err)
	})
	if err != nil {
		return nil, err
	}
	for i, id := range identities {
		e.info.Product, e.info.Version, e.info.Nodes[i].Identity = id.Product, id.Version, id.ID
	}
	e.readBack(ctx, b)
	return &e, nil
}

// Claim prepares the place where a run's clients work.
func (e *External) Claim(ctx context.Context, run string) error {
	return e.Explain(e.guest.Claim(ctx, e.servers, run))
}

// readBack reads the settings that the account may read, for the record.
func (e *External) readBack(ctx context.Context, b backend.Backend) {
	settings, err := b.Settings(ctx, e.servers, e.servers.Nodes()[0])
	if err != nil {
		why := "not read: "
		if text := strings.ToLower(err.Error()); strings.Contains(text, "noperm") || strings.Contains(text, "denied") || strings.Contains(text, "not permitted") {
			why = "not permitted: "
		}
		e.servers.ReadBack["settings"] = why + oneLine(err)
		e.info.Durability = "not known"
		return
	}
	maps.Copy(e.servers.ReadBack, settings)
	if facts, err := b.Facts(ctx, e.servers, e.servers.Nodes()[0]); err == nil {
		e.info.Durability = facts.Durability
	}
}

// Info describes the servers.
func (e *External) Info() scenario.ClusterInfo { return e.info }

// Remove removes what a run and its clients of keys have left.
func (e *External) Remove(ctx context.Context, run string, keys []string) error {
	if err := e.guest.Remove(ctx, e.servers, run, keys); err != nil {
		return fmt.Errorf("remove what the run created: %w", e.explain(strings.Join(e.Addresses, ","), err))
	}
	return nil
}

// Explain turns an error of a client into one line that says what is wrong.
func (e *External) Explain(err error) error { return e.explain(strings.Join(e.Addresses, ","), err) }

func (e *External) explain(address string, err error) error {
	if err == nil {
		return nil
	}
	text := oneLine(err)
	for _, r := range e.reasons() {
		if slices.ContainsFunc(r.signs, func(sign string) bool { return strings.Contains(strings.ToLower(text), sign) }) {
			return fmt.Errorf("%w: %s at %s: %s (%s)", ErrExternal, e.servers.Backend, address, r.what, text)
		}
	}
	return fmt.Errorf("%w: %s at %s: %s", ErrExternal, e.servers.Backend, address, text)
}

func oneLine(err error) string { return strings.Join(strings.Fields(err.Error()), " ") }

// reason is how an error is recognized, by its text in lower case: it may come
// through a pipe from a worker, or through a driver that keeps only the text.
type reason struct {
	what  string
	signs []string
}

// reasons in the order in which they are looked for.
func (e *External) reasons() []reason {
	closed := "it closes the connection"
	if e.TLS != nil && e.TLS.Certificate == "" {
		closed += ", perhaps for want of a client's certificate; set tls.certificate and tls.key"
	}
	return []reason{
		{"its certificate has expired, or is not valid yet", []string{"has expired or is not yet valid"}},
		{"its certificate is not signed by a CA that is trusted here; set tls.ca", []string{"unknown authority", "certificate is not trusted"}},
		{"its certificate has another name; set tls.server_name", []string{"certificate is valid for", "cannot validate certificate", "doesn't contain any ip sans"}},
		{"it rejects the client's certificate; set tls.certificate and tls.key", []string{"bad certificate", "certificate required", "unknown certificate"}},
		{"it does not use TLS; leave tls out", []string{"does not look like a tls handshake", "server does not support tls", "server refused tls"}},
		{"missing privilege", []string{"' to database '"}}, // Access denied for user 'a'@'b' to database 'c'
		{"wrong user or password", []string{"wrongpass", "noauth", "access denied for user", "password authentication failed", "authentication failed", "user name is empty", "no password", "empty password"}},
		{"missing privilege", []string{"noperm", "permission denied", "command denied", "not authorized", "must be owner"}},
		{"it is read-only", []string{"readonly", "read-only", "read only"}},
		{"it cannot be reached", []string{"connection refused", "no such host", "i/o timeout", "no route to host", "deadline exceeded"}},
		{closed, []string{"connection reset", "broken pipe", "eof"}},
	}
}
