package conformance

import (
	"fmt"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/faultnet"
)

// state is what a client's network does.
type state string

const (
	alive state = ""
	// muted: requests arrive, answers do not.
	muted state = "muted"
	// dead: nothing arrives in either direction, and no connection is made.
	dead state = "dead"
	// unplugged: connections end, and new ones are refused.
	unplugged state = "unplugged"
)

// rules are what a proxy does in each state.
var rules = map[state]faultnet.Rule{
	muted:     {Mute: true},
	dead:      {CutIn: true, CutOut: true},
	unplugged: {Refuse: true},
}

// network is the network of one client, through a proxy. Its methods are safe
// for concurrent use. A connection on which something was held back never heals:
// a real one would have repeated it, or ended.
type network struct {
	proxy  *faultnet.Proxy
	dialer faultnet.Dialer
}

// newNetwork makes a network that is alive. Its end is close.
func newNetwork() (*network, error) {
	proxy, err := faultnet.ListenDialer()
	if err != nil {
		return nil, fmt.Errorf("make a network for a client: %w", err)
	}
	return &network{proxy: proxy, dialer: faultnet.Dialer{Proxy: proxy.Addr()}}, nil
}

func (n *network) close() { _ = n.proxy.Close() }

// dial is the dialer of the network's client.
func (n *network) dial() impls.DialFunc { return n.dialer.Dial }

// The ids of the rules in force: one for the state, and one for the moment at
// which connections end.
const (
	ruleState = "state"
	ruleEnd   = "end"
)

// set changes the state. Coming back to life ends the present connections.
func (n *network) set(s state) error {
	if s != alive {
		n.proxy.Lift(ruleState)
		return n.proxy.Apply(ruleState, rules[s])
	}
	if err := n.proxy.Apply(ruleEnd, faultnet.Rule{Reset: true}); err != nil {
		return err
	}
	n.proxy.Lift(ruleEnd)
	n.proxy.Lift(ruleState)
	return nil
}

// openOnNetwork opens one more client of s, whose network it returns.
func (s Subject) openOnNetwork(t T) (impls.Client, *network) {
	t.Helper()
	n, err := newNetwork()
	if err != nil {
		t.Fatalf("%v", err)
	}
	t.Cleanup(n.close)
	s.Config.Dial = n.dial()
	return s.open(t), n
}

// mustSet is set in a check.
func (n *network) mustSet(t T, s state) {
	t.Helper()
	if err := n.set(s); err != nil {
		t.Fatalf("%v", err)
	}
}

// effect is what the present state has done so far.
func (n *network) effect() faultnet.Effect { return n.proxy.Effect(ruleState) }
