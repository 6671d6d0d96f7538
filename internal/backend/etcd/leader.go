package etcd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/lockbench/lockbench/internal/backend"
)

// status is what a member reports about itself and its leader. Numbers of 64
// bits are strings there.
type status struct {
	Header struct {
		Member string `json:"member_id"`
	}
	Leader string
	Term   string `json:"raftTerm"`
}

func askStatus(ctx context.Context, n *backend.Node) (s status, err error) {
	data, err := n.Get(ctx, "/v3/maintenance/status", "{}")
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("its status: %w", err)
	}
	return s, nil
}

// Leader returns the member that a majority, including that member, names as
// leader in the same term: a leader that was cut off still names itself for a
// while.
func (Backend) Leader(ctx context.Context, c *backend.Cluster) (int, error) {
	answers, err := backend.Collect(c.Nodes(), func(n *backend.Node) (status, error) { return askStatus(ctx, n) })
	if err != nil {
		return 0, err
	}
	for _, candidate := range answers {
		own, votes := candidate.Value, 0
		for _, a := range answers {
			if a.Value.Leader == own.Header.Member && a.Value.Term == own.Term {
				votes++
			}
		}
		if own.Leader == own.Header.Member && votes > c.Size()/2 {
			return candidate.Node.Index, nil
		}
	}
	return 0, fmt.Errorf("%w: of %d members that answer no majority has the same leader", backend.ErrNoLeader, len(answers))
}

// MoveLeader asks the leader to hand over to the next member that serves.
func (e Backend) MoveLeader(ctx context.Context, c *backend.Cluster, from int) error {
	nodes := c.Nodes()
	answers, err := backend.Collect(nodes, func(n *backend.Node) (status, error) { return askStatus(ctx, n) })
	if err != nil {
		return err
	}
	err = errors.New("no other member serves")
	for i := range answers {
		// Round the members, from the one behind the leader.
		target := answers[(i+from+1)%len(answers)]
		if target.Node.Index == from {
			continue
		}
		_, err = nodes[from].Get(ctx, "/v3/maintenance/transfer-leadership", `{"targetID":`+strconv.Quote(target.Value.Header.Member)+`}`)
		if err == nil {
			return nil
		}
	}
	return err
}
