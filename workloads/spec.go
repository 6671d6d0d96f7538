package workloads

import (
	"net"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Spec is everything that a worker process needs to know, as JSON on its
// standard input.
type Spec struct {
	Scenario scenario.Scenario `json:"scenario"`
	Worker   uint32            `json:"worker"`             // number of the process, from 0
	Clients  []uint32          `json:"clients"`            // numbers of the clients that it hosts
	Dir      string            `json:"dir"`                // folder for the clients' history files
	Board    string            `json:"board"`              // path of the board
	Register string            `json:"register,omitempty"` // unix socket of the guarded register; "": none
	// Addresses, Directory and Account are the cluster's.
	Addresses []string      `json:"addresses"`
	Directory []string      `json:"directory,omitempty"`
	Account   impls.Account `json:"account"`
	TLS       *impls.TLS    `json:"tls,omitempty"`
	Space     string        `json:"space,omitempty"` // see impls.Config
	Keys      []string      `json:"keys"`            // by key number
	// Sources are the local addresses to dial from, and Proxies the proxies to
	// dial through, by client. A client in neither dials directly.
	Sources map[uint32]net.IP `json:"sources,omitempty"`
	Proxies map[uint32]string `json:"proxies,omitempty"`
	// Streams is how many streams the scenario's history will have, with that of
	// the controller, so that a missing one is noticed. 0: not known.
	Streams uint32 `json:"streams,omitempty"`
}

// Assign lays the scenario's clients out over its worker processes: as evenly
// as they go, in order, one process per client where there are as many
// processes as clients. It never answers more processes than clients, nor
// less than one.
func Assign(sc scenario.Scenario) [][]uint32 {
	workers := max(1, min(sc.Workers, sc.Clients))
	list := make([][]uint32, workers)
	for c := range max(0, sc.Clients) {
		w := c * workers / sc.Clients
		list[w] = append(list[w], uint32(c))
	}
	return list
}
