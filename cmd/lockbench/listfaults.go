package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/netdrop"
	"github.com/lockbench/lockbench/internal/run"
	"github.com/lockbench/lockbench/internal/scenario"
)

// listedFault is one thing that a fault can do, on this machine.
type listedFault struct {
	Group     string   `json:"group"`
	Action    string   `json:"action"`
	Targets   []string `json:"targets"`
	Summary   string   `json:"summary"`
	Mechanism string   `json:"mechanism"`
	// Backends whose servers support it, in some topology; of server faults.
	Backends []string `json:"backends,omitempty"`
	// Unavailable is why it cannot be done on this machine.
	Unavailable string `json:"unavailable,omitempty"`
}

// faultList is the list of faults in JSON.
type faultList struct {
	Targets []scenario.Entry `json:"targets"`
	Faults  []listedFault    `json:"faults"`
}

func faults() faultList {
	list := faultList{Targets: scenario.FaultTargets()}
	kernel := netdrop.Available()
	for _, a := range chaos.Actions() {
		list.Faults = append(list.Faults, listing(a.About(), kernel))
	}
	return list
}

// listing describes an action on this machine.
func listing(a scenario.ActionInfo, kernel error) listedFault {
	f := listedFault{Group: a.Group, Action: a.Name, Targets: a.Targets, Summary: a.Summary, Mechanism: mechanism(a, kernel)}
	if err := run.Unavailable(scenario.Scenario{Faults: []scenario.Fault{{Kind: kindOf(a)}}}); err != nil {
		f.Unavailable = err.Error()
	}
	if a.Group == scenario.GroupServer {
		f.Backends = supporting(a.Needs)
	}
	return f
}

// kindOf is an action on the first of its targets.
func kindOf(a scenario.ActionInfo) string {
	return strings.ReplaceAll(a.Targets[0]+"-"+a.Name, ":N-", ":1-")
}

// supporting lists the backends whose servers have an ability in some topology.
func supporting(ability string) []string {
	var list []string
	for _, backend := range cluster.Backends() {
		can := func(topology string) bool { return cluster.Supports(backend, topology, ability) == nil }
		if slices.ContainsFunc(cluster.Topologies(backend), can) {
			list = append(list, backend)
		}
	}
	return list
}

// mechanism is what would do a fault here; kernel is why the kernel cannot drop
// packets, or nil.
func mechanism(a scenario.ActionInfo, kernel error) string {
	switch {
	case a.Group != scenario.GroupWire || !a.DropsPackets:
		return a.Means
	case kernel == nil:
		return "kernel (drops packets in a network namespace of the run's own), or " + a.Means
	}
	return fmt.Sprintf("%s (the kernel cannot here: %v)", a.Means, kernel)
}

// targetsOf shortens the list of the targets that an action can hit.
func targetsOf(targets []string) string {
	has := func(t string) bool { return slices.Contains(targets, t) }
	var words []string
	if has(scenario.TargetHolder) {
		words = append(words, "clients")
	}
	switch {
	case has(scenario.TargetFollower):
		words = append(words, "servers")
		if has(scenario.TargetEach) {
			words = append(words, "each of them in turn")
		}
	case !has(scenario.TargetHolder):
		words = targets
	}
	return strings.Join(words, ", ")
}

// listFaults prints the faults by group, each with its possible targets.
func (a *app) listFaults(format string) error {
	list := faults()
	if format == "json" {
		return a.printJSON(list)
	}
	width := columns(a.stdout, 120)
	name := 0
	for _, f := range list.Faults {
		name = max(name, len(f.Action))
	}
	for _, t := range list.Targets {
		name = max(name, len(t.Name))
	}
	room := max(width-name-4, 40)
	var b strings.Builder
	entry := func(first, text string) {
		hang(&b, "  "+first, name+4, text, room)
	}
	paragraph := func(text string) {
		for _, line := range foldWords(text, width) {
			b.WriteString(line + "\n")
		}
	}
	paragraph("A fault is TARGET-ACTION, such as holder-pause, leader-kill or node:2-slow-disk. The target is found when it fires.")
	b.WriteString("\nTargets among the clients, and among the servers:\n")
	for _, t := range list.Targets {
		if t.Name == scenario.TargetLeader {
			b.WriteString("\n")
		}
		entry(t.Name, t.Summary)
	}
	heads := map[string]string{
		scenario.GroupClient: "Actions on a client:",
		scenario.GroupWire:   "Actions on what lies between clients and servers:",
		scenario.GroupServer: "Actions on servers:",
	}
	group := ""
	for _, f := range list.Faults {
		if f.Group != group {
			group = f.Group
			b.WriteString("\n" + heads[group] + "\n")
		}
		text := fmt.Sprintf("%s. Hits: %s. By: %s.", f.Summary, targetsOf(f.Targets), f.Mechanism)
		if n := len(f.Backends); n > 0 && n < len(cluster.Backends()) {
			text += fmt.Sprintf(" Of: %s.", strings.Join(f.Backends, ", "))
		}
		if f.Unavailable != "" {
			text = fmt.Sprintf("NOT HERE: %s. %s", f.Unavailable, text)
		}
		entry(f.Action, text)
	}
	b.WriteString("\n")
	paragraph("Which servers support which fault depends on them: `lockbench list faults NAME` shows it for one, and a suite is checked before it starts. Each fault has a time (at), and may have a duration (for), a step or the age of a hold that it waits for (step, nth, after), and a measure (by, jitter, rate).")
	_, err := io.WriteString(a.stdout, b.String())
	return err
}
