package cluster_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/cluster/clustertest"
	"github.com/lockbench/lockbench/internal/testenv"
)

func TestSingle(t *testing.T) {
	t.Parallel()
	for backend, want := range map[string]struct {
		durability string
		settings   []string
	}{
		"redis":     {"appendonly=no save=3600 1 300 100 60 10000", []string{"appendonly", "appendfsync", "maxclients"}},
		"etcd":      {"fsync on", []string{"heartbeat-interval", "election-timeout"}},
		"zookeeper": {"forceSync=yes (default) tickTime=2000", []string{"tickTime", "maxClientCnxns", "java.version"}},
		"memcached": {"none (memory only)", []string{"maxbytes", "num_threads"}},
		"mysql":     {"innodb_flush_log_at_trx_commit=1 sync_binlog=", []string{"max_connections", "innodb_buffer_pool_size"}},
	} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, backend, "single")
			info := c.Info()
			t.Logf("%s %s ready after %d ms: %s; %v", info.Product, info.Version, info.ReadyMS, info.Durability, info.Settings)
			if !strings.HasPrefix(info.Durability, want.durability) {
				t.Errorf("durability %q, want %q...", info.Durability, want.durability)
			}
			for _, name := range want.settings {
				if info.Settings[name] == "" {
					t.Errorf("setting %s was not read back", name)
				}
			}
			if info.Product == "" || info.Version == "" || info.Binary == "" {
				t.Errorf("who is it? %+v", info)
			}
			if len(c.Addresses()) != 1 || len(info.Nodes) != 1 || info.Nodes[0].PID != c.Nodes()[0].Process.PID() {
				t.Errorf("nodes %+v at %v", info.Nodes, c.Addresses())
			}
			if err := c.Healthy(t.Context()); err != nil {
				t.Errorf("healthy: %v", err)
			}
			if cpu, err := c.CPU(); err != nil || cpu <= 0 {
				t.Errorf("CPU %v, %v", cpu, err)
			}
			process := c.Nodes()[0].Process
			if err := c.Stop(context.Background()); err != nil {
				t.Errorf("stop: %v", err)
			}
			select {
			case <-process.Done():
			default:
				t.Error("the server lives on after Stop")
			}
			if err := c.Healthy(t.Context()); !errors.Is(err, cluster.ErrServer) {
				t.Errorf("healthy after Stop: %v, want ErrServer", err)
			}
		})
	}
}

// All five at once is what the quick suite starts with.
func TestSideBySide(t *testing.T) {
	began := time.Now()
	var wg sync.WaitGroup
	run := clustertest.Run(t)
	logs := t.TempDir()
	for _, backend := range cluster.Backends() {
		wg.Go(func() {
			spec := cluster.Spec{Backend: backend, LogDir: logs, Clients: 2000}
			if backend == "etcd" {
				spec.Binary = etcdBinary(t)
			}
			c, err := cluster.Start(t.Context(), run, spec)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := c.Counters(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	t.Logf("all five ready after %v", time.Since(began))
}

func TestQuorum(t *testing.T) {
	t.Parallel()
	for backend, settings := range map[string]map[string]string{
		"etcd":      nil,
		"zookeeper": clustertest.FastZooKeeper(),
	} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, backend, "quorum", settings)
			if len(c.Addresses()) != 3 {
				t.Fatalf("addresses %v", c.Addresses())
			}
			if err := c.Healthy(t.Context()); err != nil {
				t.Error(err)
			}
			list, err := c.Counters(t.Context())
			if err != nil || len(list) != 3 {
				t.Errorf("counters of %d nodes, %v", len(list), err)
			}
			info := c.Info()
			t.Logf("ready after %d ms, %v", info.ReadyMS, info.Settings)
			if backend == "zookeeper" && c.Limits().TickTime != 500*time.Millisecond {
				t.Errorf("tick %v, want what was set", c.Limits().TickTime)
			}
		})
	}
}

// The caller's settings are applied, and the settings read back are the server's.
func TestSettings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ backend, name, value, readBack, want, durability string }{
		{"redis", "appendonly", "yes", "appendonly", "yes", "appendonly=yes appendfsync=everysec save=3600 1 300 100 60 10000"},
		{"redis", "save", "", "save", "", `appendonly=no save=""`},
		{"memcached", "m", "32", "maxbytes", "33554432", "none (memory only)"},
		{"memcached", "M", "", "evictions", "off", "none (memory only)"},
		{"mysql", "innodb-flush-log-at-trx-commit", "2", "innodb_flush_log_at_trx_commit", "2", "innodb_flush_log_at_trx_commit=2 "},
		{"zookeeper", "tickTime", "1000", "tickTime", "1000", "forceSync=yes (default) tickTime=1000"},
		{"zookeeper", "forceSync", "no", "set forceSync", "no", "forceSync=no tickTime=2000"},
		{"etcd", "election-timeout", "2000", "election-timeout", "2s", "fsync on"},
		{"etcd", "unsafe-no-fsync", "true", "flag unsafe-no-fsync", "true", "fsync OFF"},
	} {
		t.Run(tt.backend+"/"+tt.name, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, tt.backend, "single", map[string]string{tt.name: tt.value})
			info := c.Info()
			if got := info.Settings[tt.readBack]; got != tt.want {
				t.Errorf("%s reads back %q, want %q", tt.readBack, got, tt.want)
			}
			if !strings.HasPrefix(info.Durability, tt.durability) {
				t.Errorf("durability %q, want %q...", info.Durability, tt.durability)
			}
		})
	}
}

