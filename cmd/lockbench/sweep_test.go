package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

func TestSweeps(t *testing.T) {
	args := []string{"run", "--recipe", "reference/mutex", "--workload", "hot-key", "--clients", "1,8", "--dry-run", "--format", "json", "--quiet"}
	plan := func(flags ...string) []scenario.Scenario {
		t.Helper()
		var stdout, stderr bytes.Buffer
		if code := execute(context.Background(), append(args, flags...), strings.NewReader(""), &stdout, &stderr); code != exitOK {
			t.Fatalf("%v: %s", flags, stderr.String())
		}
		var list []scenario.Scenario
		if err := json.Unmarshal(stdout.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		return list
	}
	list := plan("--ttl", "2s, 1.5s", "--hold", "uniform(1ms, 3ms),250us")
	want := map[string]bool{}
	for _, ttl := range []string{"2s", "1-5s"} {
		for _, hold := range []string{"uniform-1ms-3ms", "250us"} {
			for _, clients := range []string{"1c", "8c"} {
				want["hot-key-hold-"+hold+"-ttl-"+ttl+"-reference-mutex-"+clients+"-r1"] = true
				want["hot-key-ttl-"+ttl+"-hold-"+hold+"-reference-mutex-"+clients+"-r1"] = true
			}
		}
	}
	if len(list) != 8 {
		t.Errorf("%d scenarios, want 8", len(list))
	}
	for _, sc := range list {
		if !want[sc.Name] {
			t.Errorf("unexpected %s", sc.Name)
		}
		if short := strings.Contains(sc.Name, "ttl-1-5s"); short != (sc.TTL.D() == 1500*time.Millisecond) {
			t.Errorf("%s has TTL %s", sc.Name, sc.TTL)
		}
		if short := strings.Contains(sc.Name, "250us"); short != (sc.Workload.Hold.A == 250*time.Microsecond) || sc.Workload.Think != sc.Workload.Hold {
			t.Errorf("%s has hold %s, think %s", sc.Name, sc.Workload.Hold, sc.Workload.Think)
		}
	}
	// One value changes no name.
	if one := plan("--ttl", "2s"); len(one) != 2 || one[0].Name != "hot-key-reference-mutex-1c-r1" || one[0].TTL.D() != 2*time.Second {
		t.Errorf("%+v", one)
	}
	for _, wrong := range [][]string{{"--ttl", "2s,"}, {"--ttl", "2s,2s"}, {"--hold", "uniform(1ms,3ms"}} {
		var stdout, stderr bytes.Buffer
		if code := execute(context.Background(), append(args, wrong...), strings.NewReader(""), &stdout, &stderr); code != exitUsage {
			t.Errorf("%v: exit code %d", wrong, code)
		}
	}
}
