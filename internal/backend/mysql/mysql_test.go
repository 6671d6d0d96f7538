package mysql

import (
	"errors"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/backend"
	"github.com/lockbench/lockbench/internal/testenv"
)

// A topology that the server cannot serve is rejected with a command that helps.
func TestRequireNamesMariaDBAndGalera(t *testing.T) {
	oracle := backend.Binary{Product: "MySQL", Path: "/usr/sbin/mysqld"}
	maria := backend.Binary{Product: "MariaDB", Path: "/usr/sbin/mariadbd"}
	withGalera := backend.Binary{Product: "MariaDB", Extra: map[string]string{galera: "/usr/lib/libgalera_smm.so"}}
	for _, tt := range []struct {
		binary   backend.Binary
		topology string
		words    string // of the error; "": none
	}{
		{oracle, "single", ""},
		{oracle, replicated, "takes MariaDB"},
		{oracle, galera, "takes MariaDB"},
		{maria, replicated, ""},
		{maria, galera, "libgalera_smm.so"},
		{withGalera, galera, ""},
	} {
		err := Backend{}.Require(tt.binary, tt.topology)
		if tt.words == "" {
			if err != nil {
				t.Errorf("%s %s: %v", tt.binary.Product, tt.topology, err)
			}
			continue
		}
		if !errors.Is(err, backend.ErrMissing) || !strings.Contains(err.Error(), tt.words) ||
			!strings.Contains(err.Error(), "apt-get install") && !strings.Contains(err.Error(), "brew") {
			t.Errorf("%s %s: %v", tt.binary.Product, tt.topology, err)
		}
	}
}

// The server that `make servers` installs serves every topology.
func TestInstalledServerServesEveryTopology(t *testing.T) {
	testenv.NeedsServers(t, "mysql")
	b, err := backend.Find(Backend{}, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, topology := range (Backend{}).Describe().Topologies {
		if err := (Backend{}).Require(b, topology.Name); err != nil {
			t.Errorf("%s: %v (install it by `make servers`)", topology.Name, err)
		}
	}
}

func TestGTIDs(t *testing.T) {
	has, err := gtids("0-1-57,0-2-60,3-1-4")
	if err != nil || len(has) != 3 || has[gtid{"0", "2"}] != 60 || has[gtid{"3", "1"}] != 4 {
		t.Errorf("%v, %v", has, err)
	}
	if has, err := gtids(""); err != nil || len(has) != 0 {
		t.Errorf("of nothing: %v, %v", has, err)
	}
	for _, bad := range []string{"0-1", "0-1-x", "0-1-2-3", "0"} {
		if _, err := gtids(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