// The error for a server that cannot start has the last lines of its log.
func TestServerThatCannotStart(t *testing.T) {
	t.Parallel()
	for backend, tt := range map[string]struct{ name, value, words string }{
		"redis":     {"appendfsync", "sometimes", "appendfsync"},
		"etcd":      {"no-such-flag", "1", "no-such-flag"},
		"zookeeper": {"tickTime", "often", "often"},
		"memcached": {"t", "none", "threads"},
		"mysql":     {"no-such-variable", "1", "no-such-variable"},
	} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			run := clustertest.Run(t)
			spec := cluster.Spec{Backend: backend, Settings: map[string]string{tt.name: tt.value}, LogDir: t.TempDir()}
			if backend == "etcd" {
				spec.Binary = etcdBinary(t)
			}
			_, err := cluster.Start(t.Context(), run, spec)
			if !errors.Is(err, cluster.ErrServer) {
				t.Fatalf("error %v, want ErrServer", err)
			}
			if !strings.Contains(strings.ToLower(err.Error()), tt.words) {
				t.Errorf("the message lacks %q:\n%v", tt.words, err)
			}
			left, err := os.ReadDir(run.Dir())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range left {
				if e.IsDir() {
					t.Errorf("%s was left behind", e.Name())
				}
			}
		})
	}
}

func TestSpecErrors(t *testing.T) {
	run := clustertest.Run(t)
	for _, tt := range []struct {
		spec  cluster.Spec
		err   error
		words string
	}{
		{cluster.Spec{Backend: "riddle"}, cluster.ErrSpec, "redis"},
		{cluster.Spec{Backend: "memcached", Topology: "quorum"}, cluster.ErrSpec, "single"},
		{cluster.Spec{Backend: "redis", Topology: "quorum", Nodes: 4}, cluster.ErrSpec, "5 3"},
		{cluster.Spec{Backend: "etcd", Topology: "quorum", Nodes: 4}, cluster.ErrSpec, "3 5"},
		{cluster.Spec{Backend: "redis", Settings: map[string]string{"port": "1"}}, cluster.ErrSpec, "port"},
		{cluster.Spec{Backend: "redis", Binary: "/nonexistent/redis"}, cluster.ErrBinary, "--server redis="},
		{cluster.Spec{Backend: "redis", Binary: "/dev/null"}, cluster.ErrBinary, "not an executable"},
		{cluster.Spec{Backend: "redis", Binary: "/bin/false"}, cluster.ErrBinary, "version"},
		{cluster.Spec{Backend: "zookeeper", Binary: t.TempDir()}, cluster.ErrBinary, "zookeeper-VERSION.jar"},
	} {
		if _, err := cluster.Start(t.Context(), run, tt.spec); !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.words) {
			t.Errorf("%+v: %v, want %v with %q", tt.spec, err, tt.err, tt.words)
		}
	}
}

