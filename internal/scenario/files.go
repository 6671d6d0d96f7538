package scenario

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ReadDocument reads result.json of a run's folder. The error is fs.ErrNotExist if
// the run did not get that far.
func ReadDocument(dir string) (Document, error) {
	var doc Document
	path := filepath.Join(dir, FileResult)
	if err := ReadJSON(path, &doc); err != nil {
		return Document{}, fmt.Errorf("read the run in %s: %w", dir, err)
	}
	if doc.Schema > SchemaVersion {
		return Document{}, fmt.Errorf("%s has schema %d, and this lockbench reads at most %d: use the version that made the run (%q) or a newer one", path, doc.Schema, SchemaVersion, doc.Lockbench)
	}
	return doc, nil
}

// ReplaceFile writes a file atomically: a reader sees the old one or the new one.
func ReplaceFile(path string, write func(io.Writer) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// ReadJSON reads one of the JSON files of a run's folder.
func ReadJSON(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return nil
}

// ReadFaults reads the fault log of a scenario's folder, if it has one, up to the first
// line that cannot be parsed: a run that died may have left half a line. Damage says
// how far it is readable.
func ReadFaults(dir string) (list []FaultEvent, damage string, err error) {
	data, err := os.ReadFile(filepath.Join(dir, FileFaults))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, "", fmt.Errorf("read the fault log: %w", err)
	}
	n := 0
	for line := range bytes.Lines(data) {
		if n++; len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var e FaultEvent
		if err := json.Unmarshal(line, &e); err != nil {
			return list, fmt.Sprintf("%s is readable up to line %d only: %v", FileFaults, n-1, err), nil
		}
		list = append(list, e)
	}
	return list, "", nil
}

// The names of the files in a run's folder; those of a scenario stand in
// scenarios/<name>/.
const (
	FileSuite       = "suite.yaml"
	FileEnvironment = "environment.json"
	FileResult      = "result.json"
	FileLock        = "run.lock"

	DirScenarios = "scenarios"
	FileScenario = "scenario.json" // the resolved Scenario
	FileSamples  = "samples.json"  // Samples
	FileHistory  = "history.lbh"   // merged; while the run goes on: DirClients
	DirClients   = "clients"       // one history file per client
	FileFaults   = "faults.jsonl"  // FaultEvent per line
	FileLatency  = "latency.hlog"
	// FileProperties holds a Property per entry, as a JSON list.
	FileProperties = "properties.json"
	DirServers     = "servers" // logs
)

// Samples is what the run measured around a scenario and no history holds.
// Stamps are CLOCK_MONOTONIC nanoseconds, as in the history.
type Samples struct {
	Start int64 `json:"start"` // of the measured window
	End   int64 `json:"end"`
	// WindowAt is Start by the wall clock, as it was when the load began.
	WindowAt time.Time `json:"window_at,omitzero"`
	// Clock is the largest uncertainty of any process's clock, in ns.
	ClockUncertaintyNS int64          `json:"clock_uncertainty_ns"`
	Workers            []WorkerSample `json:"workers"`
	Servers            []ServerSample `json:"servers"`
	// CountedFrom and CountedTo are when the servers' counters were read: near
	// the window's ends, but later on a busy machine. 0: at the ends.
	CountedFrom int64 `json:"counted_from,omitempty"`
	CountedTo   int64 `json:"counted_to,omitempty"`
	// BusyCPU is the share of the machine's CPU time that was used, 0 to 1,
	// during the window; nil if it could not be read.
	BusyCPU *float64 `json:"busy_cpu"`
	// OthersCPU is the part of BusyCPU that was not used by lockbench, its workers
	// and its servers; nil if it could not be read.
	OthersCPU *float64 `json:"others_cpu,omitempty"`
	// Trouble is why the servers may not have served the whole scenario: one died,
	// or did not respond at its end.
	Trouble string `json:"trouble,omitempty"`
	// Shared is why server counters cannot be attributed to this scenario.
	Shared string `json:"shared,omitempty"`
	// Probe is what the orphan probe found after the load; nil: it did not run.
	Probe *Probe `json:"probe,omitempty"`
}

// Probe is the result of a client that tried to acquire each key after the load,
// for the takeover bound at most.
type Probe struct {
	Keys    int      `json:"keys"` // that it asked for
	Free    int      `json:"free"` // that it was granted
	Orphans []Orphan `json:"orphans,omitempty"`
	// Listed is of how many keys all servers were read before that; nil: the recipe
	// does not show whose an entry is.
	Listed *int   `json:"listed,omitempty"`
	Left   []Left `json:"left,omitempty"` // what was found
}

// Left is what an attempt had on a server after the load.
type Left struct {
	Key     uint32 `json:"key"`
	Server  string `json:"server,omitempty"` // "": the servers share it
	Attempt string `json:"attempt"`
}

// Orphan is a key that stayed taken though no client was left to hold it.
type Orphan struct {
	Key      uint32 `json:"key"`
	WaitedNS int64  `json:"waited_ns"`
	Why      string `json:"why"` // the last answer
}

