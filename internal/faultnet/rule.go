package faultnet

import (
	"errors"
	"time"
)

// Rule describes a fault of the link between a client and some addresses while
// it is in force. The zero value is a link without fault. Several rules on one
// link add up: a direction is cut if any of them cuts it, delays are summed, the
// lowest rate counts.
type Rule struct {
	// CutIn holds back what the servers send, and CutOut what the client sends,
	// as if packets got lost: no byte, no end of a connection and no reset passes
	// in that direction until the rule is lifted; then all do, in order. With
	// either, new connections hang until the rule is lifted or their context
	// ends.
	CutIn  bool `json:"cut_in,omitempty"`
	CutOut bool `json:"cut_out,omitempty"`
	// Mute holds back what the servers send, as CutIn does, but new connections
	// are made.
	Mute bool `json:"mute,omitempty"`
	// Delay delays every byte, in each direction, and Jitter by up to as much
	// again, drawn from Seed. The order of bytes stays.
	Delay  time.Duration `json:"delay_ns,omitempty"`
	Jitter time.Duration `json:"jitter_ns,omitempty"`
	// Rate is how many bytes a second pass, in each direction; 0: all.
	Rate int64 `json:"rate,omitempty"`
	// Stall stops reading from either side, so that a sender has to wait once the
	// buffers are full. New connections pass, and stall.
	Stall bool `json:"stall,omitempty"`
	// Reset breaks the present connections, once, as a peer that died does.
	Reset bool `json:"reset,omitempty"`
	// Refuse breaks the present connections and refuses new ones.
	Refuse bool `json:"refuse,omitempty"`
	// LoseReply swallows what the server sends after the client's next write, and
	// then breaks that connection: the request was carried out, and the client
	// cannot know. It loses the reply of one connection only.
	LoseReply bool `json:"lose_reply,omitempty"`
	// LoseRequest swallows what the client writes next, and then breaks that
	// connection: the server never sees the request, and the client cannot know.
	// It loses the request of one connection only.
	LoseRequest bool `json:"lose_request,omitempty"`
	// Seed decides what Jitter draws.
	Seed uint64 `json:"seed,omitempty"`
}

// check rejects impossible values.
func (r Rule) check() error {
	if r.Delay < 0 || r.Jitter < 0 || r.Rate < 0 {
		return errors.New("delay, jitter and rate must not be negative")
	}
	return nil
}

// lasts reports whether the rule concerns established connections after it came
// into force.
func (r Rule) lasts() bool {
	return r.CutIn || r.CutOut || r.Mute || r.Stall || r.Delay > 0 || r.Jitter > 0 || r.Rate > 0 || r.loses()
}

// loses reports whether the rule swallows one request or reply.
func (r Rule) loses() bool { return r.LoseReply || r.LoseRequest }

// breaks reports whether the rule breaks the present connections.
func (r Rule) breaks() bool { return r.Reset || r.Refuse }

// Effect counts what a rule did while it was in force.
type Effect struct {
	HeldBytes int64 `json:"held_bytes"` // held back by a cut or a stall
	LostBytes int64 `json:"lost_bytes"` // swallowed
	LateBytes int64 `json:"late_bytes"` // delayed or throttled
	Dials     int64 `json:"dials"`      // new connections held up or refused
	Broken    int64 `json:"broken"`     // connections reset
	Packets   int64 `json:"packets"`    // dropped by the kernel, where it carries the rule
}

// Add adds another effect to e.
func (e *Effect) Add(x Effect) {
	e.HeldBytes += x.HeldBytes
	e.LostBytes += x.LostBytes
	e.LateBytes += x.LateBytes
	e.Dials += x.Dials
	e.Broken += x.Broken
	e.Packets += x.Packets
}
