package cluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/backend/all"
	"github.com/lockbench/lockbench/internal/supervise"
)

// imitated is a quorum of processes that live, at addresses where the test
// answers for them. An empty address is a dead process's.
func imitated(t *testing.T, name string, addresses []string) *Cluster {
	t.Helper()
	run, err := supervise.Begin("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := run.End(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b, err := all.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{
		spec: Spec{Topology: "quorum", Nodes: len(addresses)}, backend: b,
		servers: &backend.Cluster{Backend: name, Topology: backend.Topology{Name: "quorum"}},
	}
	for i, address := range addresses {
		p, err := run.Start(supervise.Command{Name: "bystander", Path: "/bin/sh", StdinPipe: true, Args: []string{"-c", "read forever"}})
		if err != nil {
			t.Fatal(err)
		}
		if address == "" {
			if err := p.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		c.servers.SetNode(&Node{Name: fmt.Sprint("member-", i), Address: address, Process: p, Index: i})
	}
	return c
}

func checkLeader(t *testing.T, c *Cluster, want int) {
	t.Helper()
	node, err := c.Leader(t.Context())
	if want < 0 {
		if !errors.Is(err, ErrNoLeader) {
			t.Errorf("node %d leads, %v; want none", node, err)
		}
	} else if err != nil || node != want {
		t.Errorf("node %d leads, %v; want %d", node, err, want)
	}
}

// TestEtcdVotes: a member that was cut off and still reports that it leads is not
// the leader, nor is one that others name but that does not report it.
func TestEtcdVotes(t *testing.T) {
	t.Parallel()
	type vote struct{ leader, term int } // leader 0: none
	for name, tt := range map[string]struct {
		votes []vote
		want  int
	}{
		"agreed":              {[]vote{{2, 7}, {2, 7}, {2, 7}}, 1},
		"one still behind":    {[]vote{{1, 6}, {2, 7}, {2, 7}}, 1},
		"the new one unknown": {[]vote{{1, 6}, {1, 6}, {3, 7}}, 0},
		"no leader yet":       {[]vote{{0, 7}, {0, 7}, {0, 7}}, -1},
		"alone":               {[]vote{{1, 6}, {0, 7}, {0, 7}}, -1},
		"terms differ":        {[]vote{{1, 6}, {1, 7}, {0, 7}}, -1},
		"it does not know":    {[]vote{{0, 7}, {1, 7}, {1, 7}}, -1},
		"one dead":            {[]vote{{}, {2, 7}, {2, 7}}, 1},
		"two dead":            {[]vote{{}, {2, 7}, {}}, -1},
		"the leader is dead":  {[]vote{{}, {1, 7}, {1, 7}}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			var addresses []string
			for i, v := range tt.votes {
				if v == (vote{}) {
					addresses = append(addresses, "")
					continue
				}
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					leader := ""
					if v.leader != 0 {
						leader = fmt.Sprintf(`"leader":"%d",`, v.leader)
					}
					fmt.Fprintf(w, `{"header":{"member_id":"%d"},%s"raftTerm":"%d"}`, i+1, leader, v.term)
				}))
				defer s.Close()
				addresses = append(addresses, strings.TrimPrefix(s.URL, "http://"))
			}
			checkLeader(t, imitated(t, "etcd", addresses), tt.want)
		})
	}
}

// TestZooKeeperVotes: of two servers that report that they lead, the one with the
// later epoch leads, if a majority is in step with it.
func TestZooKeeperVotes(t *testing.T) {
	t.Parallel()
	type vote struct {
		mode    string
		epoch   int
		follows string
	}
	follower, dead, choosing := vote{"follower", 2, ""}, vote{}, vote{"", 2, ""}
	for name, tt := range map[string]struct {
		votes []vote
		want  int
	}{
		"agreed":                  {[]vote{follower, {"leader", 2, "2"}, follower}, 1},
		"counted in fractions":    {[]vote{follower, {"leader", 2, "2.0"}, follower}, 1},
		"before any write":        {[]vote{{"follower", 1, ""}, {"follower", 1, ""}, {"leader", 2, "2"}}, 2},
		"woken after a pause":     {[]vote{{"leader", 1, "2"}, {"leader", 2, "1"}, follower}, 1},
		"woken, the new one dead": {[]vote{{"leader", 1, "2"}, dead, follower}, -1},
		"alone":                   {[]vote{{"leader", 2, "0"}, choosing, choosing}, -1},
		"choosing":                {[]vote{choosing, choosing, dead}, -1},
		"followers only":          {[]vote{follower, follower, dead}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			var addresses []string
			for _, v := range tt.votes {
				if v == dead {
					addresses = append(addresses, "")
					continue
				}
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				addresses = append(addresses, l.Addr().String())
				go func() {
					for {
						conn, err := l.Accept()
						if err != nil {
							return
						}
						word := make([]byte, 4)
						_, _ = conn.Read(word)
						switch {
						case v.mode == "":
							fmt.Fprint(conn, "This ZooKeeper instance is not currently serving requests\n")
						case string(word) == "srvr":
							fmt.Fprintf(conn, "Zookeeper version: 3\nZxid: %#x\nMode: %s\n", v.epoch<<32, v.mode)
						default:
							fmt.Fprintf(conn, "zk_server_state\t%s\nzk_synced_followers\t%s\n", v.mode, v.follows)
						}
						conn.Close()
					}
				}()
			}
			checkLeader(t, imitated(t, "zookeeper", addresses), tt.want)
		})
	}
}
