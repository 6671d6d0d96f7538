package cluster_test

import (
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/testenv"
)

func TestDiagnose(t *testing.T) {
	testenv.NeedsServers(t)
	r := cluster.Diagnose(t.Context(), map[string]string{"redis": "/nonexistent/redis", "etcd": etcdBinary(t)})
	if len(r.Backends) != len(cluster.Backends()) || len(r.Machine) == 0 {
		t.Fatalf("report %+v", r)
	}
	for _, f := range append(r.Backends, r.Machine...) {
		t.Logf("%-22s %-5v %s%s -> %s", f.Subject, f.Works, f.Found, f.Why, f.Mend)
		if f.Subject == "" || f.Works && (f.Found == "" || f.Why != "") || !f.Works && (f.Why == "" || f.Mend == "") {
			t.Errorf("what works is found, what does not has a reason and a cure: %+v", f)
		}
	}
	if redis := r.Backends[0]; redis.Works || !strings.Contains(redis.Why, "/nonexistent/redis") {
		t.Errorf("a server that is not there: %+v", redis)
	}
	if mc := r.Backends[3]; !mc.Works || !strings.Contains(mc.Found, "memcached 1.") || !strings.HasSuffix(mc.Found, "(single, sharded)") {
		t.Errorf("a server that is there: %+v", mc)
	}
}
