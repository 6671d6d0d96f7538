package advise

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Question is what the lock is needed for.
type Question struct {
	Shortest scenario.Duration `json:"shortest_hold_ns"`
	Longest  scenario.Duration `json:"longest_hold_ns"`
	TTL      scenario.Duration `json:"ttl_ns"`
	// Needs are fencing, failover, or properties of recipes.
	Needs []string `json:"needs"`
}

// The needs that are not properties of a recipe.
const (
	NeedFencing  = "fencing"
	NeedFailover = "failover"
)

// mostTTLs is the longest hold that is measured, in TTLs: a lock that survives
// three leases renews them.
const mostTTLs = 3

// ratio is the longest hold that the answer must have been measured with, in TTLs.
func (q Question) ratio() float64 {
	return min(mostTTLs, q.Longest.D().Seconds()/q.TTL.D().Seconds())
}

// slack is for two ratios that were computed in different ways.
const slack = 1.001

// exceeded and reached report whether the holds of m were longer than asked for,
// and whether they were as long.
func (q Question) exceeded(m measured) bool { return m.HoldPerTTL() > q.ratio()*slack }
func (q Question) reached(m measured) bool  { return m.HoldPerTTL()*slack >= q.ratio() }

// Run is a run's folder and its results.
type Run struct {
	Dir      string
	Document scenario.Document
}

// The verdicts, from the best to the worst.
const (
	Yes         = "yes"
	YesIf       = "yes if"
	NotMeasured = "not measured"
	No          = "no"
)

func rank(verdict string) int {
	return slices.Index([]string{Yes, YesIf, NotMeasured, No}, verdict)
}

// Answer is the advice on one recipe on one topology.
type Answer struct {
	Recipe  string  `json:"recipe"` // "redis/token", "redis/redlock (quorum)"
	Verdict string  `json:"verdict"`
	Points  []Point `json:"points"`
	// The price; an empty text was not measured.
	Requests string `json:"requests_per_acquire"`
	Wait     string `json:"wait_p99"`
	Takeover string `json:"takeover"`
	PriceOf  string `json:"price_scenario"` // of requests and waits
}

// Point is what one rule found.
type Point struct {
	Rule    string `json:"rule"`
	Verdict string `json:"verdict"`
	Text    string `json:"text"`
	// Change is what would have to change for a no to become a yes.
	Change   string `json:"change,omitempty"`
	Scenario string `json:"scenario,omitempty"` // the folder that proves it
}

// Ask answers the question for every recipe that the runs measured.
func Ask(q Question, runs []Run) []Answer {
	subjects := map[string][]measured{}
	var order []string
	for _, run := range runs {
		for _, r := range run.Document.Scenarios {
			if r.Backend == "reference" || r.Recipe == "" {
				continue
			}
			name := r.Recipe
			if r.Topology != scenario.TopologySingle && r.Topology != "" {
				name += " (" + r.Topology + ")"
			}
			if subjects[name] == nil {
				order = append(order, name)
			}
			subjects[name] = append(subjects[name], measured{r, filepath.Join(run.Dir, scenario.DirScenarios, r.Name)})
		}
	}
	var answers []Answer
	for _, name := range order {
		e := evidence(subjects[name])
		a := Answer{Recipe: name, Verdict: Yes}
		for _, rule := range rules(q) {
			p := rule.decide(q, e)
			p.Rule = rule.name
			if rank(p.Verdict) > rank(a.Verdict) {
				a.Verdict = p.Verdict
			}
			a.Points = append(a.Points, p)
		}
		a.price(e)
		answers = append(answers, a)
	}
	slices.SortStableFunc(answers, func(a, b Answer) int { return rank(a.Verdict) - rank(b.Verdict) })
	return answers
}

// measured is a result with its folder.
type measured struct {
	scenario.Result
	folder string
}

// evidence are all results of one recipe on one topology.
type evidence []measured

// where keeps the finished results that meet a condition.
func (e evidence) where(keep func(measured) bool) evidence {
	var list evidence
	for _, m := range e {
		if m.Status == scenario.StatusDone && keep(m) {
			list = append(list, m)
		}
	}
	return list
}

// calm are the scenarios without faults in which clients competed.
func (e evidence) calm() evidence {
	return e.where(func(m measured) bool { return len(m.Faults) == 0 && m.Competed() })
}

// under are the scenarios with only one of the faults, which was effective.
func (e evidence) under(kinds ...string) evidence {
	return e.where(func(m measured) bool {
		for _, f := range m.Faults {
			if !slices.Contains(kinds, f.Kind) || f.Step != "" || f.Status != effective {
				return false
			}
		}
		return len(m.Faults) > 0 && m.Competed()
	})
}

// price takes the figures of the calm scenario with the most grants.
func (a *Answer) price(e evidence) {
	var best *measured
	for _, m := range e.calm() {
		if m.Safety.Verdict == scenario.Safe && (best == nil || m.Acquired > best.Acquired) {
			best = &m
		}
	}
	if best != nil {
		a.PriceOf = best.folder
		if v := best.RequestsPerAcquire; v != nil {
			a.Requests = fmt.Sprintf("%.3g", *v)
		}
		if l := best.Acquire; l != nil && l.Count >= 100 {
			a.Wait = fmt.Sprintf("%s (%d clients, hold %s)", round(l.P99), best.Clients, best.Workload.Hold)
		}
	}
	var slowest int64
	for _, m := range e.under(holderKill) {
		for _, f := range m.Faults {
			slowest = max(slowest, f.RecoveryNS)
		}
	}
	if slowest > 0 {
		a.Takeover = fmt.Sprintf("%s (TTL %s)", round(slowest), e.under(holderKill)[0].TTL)
	}
}

func round(ns int64) string {
	step := time.Duration(1)
	for step*100 <= time.Duration(ns) {
		step *= 10
	}
	return time.Duration(ns).Round(step).String()
}