func TestNamedByTheEnvironment(t *testing.T) {
	testenv.NeedsServers(t, "memcached")
	t.Setenv("LOCKBENCH_SERVER_MEMCACHED", "/nonexistent/memcached")
	if _, err := cluster.Find("memcached", ""); !errors.Is(err, cluster.ErrBinary) || !strings.Contains(err.Error(), "LOCKBENCH_SERVER_MEMCACHED") {
		t.Errorf("error %v, want ErrBinary that names the variable", err)
	}
	// The flag wins.
	t.Setenv("LOCKBENCH_SERVER_MEMCACHED", "")
	b, err := cluster.Find("memcached", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LOCKBENCH_SERVER_MEMCACHED", "/nonexistent/memcached")
	if got, err := cluster.Find("memcached", b.Path); err != nil || got.Path != b.Path {
		t.Errorf("found %+v, %v; want %s", got, err, b.Path)
	}
}

// A folder laid out as Apache's archive is: lib/ with versioned jars.
func TestZooKeeperFromAFolder(t *testing.T) {
	t.Parallel()
	testenv.NeedsServers(t, "zookeeper")
	b, err := cluster.Find("zookeeper", "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "lib"), 0o755); err != nil {
		t.Fatal(err)
	}
	for i, jar := range filepath.SplitList(b.Extra["classpath"]) {
		name := filepath.Base(jar)
		if i == 0 {
			name = "zookeeper-9.8.7.jar"
		}
		if err := os.Symlink(jar, filepath.Join(dir, "lib", name)); err != nil {
			t.Fatal(err)
		}
	}
	spec := cluster.Spec{Backend: "zookeeper", Binary: dir, Settings: clustertest.FastZooKeeper()}
	c := clustertest.StartSpec(t, spec)
	if !slices.ContainsFunc(c.Info().Nodes[0].Command, func(arg string) bool {
		return strings.Contains(arg, filepath.Join(dir, "lib", "zookeeper-9.8.7.jar"))
	}) {
		t.Errorf("it was started by %q", c.Info().Nodes[0].Command)
	}
}

func TestStartIsInterrupted(t *testing.T) {
	run := clustertest.Run(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cluster.Start(ctx, run, cluster.Spec{Backend: "zookeeper"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want Canceled", err)
	}
}

// Counters show the clients' requests and none of our own.
func TestCounters(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		backend string
		use     func(t *testing.T, c *cluster.Cluster)
		want    map[string]int64
	}{
		{"redis", func(t *testing.T, c *cluster.Cluster) {
			talk(t, c, "SET a 1\r\n", "+OK")
			talk(t, c, "SET a 1\r\n", "+OK")
			talk(t, c, "DEL a\r\n", ":1")
		}, map[string]int64{"set": 2, "del": 1}},
		{"memcached", func(t *testing.T, c *cluster.Cluster) {
			talk(t, c, "add a 0 0 1\r\n1\r\n", "STORED")
			talk(t, c, "add a 0 0 1\r\n1\r\n", "NOT_STORED")
			talk(t, c, "get a\r\n", "VALUE")
			talk(t, c, "delete a\r\n", "DELETED")
			talk(t, c, "delete a\r\n", "NOT_FOUND")
		}, map[string]int64{"cmd_set": 2, "cmd_get": 1, "cmd_delete": 2}},
		{"etcd", useEtcd, map[string]int64{"Put": 3, "Range": 1, "LeaseGrant": 1, "LeaseKeepAlive": 2, "Watch": 2}},
		{"mysql", useMySQL, map[string]int64{"com_select": 2, "com_insert": 1, "com_create_table": 1}},
		{"zookeeper", useZooKeeper, map[string]int64{"packets_received": 4}},
	} {
		t.Run(tt.backend, func(t *testing.T) {
			t.Parallel()
			c := clustertest.Start(t, tt.backend, "single")
			before := counters(t, c)
			for range 3 { // ours do not count
				counters(t, c)
				if err := c.Healthy(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			idle := counters(t, c)
			for name := range tt.want {
				if idle[name] != before[name] {
					t.Errorf("%s grew from %d to %d by our own questions", name, before[name], idle[name])
				}
			}
			tt.use(t, c)
			after := counters(t, c)
			for name, want := range tt.want {
				if got := after[name] - idle[name]; got != want {
					t.Errorf("%s grew by %d, want %d", name, got, want)
				}
			}
		})
	}
}

func counters(t *testing.T, c *cluster.Cluster) map[string]int64 {
	t.Helper()
	list, err := c.Counters(t.Context())
	if err != nil || len(list) != 1 {
		t.Fatalf("counters %v, %v", list, err)
	}
	return list[0].Counters
}

// talk sends a line of a text protocol to the first server and expects an
// answer.
func talk(t *testing.T, c *cluster.Cluster, request, want string) {
	t.Helper()
	talkTo(t, c.Addresses()[0], request, want)
}

func talkTo(t *testing.T, address, request, want string) {
	t.Helper()
	if line := replyOf(t, address, request, 1)[0]; !strings.HasPrefix(line, want) {
		t.Fatalf("%q is answered by %q, want %q", request, line, want)
	}
}

// replyOf asks, and returns so many lines of the answer.
func replyOf(t *testing.T, address, request string, count int) []string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, request)
	answer, lines := bufio.NewReader(conn), make([]string, count)
	for i := range lines {
		line, err := answer.ReadString('\n')
		if err != nil {
			t.Fatalf("%q is answered by %q, %v", request, lines[:i], err)
		}
		lines[i] = strings.TrimSpace(line)
	}
	return lines
}

func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func TestBackendsHaveTopologies(t *testing.T) {
	for _, b := range cluster.Backends() {
		if !slices.Contains(cluster.Topologies(b), "single") {
			t.Errorf("%s has no single", b)
		}
	}
	if got := cluster.Topologies("riddle"); got != nil {
		t.Errorf("topologies of nothing: %v", got)
	}
}
