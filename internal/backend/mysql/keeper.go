package mysql

import (
	"context"
	"fmt"
	"strconv"

	"github.com/lockbench/lockbench/internal/backend"
)

// Answers asks whether the node accepts writes.
func (Backend) Answers(ctx context.Context, _ *backend.Cluster, n *backend.Node) error {
	_, err := readOnly(ctx, n)
	return err
}

// Misplaced asks the node for its status as a replica.
func (Backend) Misplaced(ctx context.Context, _ *backend.Cluster, n, primary *backend.Node) (string, error) {
	refuses, err := readOnly(ctx, n)
	if err != nil {
		return "", err
	}
	s, err := askRow(ctx, n, replicaStatus)
	switch {
	case err != nil:
		return "", err
	case !refuses:
		return "it accepts writes", nil
	case s["Master_Port"] != strconv.Itoa(primary.Ports[0]):
		return "it follows another server, or none", nil
	case s["Slave_IO_Running"] == "No":
		return "it has stopped to follow: " + s["Last_IO_Error"], nil
	case s["Slave_SQL_Running"] == "No":
		return "it has stopped to apply: " + s["Last_SQL_Error"], nil
	}
	return "", nil
}

// BringBack closes a node to clients, ends their connections, so that they look
// for the primary and the locks that they hold there end, and makes it follow.
// Writes that it has and the primary has not, accepted while both did or never
// sent before it died, are lost: no primary takes them back. In that case the
// node gets a copy of the primary's data.
func (Backend) BringBack(ctx context.Context, c *backend.Cluster, n, primary *backend.Node) (string, error) {
	// A server closes once no write is under way, and a write may wait for a row
	// that an idle client holds: so clients go first. They may come back before it
	// is closed.
	if err := do(ctx, n, dropClients, rejectWrites, dropClients); err != nil {
		return "", err
	}
	own, err := ownWrites(ctx, n, primary)
	if err != nil {
		return "", fmt.Errorf("writes that only it has: %w", err)
	}
	s, err := askRow(ctx, n, replicaStatus)
	if err != nil {
		return "", err
	}
	how, copied := "it had no writes of its own", true
	switch {
	case own != "":
		how = "its own writes (up to " + own + ") are lost; it has a copy of the other's data instead"
	case s["Slave_SQL_Running"] == "No" && s["Last_SQL_Error"] != "":
		how = "it has a copy of the other's data"
	default:
		copied = false
	}
	if copied {
		if err := rebuild(ctx, primary, n); err != nil {
			return "", fmt.Errorf("copy the other's data to it: %w", err)
		}
	}
	return how, do(ctx, n, follow(c, primary)...)
}
