package chaos

import (
	"slices"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Actions lists what faults can do, by group and in the order of the documents.
// A new action is a file with all about it, and a line here.
func Actions() scenario.Actions {
	return slices.Concat(onClients(), onWires(), onServers())
}

// onClients lists what hurts a client's process or clock.
func onClients() scenario.Actions {
	return scenario.Actions{
		clientPause{},
		clientKill{},
		clientClock{},
		starve{},
	}
}

// onWires lists what lies between clients and servers.
func onWires() scenario.Actions {
	return scenario.Actions{
		clientCut{},
		cutIn{},
		cutOut{},
		cutKill{},
		flap{},
		delay{},
		throttle{},
		stall{},
		reset{},
		refuse{},
		replyLost{},
		requestLost{},
		cutClients{},
	}
}

// onServers lists what hurts servers, and what lies between them.
func onServers() scenario.Actions {
	return scenario.Actions{
		serverPause{},
		serverKill{},
		restart{},
		serverCut{},
		cutPeers{},
		move{},
		closeClients{},
		slowDisk{},
		serverClock{},
		evict{},
		full{},
		flush{},
	}
}

// ParseKind takes a fault's name apart: "leader-kill".
func ParseKind(name string) (scenario.FaultKind, bool) { return Actions().Parse(name) }
