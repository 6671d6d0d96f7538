package measure

import (
	"time"

	"github.com/lockbench/lockbench/checker"
	"github.com/lockbench/lockbench/history"
	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/internal/scenario"
)

// Model is the guarantee of a lock of which only a history is known.
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
	// TrustLeaseEnd: clients stop at the lease end that they recorded.
	TrustLeaseEnd bool
}

// MinTTL is the shortest TTL that can be judged: the rest is within the margin for
// servers' clocks.
const MinTTL = serverSlack + serverSlack/100

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
// are judged if any grant carries one. Stamps in witnesses count from the
// first call.
func Bare(k *history.Keyed, m Model) (scenario.Safety, error) {
	d := m.derivation(&k.History)
	var grants, tokens int64
	survey := checker.NewSurvey(k.Streams, k.Damage)
	err := k.Each(func(c *history.Call) {
		survey.Add(c)
		if d.samples.Start == 0 {
			d.samples.Start = c.Invoke
		}
		if asks(c) && c.Outcome == history.Held && c.Flags&history.FlagShared == 0 {
			grants++
			if c.Fence != 0 {
				tokens++
			}
		}
	})
	if err != nil {
		return scenario.Safety{}, err
	}
	d.info.Fencing = tokens > 0
	o := d.promised()
	o.TokensMissing, o.TrustLeaseEnd, o.LeaseEndsDoubtful = tokens < grants, m.TrustLeaseEnd, !m.TrustLeaseEnd
	o.JudgeClients = false // their limits are not known
	judge := survey.Judge(o)
	if err := k.Keys(judge.Open); err != nil {
		return scenario.Safety{}, err
	}
	d.answers(judge.Report(), o)
	return d.result.Safety, nil
}

// derivation applies m to a history that has no scenario.
func (m Model) derivation(h *history.History) *derivation {
	in := &input{history: h, info: impls.Info{Bound: impls.BoundConnection, Handoff: -1}}
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
	d := &derivation{input: in}
	d.result.Unmeasured = map[string]string{}
	return d
}
