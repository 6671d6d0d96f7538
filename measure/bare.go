package measure

import (
	"time"

	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/scenario"
)

// Model is what a lock promised of which nothing but a history is known.
type Model struct {
	// Kind is mutex (a hold ends by its release and not otherwise), reentrant
	// (a mutex that its holder may take again), rw (a mutex, but for calls that
	// are flagged as shared), or lease. "" is a lease that may end whenever it
	// is not renewed, the model that accuses least.
	Kind string
	// TTL of a lease that the server keeps by its clock; 0: it may end at any
	// moment after its last confirmation.
	TTL time.Duration
	// Takeover bounds the time that a free and wanted key may stay without a
	// holder; 0: not known, and liveness is not judged.
	Takeover time.Duration
}

// The kinds of a Model.
const (
	ModelMutex     = "mutex"
	ModelReentrant = "reentrant"
	ModelReadWrite = "rw"
	ModelLease     = "lease"
)

// Models lists the kinds of a Model.
func Models() []string { return []string{ModelMutex, ModelReentrant, ModelReadWrite, ModelLease} }

// Bare judges a history of which nothing else is known but m. Fencing tokens
// are judged if every grant carries one. Stamps in witnesses count from the
// first call.
func Bare(h *history.History, m Model) scenario.Safety {
	in := &input{history: h, info: impls.Info{Bound: impls.BoundConnection}}
	switch {
	case m.TTL > 0:
		in.info.Bound = impls.BoundTTL
		in.scenario.TTL = scenario.Duration(m.TTL)
	case m.Kind == "" || m.Kind == ModelLease:
		in.info.Bound = impls.BoundSession
	}
	if m.Kind == ModelReentrant {
		in.scenario.Workload.Kind = scenario.Reentrant
	}
	if m.Takeover > 0 {
		in.info.Takeover = func(time.Duration) time.Duration { return m.Takeover }
	}
	grants, tokens := 0, 0
	for i := range h.Calls {
		c := &h.Calls[i]
		if i == 0 || c.Invoke < in.samples.Start {
			in.samples.Start = c.Invoke
		}
		if asks(c) && c.Outcome == history.Held {
			grants++
			if c.Fence != 0 {
				tokens++
			}
		}
	}
	in.info.Fencing = grants > 0 && tokens == grants
	d := &derivation{input: in}
	d.result.Unmeasured = map[string]string{}
	d.judge()
	return d.result.Safety
}
