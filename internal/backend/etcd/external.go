package etcd

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"syscall"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/lockbench/lockbench/internal/backend"
)

func (Backend) External() []string { return []string{"single", "quorum"} }

// within calls f with a client of one server. The HTTP pages used elsewhere need
// more rights than clients have.
func within(ctx context.Context, n *backend.Node, f func(context.Context, *clientv3.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, backend.AskLimit)
	defer cancel()
	if err := reach(ctx, n); err != nil {
		return err
	}
	api, err := clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{n.Address}, Logger: zap.NewNop(), DialTimeout: backend.AskLimit,
		TLS: n.Access.TLS, Username: n.Access.Account.User, Password: n.Access.Account.Password,
	})
	if err != nil {
		return err
	}
	defer api.Close()
	return f(ctx, api)
}

// reach asks for a page. The client would report a server that it cannot reach, or
// that rejects its certificate, by the end of its time alone.
func reach(ctx context.Context, n *backend.Node) error {
	err := n.Ask(ctx, "GET /version HTTP/1.0\r\n\r\n", func(r *bufio.Reader) error {
		_, err := r.ReadByte()
		return err
	})
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return nil // its pages are at another port
	}
	return err
}

// Identify: the cluster's id.
func (Backend) Identify(ctx context.Context, n *backend.Node) (id backend.Identity, err error) {
	err = within(ctx, n, func(ctx context.Context, api *clientv3.Client) error {
		status, err := api.Status(ctx, n.Address)
		if err != nil {
			return err
		}
		id = backend.Identity{Product: "etcd", Version: status.Version, ID: fmt.Sprintf("cluster id %x", status.Header.ClusterId)}
		if status.IsLearner {
			id.ReadOnly = "it is a learner"
		}
		return nil
	})
	return id, err
}

// Claim does nothing: the run's place is its own.
func (Backend) Claim(context.Context, *backend.Cluster, string) error { return nil }

// Remove revokes the leases of the run's keys, and deletes the keys. A lease
// without keys is not to be found; it ends by itself within a TTL.
func (Backend) Remove(ctx context.Context, c *backend.Cluster, run string, _ []string) error {
	return within(ctx, c.Nodes()[0], func(ctx context.Context, api *clientv3.Client) error {
		place := run + "/"
		left, err := api.Get(ctx, place, clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			return err
		}
		revoked := map[int64]bool{0: true}
		for _, kv := range left.Kvs {
			if !revoked[kv.Lease] {
				revoked[kv.Lease] = true
				// The lease may have ended, and the keys are deleted in any case.
				_, _ = api.Revoke(ctx, clientv3.LeaseID(kv.Lease))
			}
		}
		_, err = api.Delete(ctx, place, clientv3.WithPrefix())
		return err
	})
}
