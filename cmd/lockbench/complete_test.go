package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// The shell completes the names of suites, recipes, workloads and faults.
func TestCompletion(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"run", "kno"}, "known-failures"},
		{[]string{"run", "--recipe", "redis/to"}, "redis/token"},
		{[]string{"run", "--recipe", "redis/token,etcd/m"}, "redis/token,etcd/mutex"},
		{[]string{"run", "--workload", "hot"}, "hot-key"},
		{[]string{"run", "--fault", "holder-pau"}, "holder-pause"},
		{[]string{"run", "--fault", "holder-pause,leader-cut-p"}, "holder-pause,leader-cut-peers"},
		{[]string{"run", "--format", "js"}, "json"},
		{[]string{"run", "--expect", "safe,ke"}, "safe,kept"},
		{[]string{"run", "--topology", "quo"}, "quorum"},
		{[]string{"list", "work"}, "workloads"},
		{[]string{"list", "faults", "leader-cut-p"}, "leader-cut-peers"},
		{[]string{"list", "suites", "qui"}, "quick"},
		{[]string{"compare", "--format", "mark"}, "markdown"},
		{[]string{"advise", "--backends", "redis,mys"}, "redis,mysql"},
		{[]string{"advise", "--need", "fen"}, "fencing"},
	} {
		var stdout, stderr bytes.Buffer
		code := execute(t.Context(), append([]string{"__complete"}, c.args...), strings.NewReader(""), &stdout, &stderr)
		if code != exitOK || !slices.Contains(strings.Split(stdout.String(), "\n"), c.want) {
			t.Errorf("%v ends with %d and without %q:\n%s%s", c.args, code, c.want, stdout.String(), stderr.String())
		}
	}
}
