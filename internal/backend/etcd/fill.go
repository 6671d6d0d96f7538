package etcd

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/internal/backend"
)

// rejection is in etcd's error when it has no space.
const rejection = "database space exceeded"

// alarm is what an etcd raises by itself when its quota is used up, and a
// person takes back.
type alarm struct {
	Action string `json:"action"` // GET, ACTIVATE, DEACTIVATE
	Member string `json:"memberID,omitempty"`
	Alarm  string `json:"alarm"`
}

// send has the members agree on the alarm, and returns those that are raised, by
// member.
func (a alarm) send(ctx context.Context, n *backend.Node) (raised []string, err error) {
	a.Alarm = "NOSPACE"
	body, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	data, err := n.Get(ctx, "/v3/maintenance/alarm", string(body))
	if err != nil {
		return nil, err
	}
	var answer struct{ Alarms []alarm }
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("its alarms: %w", err)
	}
	for _, alarm := range answer.Alarms {
		raised = append(raised, alarm.Member)
	}
	return raised, nil
}

func (Backend) Fill(ctx context.Context, _ *backend.Cluster, n *backend.Node) (how string, err error) {
	member, err := memberID(ctx, n, n.Name)
	if err != nil {
		return "", err
	}
	if _, err := (alarm{Action: "ACTIVATE", Member: member}).send(ctx, n); err != nil {
		return "", err
	}
	n.Asked("Put", 1)
	key := base64.StdEncoding.EncodeToString([]byte(backend.FillerPrefix + "mark"))
	_, err = n.Get(ctx, "/v3/kv/put", `{"key":"`+key+`"}`)
	switch {
	case err == nil:
		return "", fmt.Errorf("%w: it takes a put", backend.ErrNotFull)
	case !strings.Contains(err.Error(), rejection):
		return "", fmt.Errorf("%w: it answers a put by %w", backend.ErrNotFull, err)
	}
	return fmt.Sprintf("alarm NOSPACE raised; for member %s, which answers a put by %q", n.Name, rejection), nil
}

// Drain takes the alarm back. The alarm outlives the member: if that is dead, the
// request goes to the others.
func (Backend) Drain(ctx context.Context, c *backend.Cluster, n *backend.Node) error {
	nodes := append([]*backend.Node{n}, c.Nodes()...)
	serves := func(n *backend.Node) bool { return n.Alive() && n.Awake() == nil }
	i := slices.IndexFunc(nodes, serves)
	if i < 0 {
		return os.ErrProcessDone
	}
	by := nodes[i]
	// While the members elect a leader they agree on nothing.
	var last error
	err := by.Until(ctx, func() (bool, error) {
		last = disarm(ctx, by, n.Name)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// disarm asks one member to take back the alarm of one.
func disarm(ctx context.Context, by *backend.Node, name string) error {
	member, err := memberID(ctx, by, name)
	if err != nil {
		return err
	}
	if _, err := (alarm{Action: "DEACTIVATE", Member: member}).send(ctx, by); err != nil {
		return err
	}
	raised, err := alarm{Action: "GET"}.send(ctx, by)
	if err == nil && slices.Contains(raised, member) {
		err = fmt.Errorf("the alarm NOSPACE of %s is not taken back", name)
	}
	return err
}

// memberID is the number by which members know the one of a name.
func memberID(ctx context.Context, by *backend.Node, name string) (id string, err error) {
	by.Asked("MemberList", 1)
	data, err := by.Get(ctx, "/v3/cluster/member/list", "{}")
	if err != nil {
		return "", err
	}
	var list struct {
		Members []struct{ ID, Name string }
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return "", fmt.Errorf("its list of members: %w", err)
	}
	for _, m := range list.Members {
		if m.Name == name {
			return m.ID, nil
		}
	}
	return "", fmt.Errorf("%s is not in its list of members", name)
}
