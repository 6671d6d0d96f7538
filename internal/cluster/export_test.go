package cluster

import (
	"context"
	"fmt"
)

// Watchers are the servers without data.
func (c *Cluster) Watchers() []*Node { return c.watchers }

// Serves is nil when a node answers a real request.
func (c *Cluster) Serves(ctx context.Context, node int) error {
	return c.driver.ready(ctx, c, c.Nodes()[node])
}

// Received is nil when a replica has read all that the primary has logged.
func (c *Cluster) Received(ctx context.Context, replica, primary int) error {
	r, err := mysqlRow(ctx, c.Nodes()[replica], c.mysqlWords().status)
	if err != nil {
		return err
	}
	p, err := mysqlRow(ctx, c.Nodes()[primary], "SHOW MASTER STATUS")
	if err != nil {
		return err
	}
	if r["Read_Master_Log_Pos"] != p["Position"] || r["Master_Log_File"] != p["File"] {
		return fmt.Errorf("received %s of %s", r["Read_Master_Log_Pos"], p["Position"])
	}
	return nil
}

// MissingGalera is missingGalera.
func MissingGalera(b Binary) error { return missingGalera(b) }
