package scenario

import (
	"fmt"
	"slices"
)

// oneKey lists the workloads whose clients all want the same key.
var oneKey = []string{HotKey, TryStorm, ReadWrite, Reentrant, Churn, Properties}

// The most that an acquire may take at once, or take again.
const (
	maxReentry = 100
	maxBatch   = 100
)

// checkKeys checks the number of keys against the kind of load.
func checkKeys(f *findings, sc Scenario) {
	l := sc.Workload
	switch {
	case l.Kind == Uncontended && l.Keys != sc.Clients:
		f.add("workload.keys", "leave keys out", "uncontended gives each of the %d clients its own key, not %d keys to all", sc.Clients, l.Keys)
	case l.Kind == Takeover && sc.Clients >= 2 && l.Keys != sc.Clients/2:
		f.add("workload.keys", "leave keys out", "takeover has a key for each pair of its %d clients, not %d keys", sc.Clients, l.Keys)
	case slices.Contains(oneKey, l.Kind) && l.Keys != 1:
		f.add("workload.keys", "leave keys out, or use the workload keys", "%s has one key, not %d", l.Kind, l.Keys)
	case l.Keys < 1 || l.Keys > maxKeys:
		f.add("workload.keys", fmt.Sprintf("write 1 to %d", maxKeys), "%d keys", l.Keys)
	}
}

// checkKind checks what only some kinds of load have.
func checkKind(f *findings, sc Scenario) {
	l := sc.Workload
	switch {
	case l.Kind == ReadWrite && !(l.Readers >= 0 && l.Readers <= 1):
		f.add("workload.readers", "write 0.8, for example", "the share of readers is 0 to 1, not %v", l.Readers)
	case l.Kind != ReadWrite && l.Readers != 0:
		f.add("workload.readers", "use the workload read-write, or leave readers out", "%s has no readers", l.Kind)
	}
	switch {
	case l.Kind == Reentrant && (l.Depth < 2 || l.Depth > maxReentry):
		f.add("workload.depth", fmt.Sprintf("write 2 to %d", maxReentry), "a client that locks %d times over", l.Depth)
	case l.Kind != Reentrant && l.Depth != 0:
		f.add("workload.depth", "use the workload reentrant, or leave depth out", "%s locks once", l.Kind)
	}
	switch {
	case l.Kind == Batch && (l.Batch < 1 || l.Batch > maxBatch || l.Batch > l.Keys):
		f.add("workload.batch", fmt.Sprintf("write 1 to %d, and no more than there are keys", maxBatch), "a batch of %d of %d keys", l.Batch, l.Keys)
	case l.Kind != Batch && l.Batch != 0:
		f.add("workload.batch", "use the workload batch, or leave batch out", "%s takes one key at a time", l.Kind)
	}
	if l.Connections < 0 || l.Connections > maxClients {
		f.add("workload.connections", fmt.Sprintf("write 1 to %d, or leave it out: then each client has its own", maxClients), "a pool of %d connections", l.Connections)
	}
	switch {
	case l.Kind == Churn && l.AcquireLimit == 0:
		f.add("workload.acquire_limit", "write 20ms, for example", "churn needs a limit for its waits")
	case l.Kind == TryStorm && l.AcquireLimit != 0:
		f.add("workload.acquire_limit", "leave it out", "a try does not wait")
	}
	if l.open() && (l.Kind == Takeover || l.Kind == Properties) {
		f.add("workload.arrival", "leave it out", "%s has no arrivals", l.Kind)
	}
	if l.Kind == Takeover {
		checkTakeover(f, sc)
	}
}

// checkTakeover: holders come in the warm-up, and no process may host both a
// holder and one who waits.
func checkTakeover(f *findings, sc Scenario) {
	if sc.Clients%2 != 0 {
		f.add("clients", "write an even number", "takeover has pairs of a holder and one who waits, not %d clients", sc.Clients)
	}
	if sc.Warmup <= 0 {
		f.add("warmup", "write 2s, for example, or leave it out", "takeover needs a warm-up, in which the holders take their locks")
	}
	if sc.Workers > 0 && sc.Workers != 2 && sc.Workers != sc.Clients {
		f.add("workers", "write 2, or leave it out", "with %d worker processes one would host holders and waiters, and a kill hit both", sc.Workers)
	}
}