// WorkerSample is what one worker process reports at its end.
type WorkerSample struct {
	PID     int      `json:"pid"`
	Clients []uint32 `json:"clients"`
	Error   string   `json:"error,omitempty"` // it died, or could not continue; its last message
	// Killed is the id of the fault that ended the worker on purpose. Then
	// Error is empty, and the worker reported nothing.
	Killed             string `json:"killed,omitempty"`
	CPUNS              int64  `json:"cpu_ns"` // user and system, within the window
	MaxRSSB            int64  `json:"max_rss_bytes"`
	Arrived            int64  `json:"arrived,omitempty"` // open loop, within the window
	Completed          int64  `json:"completed,omitempty"`
	Dropped            int64  `json:"dropped,omitempty"`
	InFlight           int64  `json:"in_flight,omitempty"`
	PacerLateP99NS     int64  `json:"pacer_late_p99_ns,omitempty"`
	ClockUncertaintyNS int64  `json:"clock_uncertainty_ns"`
	// Steps counts how often the worker's clients came to each named step
	// within the window.
	Steps map[string]int64 `json:"steps,omitempty"`
	// Stalls are the times in which the machine did not let the worker run,
	// those of 250 ms and more; a fault that pauses it is seen as one, too.
	Stalls []Stall `json:"stalls,omitempty"`
	// Errors are those of calls that failed or whose outcome is unknown.
	Errors []CallError `json:"errors,omitempty"`
}

// CallError is an error that calls of one client and kind returned.
type CallError struct {
	Client uint32 `json:"client"`
	Kind   string `json:"kind"`
	Text   string `json:"text,omitempty"` // cut off if long; empty stands for all after the first texts
	Count  int64  `json:"count"`
	First  int64  `json:"first"` // stamps of the returns
	Last   int64  `json:"last"`
}

// Stall is a time in which a process did not run, as stamps.
type Stall struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// ServerSample is what one server did in the window.
type ServerSample struct {
	Node     string           `json:"node"`
	CPUNS    int64            `json:"cpu_ns"`
	Counters map[string]int64 `json:"counters"` // growth within the window, own probes taken off
}

// FaultEvent is one line of faults.jsonl.
type FaultEvent struct {
	ID    string `json:"id"`
	Fault string `json:"fault"`
	// Event is one of: armed; injected (begun, stamped before it); effective
	// (confirmed to be in force); missed; heal_started; healed; first_grant (the
	// first of any key that was hit, after the heal, or after a fault that has
	// none); note.
	Event   string  `json:"event"`
	AtNS    int64   `json:"at_ns"` // CLOCK_MONOTONIC
	Client  *uint32 `json:"client,omitempty"`
	PID     int     `json:"pid,omitempty"`
	Key     *uint32 `json:"key,omitempty"`
	Attempt string  `json:"attempt,omitempty"`
	Step    string  `json:"step,omitempty"`  // at which the client stood
	Nodes   []Node  `json:"nodes,omitempty"` // the servers that were hit
	// Effect, of a fault of the wire when it was lifted.
	Effect *WireEffect `json:"effect,omitempty"`
	How    string      `json:"how,omitempty"`    // "SIGSTOP", and how the target was found
	Reason string      `json:"reason,omitempty"` // of a miss
}

// Node is one server as a fault met it.
type Node struct {
	Index   int    `json:"index"` // from 0, in the order of the cluster's addresses
	Name    string `json:"name"`
	Address string `json:"address"`
	Leader  bool   `json:"leader,omitempty"` // when the fault fired
}

// WireEffect counts what a fault of the wire did while it was in force.
type WireEffect struct {
	HeldBytes int64 `json:"held_bytes,omitempty"` // kept back, delivered after the heal or thrown away with their connection
	LostBytes int64 `json:"lost_bytes,omitempty"` // swallowed
	LateBytes int64 `json:"late_bytes,omitempty"` // delivered late, or slowly
	Dials     int64 `json:"dials,omitempty"`      // new connections that were held up or refused
	Broken    int64 `json:"broken,omitempty"`     // connections broken
	Packets   int64 `json:"packets,omitempty"`    // dropped by the kernel
}

// Environment is environment.json.
type Environment struct {
	Host      Host              `json:"host"`
	Lockbench string            `json:"lockbench"`
	Drivers   map[string]string `json:"drivers"` // client module versions
	Clusters  []ClusterInfo     `json:"clusters"`
	Missing   map[string]string `json:"missing,omitempty"` // backend: why it, or a topology of it, and how to get it
	Started   time.Time         `json:"started"`
	// Network is how the run's own network is set, in which the kernel drops
	// packets; empty where the run has none.
	Network map[string]string `json:"network,omitempty"`
}

// ClusterInfo is one cluster as it ran.
type ClusterInfo struct {
	Backend     string            `json:"backend"`
	Topology    string            `json:"topology"`
	Environment string            `json:"environment"`
	Product     string            `json:"product"`
	Version     string            `json:"version"`
	Binary      string            `json:"binary"`
	Durability  string            `json:"durability"`
	Settings    map[string]string `json:"settings"` // read back
	Nodes       []NodeInfo        `json:"nodes"`
	ReadyMS     int64             `json:"ready_ms"` // from the first start to the last ready check
}

// NodeInfo is one server.
type NodeInfo struct {
	Name    string   `json:"name"`
	Address string   `json:"address"`
	PID     int      `json:"pid"`
	Command []string `json:"command"`
	Log     string   `json:"log"` // relative to the run's folder
	// Identity is what names an external server or its cluster for good.
	Identity string `json:"identity,omitempty"`
	// Role is "" for a node, which clients write to or which holds their data,
	// and RoleSentinel for one that only watches nodes.
	Role string `json:"role,omitempty"`
}

// RoleSentinel is the role of servers that name the leader.
const RoleSentinel = "sentinel"
