package postgres

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/supervise"
)

const pgbouncer = "pgbouncer"

// The proxy gives each transaction of a client a connection to the server, of
// those that are free the one that was used last.
const proxyConfig = `[databases]
%[1]s = host=%[2]s port=%[3]s dbname=%[1]s user=%[4]s
[pgbouncer]
listen_addr = %[5]s
listen_port = %[6]d
unix_socket_dir =
auth_type = any
admin_users = %[7]s
pool_mode = transaction
max_client_conn = %[8]d
default_pool_size = %[9]d
`

func proxyPath(n *backend.Node) string { return filepath.Join(n.Dir, "pgbouncer.ini") }

func proxyCommand(c *backend.Cluster, n *backend.Node, who *supervise.Account) (supervise.Command, error) {
	host, port, err := net.SplitHostPort(c.Nodes()[n.Index].Address)
	if err != nil {
		return supervise.Command{}, err
	}
	text := fmt.Sprintf(proxyConfig, database, host, port, clientUser, n.Host, n.Ports[0], admin, c.Connections(100)+c.Clients, c.Connections(20))
	if err := os.WriteFile(proxyPath(n), []byte(text), 0o600); err != nil {
		return supervise.Command{}, err
	}
	if err := own(c, n, who); err != nil {
		return supervise.Command{}, err
	}
	return as(supervise.Command{Path: c.Binary.Extra[pgbouncer], Args: []string{proxyPath(n)}, Dir: n.Dir}, who), nil
}

// proxyConfigOf asks the proxy's console for its settings.
func proxyConfigOf(ctx context.Context, n *backend.Node) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, backend.AskLimit)
	defer cancel()
	conn, err := connect(ctx, n, admin, pgbouncer)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rows, err := conn.Query(ctx, "SHOW CONFIG")
	if err != nil {
		return nil, err
	}
	all := map[string]string{}
	list, err := pgx.CollectRows(rows, pgx.RowToMap)
	for _, row := range list {
		key, _ := row["key"].(string)
		value, _ := row["value"].(string)
		all[key] = value
	}
	return all, err
}

// proxyReady is nil when the proxy serves with our configuration, and a client
// reaches the server through it.
func proxyReady(ctx context.Context, n *backend.Node) error {
	all, err := proxyConfigOf(ctx, n)
	if err != nil {
		return err
	}
	if all["conffile"] != proxyPath(n) {
		return fmt.Errorf("%w: another proxy answers", backend.ErrPortTaken)
	}
	ctx, cancel := context.WithTimeout(ctx, backend.AskLimit)
	defer cancel()
	conn, err := connect(ctx, n, clientUser, database)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return conn.Ping(ctx)
}

func proxySettings(ctx context.Context, n *backend.Node) (map[string]string, error) {
	all, err := proxyConfigOf(ctx, n)
	return backend.Pick(all, nil, "pool_mode", "default_pool_size", "max_client_conn", "server_reset_query", "server_round_robin", "server_idle_timeout"), err
}
