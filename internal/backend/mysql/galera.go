package mysql

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/supervise"
)

// galera is the topology of MariaDB servers that are all written to. Each
// transaction is put in an order that all share when it commits, and of two that
// have changed the same row the later is rolled back, by every server alike.
const galera = "galera"

// The ports of a node of it, behind the clients'.
const (
	galeraGroup = 1 // where the others send what they commit
	galeraCatch = 2 // where one of them sends what a node missed while it was away
)

// galeraTimings are those by which a node that is silent is taken for dead,
// shorter than the production defaults: it is suspected after 2 s and not 5, and
// by all after 5 s and not 15.
const galeraTimings = "evs.keepalive_period=PT0.2S;evs.inactive_check_period=PT0.2S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT5S;evs.install_timeout=PT5S"

// galeraProvider finds the library that makes a MariaDB a member of a Galera
// cluster; "" if there is none.
func galeraProvider(server string) string {
	prefix := filepath.Dir(filepath.Dir(server))
	for _, dir := range []string{filepath.Join(prefix, "lib"), filepath.Join(prefix, "lib64"), "/usr/lib", "/usr/lib64"} {
		for _, below := range []string{"galera", "galera-4", ""} {
			path := filepath.Join(dir, below, "libgalera_smm.so")
			if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() {
				return path
			}
		}
	}
	return ""
}

// galeraMethod is the program by which a node that was away gets what it missed.
// A server runs a program of this name at either end: ours agrees that the others
// send the missing transactions, and refuses to copy all data. The memory of the
// others is enough for the time that a fault takes; the distribution's programs
// need packages that may be missing or, as root, do not work.
const galeraMethod = "lockbench"

//go:embed galera_sst.sh
var galeraScript string

// galeraFlags are those of a node that starts for the first time.
func galeraFlags(c *backend.Cluster, n *backend.Node) map[string]string {
	var members []string
	for _, m := range c.Nodes() {
		members = append(members, c.Peer(m, galeraGroup))
	}
	group, catch := strconv.Itoa(n.Ports[galeraGroup]), strconv.Itoa(n.Ports[galeraCatch])
	return map[string]string{
		"server-id": strconv.Itoa(n.Index + 1),
		// Without these the servers would not be the same, or refuse to start.
		"binlog-format": "ROW", "default-storage-engine": "InnoDB", "innodb-autoinc-lock-mode": "2",

		"wsrep-on": "ON", "wsrep-provider": c.Binary.Extra[galera], "wsrep-node-name": n.Name,
		// A server with another name is refused: it may be from another run, and
		// still look for a member at a port that is now ours. At most 32 characters.
		"wsrep-cluster-name":    "lockbench-" + galeraID(c, 0)[:18],
		"wsrep-cluster-address": "gcomm://" + strings.Join(members, ","),
		"wsrep-node-address":    n.Host + ":" + group,
		"wsrep-sst-method":      galeraMethod, "wsrep-sst-receive-address": n.Host + ":" + group,
		"wsrep-provider-options": strings.Join([]string{
			"gmcast.listen_addr=tcp://" + n.Host + ":" + group,
			"ist.recv_bind=tcp://" + n.Host + ":" + catch, "ist.recv_addr=tcp://" + c.PeerHost(n) + ":" + catch,
			galeraTimings,
		}, ";"),
	}
}

