package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/impls/all"
	"github.com/lockbench/lockbench/internal/cluster"
	"github.com/lockbench/lockbench/internal/netdrop"
	"github.com/lockbench/lockbench/internal/run"
	"github.com/lockbench/lockbench/internal/scenario"
)

// wholeFault is all about one fault, or about an action whomever it hits.
type wholeFault struct {
	Name string `json:"name"` // leader-kill, or kill
	listedFault
	Parameters []scenario.Entry `json:"parameters"`
	Support    []support        `json:"support"`
}

// support describes whether the servers of a backend support a fault.
type support struct {
	Backend    string   `json:"backend"`
	Topologies []string `json:"topologies"`
	Why        string   `json:"why,omitempty"` // they cannot
}

// explainFaults prints the faults that are named, in full.
func (a *app) explainFaults(format string, names []string) error {
	var list []wholeFault
	for _, name := range names {
		found := wholly(name)
		if len(found) == 0 {
			return usage(unknownFault(name))
		}
		list = append(list, found...)
	}
	if format == "json" {
		return a.printJSON(list)
	}
	var b strings.Builder
	for i, f := range list {
		if i > 0 {
			b.WriteString("\n")
		}
		f.print(&b, columns(a.stdout, 120))
	}
	_, err := io.WriteString(a.stdout, b.String())
	return err
}

// wholly finds what a name stands for: a fault, or an action alone, which may be
// one on clients and another on servers.
func wholly(name string) []wholeFault {
	var list []wholeFault
	kernel := netdrop.Available()
	named, whole := chaos.ParseKind(name)
	for _, a := range chaos.Actions() {
		action := a.About()
		f := wholeFault{Name: name, listedFault: listing(action, kernel)}
		kind := named
		if whole {
			if !slices.Contains(action.Targets, scenario.GenericTarget(named.Target)) {
				continue
			}
			f.Targets = []string{named.Target}
		} else {
			kind, _ = chaos.ParseKind(kindOf(action))
		}
		if a == kind.Action && (whole || action.Name == name) {
			f.Parameters, f.Support = parameters(kind), supportOf(kind)
			list = append(list, f)
		}
	}
	return list
}

func unknownFault(name string) error {
	var known []string
	for _, f := range chaos.Actions().Faults() {
		known = append(known, f.Name)
	}
	target, _, _ := strings.Cut(name, "-")
	_, numbered := scenario.FaultKind{Target: target}.Node()
	for _, a := range chaos.Actions() {
		action := a.About()
		known = append(known, action.Name)
		if slices.Contains(action.Targets, scenario.TargetNode) && numbered {
			known = append(known, target+"-"+action.Name)
		}
	}
	err := fmt.Errorf("no fault %q", name)
	if near := scenario.Nearest(name, known); len(near) > 0 {
		return fmt.Errorf("%w; did you mean %s?", err, strings.Join(near, " or "))
	}
	return fmt.Errorf("%w (see lockbench list faults)", err)
}

// parameters are what can be said of a fault in a suite, and what holds if it is
// not.
func parameters(k scenario.FaultKind) []scenario.Entry {
	list := []scenario.Entry{{Name: "at", Summary: "when, after the measured window began (default 1s); every, count and within repeat it and leave its time to the seed"}}
	add := func(is bool, name, summary string) {
		if is {
			list = append(list, scenario.Entry{Name: name, Summary: summary})
		}
	}
	about := k.About()
	add(!about.Instant, "for", cmp.Or(about.Lasts, "how long it lasts (default two leases and 2s)"))
	add(about.By.Name != "", "by", about.By.Summary)
	add(about.HasJitter, "jitter", "what is added to that, from 0 to so much, by the seed (default nothing)")
	add(about.Rate > 0, "rate", fmt.Sprintf("bytes a second (default %d)", about.Rate))
	steps := "it waits for a client that comes to this step: acquiring, held, releasing or one of the recipe's (lockbench list recipes ID)"
	if k.Target == scenario.TargetStep {
		steps = "needed: the step of the client to hit: acquiring, held, releasing or one of the recipe's (lockbench list recipes ID)"
	}
	add(true, "step", steps)
	add(true, "nth", "with a step: which of the clients that come there (default 1, the first)")
	add(k.OnHolder() || k.Target == scenario.TargetServing, "after", "with the targets holder and leader-serving-holder: it waits for a hold as old as this share of the TTL")
	return list
}

// supportOf lists for each backend the topologies that support a fault with
// default settings, and why the others do not.
func supportOf(k scenario.FaultKind) []support {
	var list []support
	add := func(backend, topology, why string) {
		i := slices.IndexFunc(list, func(s support) bool { return s.Backend == backend && s.Why == why })
		if i < 0 {
			i = len(list)
			list = append(list, support{Backend: backend, Why: why})
		}
		if !slices.Contains(list[i].Topologies, topology) {
			list[i].Topologies = append(list[i].Topologies, topology)
		}
	}
	for _, r := range all.Recipes() {
		facts := run.Facts(r)
		if facts.Backend == run.BackendReference {
			continue // a control, without servers
		}
		for _, topology := range facts.Topologies {
			why, _ := facts.Lacks(topology, k)
			if err := facts.CanFault(topology, k, nil); why == "" && err != nil {
				why = strings.TrimPrefix(err.Error(), cluster.ErrUnsupported.Error()+": ")
			}
			add(facts.Backend, topology, why)
		}
	}
	return list
}

// print writes a fault as a block of lines, each with its subject before it.
func (f wholeFault) print(b *strings.Builder, width int) {
	const indent = 15
	line := func(subject, text string) {
		hang(b, "  "+subject, indent, text, max(width-indent, 40))
	}
	fmt.Fprintln(b, f.Name)
	line("does", f.Summary)
	for i, target := range f.Targets {
		subject := "hits"
		if i > 0 {
			subject = ""
		}
		line(subject, aboutTarget(target))
	}
	if f.Unavailable != "" {
		line("NOT HERE", f.Unavailable)
	}
	line("by", f.Mechanism)
	subject := "takes"
	for _, p := range f.Parameters {
		line(subject, p.Name+": "+p.Summary)
		subject = ""
	}
	for _, can := range []bool{true, false} {
		subject := map[bool]string{true: "supported by", false: "not by"}[can]
		for _, s := range f.Support {
			if (s.Why == "") != can {
				continue
			}
			text := fmt.Sprintf("%s (%s)", s.Backend, strings.Join(s.Topologies, ", "))
			if !can {
				text += ": " + s.Why
			}
			line(subject, text)
			subject = ""
		}
	}
}

// aboutTarget is a target with what it means.
func aboutTarget(name string) string {
	for _, t := range scenario.FaultTargets() {
		if t.Name == scenario.GenericTarget(name) {
			return name + ": " + t.Summary
		}
	}
	return name
}
