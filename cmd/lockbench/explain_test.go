package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/lockbench/lockbench/internal/scenario"
)

// A note that has no room beside its grant stands at the line's end: the bars of
// the other clients stay in their columns.
func TestExplainColumns(t *testing.T) {
	call := func(client uint32, kind, outcome string, invoke, ret int64) scenario.WitnessCall {
		return scenario.WitnessCall{Client: client, Kind: kind, Outcome: outcome, InvokeNS: invoke, ReturnNS: ret, Fence: uint64(client)}
	}
	calls := []scenario.WitnessCall{call(3, "acquire", "held", 30, 60), call(4, "acquire", "held", 10, 40)}
	faults := []scenario.FaultResult{{ID: "leader-cut-peers-1", InjectedNS: 20, HealedNS: 90}}
	x := scenario.Witness{Class: "overlap", Sentence: "both held it", Calls: calls, Faults: []string{"leader-cut-peers-1"}}
	var out bytes.Buffer
	explain(&out, "a", 1, 1, x, faults)
	column := -1
	for line := range strings.Lines(out.String()) {
		if at := strings.Index(line, "client 4"); at > 0 {
			column = at
		}
		if strings.Contains(line, "both hold it") {
			if column < 0 || len(line) <= column || line[column] != '|' || !strings.HasSuffix(line, " <- both hold it\n") {
				t.Errorf("the bar of client 4 belongs into column %d, and the note to the end: %q", column, line)
			}
			return
		}
	}
	t.Errorf("no line says that both hold it:\n%s", out.String())
}