// galeraID is a UUID of the cluster's own, by number: 0 is the group's, the
// others are the nodes'.
func galeraID(c *backend.Cluster, number int) string {
	sum := sha256.Sum256([]byte(c.Dir + " " + strconv.Itoa(number)))
	sum[6], sum[8] = 0x10|sum[6]&0x0f, 0x80|sum[8]&0x3f
	return fmt.Sprintf("%x-%x-%x-%x-%x", sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}

// galeraFound writes what a node would have from an earlier life in a group: the
// state that it stopped at, and the group's members then. All nodes start with
// the same, an empty database, and so form the group by themselves as after a
// power cut, at once and without a copy of anything. The alternative, to found it
// with one node and let the others join, takes one after another, seconds each.
func galeraFound(c *backend.Cluster, n *backend.Node, data string) error {
	var view strings.Builder
	fmt.Fprintf(&view, "my_uuid: %s\n#vwbeg\nview_id: 3 %s 1\nbootstrap: 0\n", galeraID(c, n.Index+1), galeraID(c, 1))
	for _, m := range c.Nodes() {
		fmt.Fprintf(&view, "member: %s 0\n", galeraID(c, m.Index+1))
	}
	view.WriteString("#vwend\n")
	state := fmt.Sprintf("# GALERA saved state\nversion: 2.1\nuuid:    %s\nseqno:   0\nsafe_to_bootstrap: 0\n", galeraID(c, 0))
	for name, text := range map[string]string{"gvwstate.dat": view.String(), "grastate.dat": state} {
		if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(n.Dir, "wsrep_sst_"+galeraMethod), []byte(galeraScript), 0o700)
}

// galeraEnv lets the server find our script.
func galeraEnv(n *backend.Node) []string {
	return append(os.Environ(), "PATH="+n.Dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// galeraPosition finds the last transaction in the data of a node that was killed:
// the server does not search for it, and would request a copy of all data.
func galeraPosition(ctx context.Context, c *backend.Cluster, n *backend.Node, args []string) (string, error) {
	var logged int64
	if st, err := os.Stat(n.Log); err == nil {
		logged = st.Size()
	}
	args = append(args[:len(args):len(args)], "--wsrep-recover")
	err := c.RunOnce(ctx, n, supervise.Command{Name: n.Name + " recovery", Path: c.Binary.Path, Args: args, Dir: n.Dir})
	if err != nil {
		return "", err
	}
	position := backend.Between(strings.Join(backend.LogLines(n.Log, logged), "\n")+"\n", "Recovered position: ", " \n")
	if position == "" {
		return "", fmt.Errorf("%w: its data do not show at which transaction it was killed; see %s", backend.ErrServer, n.Log)
	}
	return position, nil
}

// galeraReady: the node is in the group, with all that the group has.
func galeraReady(ctx context.Context, n *backend.Node) error {
	s, err := groupStatus(ctx, n)
	if err != nil {
		return err
	}
	if s["wsrep_ready"] != "ON" || s["wsrep_local_state_comment"] != "Synced" {
		return fmt.Errorf("it takes no statements: in the group it is %s, as one of %s (%s)",
			s["wsrep_local_state_comment"], s["wsrep_cluster_size"], s["wsrep_cluster_status"])
	}
	return nil
}

func groupStatus(ctx context.Context, n *backend.Node) (map[string]string, error) {
	return askPairs(ctx, n, `SHOW GLOBAL STATUS LIKE 'wsrep\_%'`)
}

// galeraWhole: every node is in one group with all others.
func galeraWhole(ctx context.Context, c *backend.Cluster) error {
	nodes := c.Nodes()
	for _, n := range nodes {
		s, err := groupStatus(ctx, n)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Name, err)
		}
		if s["wsrep_cluster_status"] != "Primary" || s["wsrep_cluster_size"] != strconv.Itoa(len(nodes)) {
			return fmt.Errorf("%s is in a group of %s that is %s", n.Name, s["wsrep_cluster_size"], s["wsrep_cluster_status"])
		}
	}
	return nil
}

// galeraSettings are read back. The provider's own stand in one long line.
func galeraSettings(all, into map[string]string) {
	for option := range strings.SplitSeq(all["wsrep_provider_options"], ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(option), " = ")
		for _, ours := range []string{"evs.keepalive_period", "evs.inactive_check_period", "evs.suspect_timeout", "evs.inactive_timeout", "evs.install_timeout", "gcache.size"} {
			if name == ours {
				into[name] = value
			}
		}
	}
	maps.Copy(into, backend.Pick(all, nil, "binlog_format", "wsrep_provider", "wsrep_sst_method", "wsrep_sync_wait", "wsrep_retry_autocommit", "wsrep_slave_threads"))
}
