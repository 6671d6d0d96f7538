package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// etcdRefused is how an etcd says that it has no room.
const etcdRefused = "database space exceeded"

// etcdAlarm is what an etcd raises by itself when its quota is used up, and a
// person takes back.
type etcdAlarm struct {
	Action string `json:"action"` // GET, ACTIVATE, DEACTIVATE
	Member string `json:"memberID,omitempty"`
	Alarm  string `json:"alarm"`
}

// send has the members agree on the alarm, and returns those that are raised, by
// member.
func (a etcdAlarm) send(ctx context.Context, n *Node) (raised []string, err error) {
	a.Alarm = "NOSPACE"
	body, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	data, err := get(ctx, "http://"+n.Address+"/v3/maintenance/alarm", string(body))
	if err != nil {
		return nil, err
	}
	var answer struct{ Alarms []etcdAlarm }
	if err := json.Unmarshal(data, &answer); err != nil {
		return nil, fmt.Errorf("its alarms: %w", err)
	}
	for _, alarm := range answer.Alarms {
		raised = append(raised, alarm.Member)
	}
	return raised, nil
}

func (etcd) fill(ctx context.Context, _ *Cluster, n *Node) (how string, err error) {
	member, err := etcdMember(ctx, n, n.Name)
	if err != nil {
		return "", err
	}
	if _, err := (etcdAlarm{Action: "ACTIVATE", Member: member}).send(ctx, n); err != nil {
		return "", err
	}
	n.asked.add("Put", 1)
	key := base64.StdEncoding.EncodeToString([]byte(fillerPrefix + "mark"))
	_, err = get(ctx, "http://"+n.Address+"/v3/kv/put", `{"key":"`+key+`"}`)
	switch {
	case err == nil:
		return "", fmt.Errorf("%w: it takes a put", ErrNotFull)
	case !strings.Contains(err.Error(), etcdRefused):
		return "", fmt.Errorf("%w: it answers a put by %w", ErrNotFull, err)
	}
	return fmt.Sprintf("alarm NOSPACE raised; for member %s, which answers a put by %q", n.Name, etcdRefused), nil
}

// drain takes the alarm back, which outlives the member: of one that is dead the
// others are asked.
func (etcd) drain(ctx context.Context, c *Cluster, n *Node) error {
	nodes := append([]*Node{n}, c.Nodes()...)
	serves := func(n *Node) bool { return n.alive() && n.awake() == nil }
	i := slices.IndexFunc(nodes, serves)
	if i < 0 {
		return os.ErrProcessDone
	}
	by := nodes[i]
	// While the members elect a leader they agree on nothing.
	var last error
	err := by.until(ctx, func() (bool, error) {
		last = etcdDisarm(ctx, by, n.Name)
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(err, last)
	}
	return nil
}

// etcdDisarm asks one member to take back the alarm of one.
func etcdDisarm(ctx context.Context, by *Node, name string) error {
	member, err := etcdMember(ctx, by, name)
	if err != nil {
		return err
	}
	if _, err := (etcdAlarm{Action: "DEACTIVATE", Member: member}).send(ctx, by); err != nil {
		return err
	}
	raised, err := etcdAlarm{Action: "GET"}.send(ctx, by)
	if err == nil && slices.Contains(raised, member) {
		err = fmt.Errorf("the alarm NOSPACE of %s is not taken back", name)
	}
	return err
}

// etcdMember is the number by which members know the one of a name.
func etcdMember(ctx context.Context, by *Node, name string) (id string, err error) {
	by.asked.add("MemberList", 1)
	data, err := get(ctx, "http://"+by.Address+"/v3/cluster/member/list", "{}")
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
