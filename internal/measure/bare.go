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
	d := m.derivation(h)
	var first bareSurvey
	for i := range h.Calls {
		first.add(&h.Calls[i])
	}
	first.fill(d)
	o := d.promised()
	d.answers(checker.Check(h, o), o)
	return d.result.Safety
}

// BareKeyed is Bare of a history that is larger than memory: it takes a few keys
// per processor into memory at a time, and of their calls less than the half.
func BareKeyed(k *history.Keyed, m Model) (scenario.Safety, error) {
	d := m.derivation(&history.History{Streams: k.Streams, Damage: k.Damage, Clients: k.ClientNames, Keys: k.KeyNames})
	var first bareSurvey
	survey := checker.NewSurvey(k.Streams, k.Damage)
	err := k.Each(func(c *history.Call) {
		first.add(c)
		survey.Add(c)
	})
	if err != nil {
		return scenario.Safety{}, err
	}
	first.fill(d)
	o := d.promised()
	judge := survey.Judge(o)
	if err := k.Keys(judge.Open); err != nil {
		return scenario.Safety{}, err
	}
	d.answers(judge.Report(), o)
	return d.result.Safety, nil
}

// derivation applies m to a history that has no scenario.
func (m Model) derivation(h *history.History) *derivation {
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
	d := &derivation{input: in}
	d.result.Unmeasured = map[string]string{}
	return d
}

// bareSurvey collects from the calls what a scenario would have declared.
type bareSurvey struct {
	begin          int64 // the first invoke
	grants, tokens int64
}

func (b *bareSurvey) add(c *history.Call) {
	if b.begin == 0 || c.Invoke < b.begin {
		b.begin = c.Invoke
	}
	if asks(c) && c.Outcome == history.Held {
		b.grants++
		if c.Fence != 0 {
			b.tokens++
		}
	}
}

func (b *bareSurvey) fill(d *derivation) {
	d.samples.Start = b.begin
	d.info.Fencing = b.grants > 0 && b.tokens == b.grants
}
