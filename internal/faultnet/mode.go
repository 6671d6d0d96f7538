package faultnet

// Mode is a lasting state of a dialer's whole network: the short way for one
// who needs but one rule, or none.
type Mode int

// The modes. Pass is the zero value: everything works.
const (
	Pass Mode = iota
	// Stall cuts everything off in both directions. What was on its way arrives
	// when it is over.
	Stall
)

// modeID is the rule of Set.
const modeID = "mode"

// Set changes the mode of all connections, present and future. Set(Pass)
// heals.
func (d *Dialer) Set(m Mode) {
	if m == Stall {
		// It only fails if the mode is set already.
		_ = d.Apply(modeID, nil, Rule{CutIn: true, CutOut: true})
		return
	}
	d.Lift(modeID)
}

// Reset breaks every present connection as a peer does that died, and returns
// how many.
func (d *Dialer) Reset() int {
	const id = "reset"
	if err := d.Apply(id, nil, Rule{Reset: true}); err != nil {
		return 0 // somebody else does it now
	}
	return int(d.Lift(id).Broken)
}
