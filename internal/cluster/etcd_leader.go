package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// etcdStatus is what a member says of itself and of its leader. Numbers of 64
// bits are strings there.
type etcdStatus struct {
	Header struct {
		Member string `json:"member_id"`
	}
	Leader string
	Term   string `json:"raftTerm"`
}

func etcdAsk(ctx context.Context, n *Node) (s etcdStatus, err error) {
	data, err := get(ctx, "http://"+n.Address+"/v3/maintenance/status", "{}")
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("its status: %w", err)
	}
	return s, nil
}

// leader is whom a majority, itself included, names in one term: a leader that
// was cut off goes on for a while to take itself for one.
func (etcd) leader(ctx context.Context, c *Cluster) (int, error) {
	answers, err := collect(c.Nodes(), func(n *Node) (etcdStatus, error) { return etcdAsk(ctx, n) })
	if err != nil {
		return 0, err
	}
	for _, candidate := range answers {
		own, votes := candidate.said, 0
		for _, a := range answers {
			if a.said.Leader == own.Header.Member && a.said.Term == own.Term {
				votes++
			}
		}
		if own.Leader == own.Header.Member && votes > c.spec.Nodes/2 {
			return candidate.node.index, nil
		}
	}
	return 0, fmt.Errorf("%w: of %d members that answer no majority has the same leader", ErrNoLeader, len(answers))
}

// moveLeader asks the leader to hand over to the next member that serves.
func (e etcd) moveLeader(ctx context.Context, c *Cluster, from int) error {
	nodes := c.Nodes()
	answers, err := collect(nodes, func(n *Node) (etcdStatus, error) { return etcdAsk(ctx, n) })
	if err != nil {
		return err
	}
	err = errors.New("no other member serves")
	for i := range answers {
		// Round the members, from the one behind the leader.
		target := answers[(i+from+1)%len(answers)]
		if target.node.index == from {
			continue
		}
		_, err = get(ctx, "http://"+nodes[from].Address+"/v3/maintenance/transfer-leadership", `{"targetID":`+strconv.Quote(target.said.Header.Member)+`}`)
		if err == nil {
			return nil
		}
	}
	return err
}
