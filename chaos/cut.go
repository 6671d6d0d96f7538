package chaos

import (
	"context"

	"github.com/lockbench/lockbench/internal/faultnet"
	"github.com/lockbench/lockbench/internal/scenario"
)

// cutAll is the rule of a cut in both directions.
var cutAll = faultnet.Rule{CutIn: true, CutOut: true}

// aboutCut is what the cuts of clients have in common.
func aboutCut(name, summary, did string) scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: name, Group: scenario.GroupWire, Targets: scenario.ClientTargets(),
		Summary: summary, Means: "proxy", Did: did,
		Wire: true, DropsPackets: true,
	}
}

// clientCut lets nothing pass between a client and the servers.
type clientCut struct{}

func (clientCut) About() scenario.ActionInfo {
	return aboutCut("cut", "nothing passes between it and the servers, in either direction, no end of a connection either, and new connections hang", "was cut off")
}

func (clientCut) rule(*fault) faultnet.Rule { return cutAll }

func (clientCut) hitClient(ctx context.Context, f *fault, in *injection) error {
	return f.ruleOnClient(ctx, in)
}

func (clientCut) Expect(s scenario.Situation) scenario.Expect { return cutOffClient(s, "connection") }

func (clientCut) cause(s Suspicion) string { return cutOff(s) }

// cutIn keeps from a client what servers send.
type cutIn struct{}

func (cutIn) About() scenario.ActionInfo {
	return aboutCut("cut-in", "what servers send does not reach it", "")
}

func (cutIn) rule(*fault) faultnet.Rule { return faultnet.Rule{CutIn: true} }

func (cutIn) hitClient(ctx context.Context, f *fault, in *injection) error {
	return f.ruleOnClient(ctx, in)
}

func (cutIn) Expect(s scenario.Situation) scenario.Expect {
	switch {
	case atStep(s):
		return anything()
	case s.Kind.OnHolder():
		e := s.Calm
		e.Liveness = passesOn(s.Recipe, e.Liveness)
		return e
	}
	return lostGrant(s, "connection", "session")
}

func (cutIn) cause(s Suspicion) string { return cutOff(s) }

// cutOut keeps from the servers what a client sends.
type cutOut struct{}

func (cutOut) About() scenario.ActionInfo {
	return aboutCut("cut-out", "what it sends does not reach the servers", "")
}

func (cutOut) rule(*fault) faultnet.Rule { return faultnet.Rule{CutOut: true} }

func (cutOut) hitClient(ctx context.Context, f *fault, in *injection) error {
	return f.ruleOnClient(ctx, in)
}

func (cutOut) Expect(s scenario.Situation) scenario.Expect { return cutOffClient(s, "connection") }

func (cutOut) cause(s Suspicion) string { return cutOff(s) }

// cutKill ends a client's process behind a cut, so that no server sees its end.
type cutKill struct{}

func (cutKill) About() scenario.ActionInfo {
	about := aboutCut("cut-kill", "cut off, then killed while it is: no server learns of its end before the cut is healed", "was cut off")
	about.StopsProcess, about.Kills = true, true
	return about
}

func (cutKill) rule(*fault) faultnet.Rule { return cutAll }

func (cutKill) hitClient(ctx context.Context, f *fault, in *injection) error {
	if err := f.stop(ctx, in); err != nil {
		return err
	}
	wire, err := f.apply(ctx, in, f.clientOf(in), nil)
	if err != nil {
		return err
	}
	if err := f.end(in); err != nil {
		return err
	}
	in.by("SIGKILL behind a cut: " + wire)
	return nil
}

func (cutKill) Expect(s scenario.Situation) scenario.Expect {
	switch {
	case atStep(s):
		return anything()
	case s.Kind.OnHolder():
		e := s.Calm
		if !s.Recipe.Leased() {
			e.Liveness = "" // no server sees the end of a connection that is cut
		}
		return e
	}
	return lostGrant(s, "connection")
}

// noticed: what is kept back is the end of the connections, which is no byte.
// That the client died while it was cut off is the proof.
func (cutKill) noticed(scenario.WireEffect) bool { return true }

func (cutKill) missed(e Evidence) string { return e.Alive() }

// serverCut lets nothing pass between servers and all others, servers and
// clients.
type serverCut struct{}

func (serverCut) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "cut", Group: scenario.GroupServer, Targets: scenario.ServerTargets(),
		Summary: "nothing passes between a server and its clients and the other servers",
		Means:   "proxies between the servers", Did: "was cut off",
		Wire: true, DropsPackets: true, Links: true, Needs: scenario.AbilityLinks,
	}
}

func (serverCut) rule(*fault) faultnet.Rule { return cutAll }

func (serverCut) hitServers(ctx context.Context, f *fault, in *injection) error {
	return f.surround(ctx, in, len(in.aim.nodes) < len(f.Servers.Nodes()))
}

func (serverCut) Expect(s scenario.Situation) scenario.Expect {
	return serverFault{keeps: survivesFailover(s), endsConnections: true, goesOn: othersGoOn(s)}.expect(s)
}

func (serverCut) cause(s Suspicion) string { return away(s) }

func (serverCut) absence(scenario.FaultKind, scenario.ServerFacts) (Absence, bool) {
	return Absence{Silent: true, Unseats: true}, true
}

// cutPeers lets nothing pass between servers and the other servers.
type cutPeers struct{}

func (cutPeers) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "cut-peers", Group: scenario.GroupServer, Targets: scenario.ServerTargets(),
		Summary: "nothing passes between a server and the other servers, while clients reach it",
		Means:   "proxies between the servers", Did: "was cut off from the other servers",
		Links: true, Needs: scenario.AbilityLinks, Peers: true,
	}
}

func (cutPeers) rule(*fault) faultnet.Rule { return cutAll }

func (cutPeers) hitServers(ctx context.Context, f *fault, in *injection) error {
	return in.saying(f.cutLinks(ctx, in))
}

func (cutPeers) Expect(s scenario.Situation) scenario.Expect {
	return serverFault{keeps: survivesFailover(s), goesOn: othersGoOn(s)}.expect(s)
}

func (cutPeers) cause(s Suspicion) string { return away(s) }

// absence: alone a server goes on to talk to its clients, unless it sends them
// away.
func (cutPeers) absence(_ scenario.FaultKind, s scenario.ServerFacts) (Absence, bool) {
	return Absence{Silent: true, Unseats: true}, s.SendsClientsAway
}

// cutClients lets nothing pass between servers and their clients.
type cutClients struct{}

func (cutClients) About() scenario.ActionInfo {
	return scenario.ActionInfo{
		Name: "cut-clients", Group: scenario.GroupWire, Targets: scenario.ServerTargets(),
		Summary: "nothing passes between a server and its clients, while the other servers reach it",
		Means:   "proxy", Did: "was cut off from the clients",
		Wire: true, DropsPackets: true, KeepsLeader: true,
	}
}

func (cutClients) rule(*fault) faultnet.Rule { return cutAll }

func (cutClients) hitServers(ctx context.Context, f *fault, in *injection) error {
	return in.saying(f.apply(ctx, in, nil, in.addresses()))
}

func (cutClients) Expect(s scenario.Situation) scenario.Expect {
	return serverFault{keeps: true, endsConnections: true, goesOn: othersGoOn(s)}.expect(s)
}

func (cutClients) cause(s Suspicion) string { return unreachable(s) }

func (cutClients) absence(scenario.FaultKind, scenario.ServerFacts) (Absence, bool) {
	return Absence{Silent: true}, true
}
