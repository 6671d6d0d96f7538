package history

import (
	"errors"
	"fmt"
)

// ErrNoRecords: a file, or a folder of files, held not one readable record.
var ErrNoRecords = errors.New("no readable record")

// History is what a reader could read of one scenario's history.
type History struct {
	// Calls of all clients, by (Invoke, Client, Seq).
	Calls []Call
	// Streams, one per client, by client number; the controller's is last.
	Streams []Stream
	// Damage lists what could not be read, or contradicts itself. A history
	// with damage never proves that a lock is safe.
	Damage []Damage
	// Clients and Keys have the names of those that the source of the history
	// names, by number; nil where it numbers them itself.
	Clients, Keys map[uint32]string
	// Dates: its source has dates for stamps, and these are nanoseconds since 1970.
	Dates bool
}

// Stream is one client's part of a history.
type Stream struct {
	Client  uint32 `json:"client"`
	Worker  uint32 `json:"worker"` // number of the worker process that hosted it
	Records int    `json:"-"`      // readable ones
	// Sealed: the client ended its stream itself; otherwise its process died,
	// and calls may have been cut short after the last record.
	Sealed   bool  `json:"sealed"`
	SealedAt int64 `json:"sealed_at,omitempty"` // stamp, if Sealed
	// ClockUncertainty of the client's process, in ns: its stamps may be off
	// from other processes' by as much.
	ClockUncertainty int64 `json:"clock_uncertainty_ns"`
	// Unnumbered: its source does not number the calls, so that a missing one is
	// not noticed.
	Unnumbered bool `json:"unnumbered,omitempty"`
}

// Damage is one place of a history that could not be believed.
type Damage struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"`         // in File
	Client uint32 `json:"client"`         // NoClient where it is not known
	Name   string `json:"name,omitempty"` // of the client, where the source of the history names it
	What   string `json:"what"`           // "the invoke checksum of record 17 does not match"
}

// NoClient is the client number of damage that cannot be laid to a client.
const NoClient = Controller - 1

// String describes the damage with its place, on one line.
func (d Damage) String() string {
	who := fmt.Sprintf("client %d", d.Client)
	switch {
	case d.Name != "":
		who = d.Name
	case d.Client == NoClient:
		who = "client not known"
	case d.Client == Controller:
		who = "controller"
	}
	return fmt.Sprintf("%s, offset %d, %s: %s", d.File, d.Offset, who, d.What)
}
