package compare

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
)

// Options decide what counts as a change of speed.
type Options struct {
	Alpha     float64 // the chance of any false alarm in a comparison
	MinChange float64 // of the median: 0.1 is 10 %
	Rules     []Rule  // changes that fail
	// Anyway compares speed although the environments differ, or the machine was
	// busy.
	Anyway bool
}

// Defaults are the options without flags.
func Defaults() Options { return Options{Alpha: 0.002, MinChange: 0.1} }

// Comparison is what changed from one run to another.
type Comparison struct {
	Base      Run     `json:"base"`
	New       Run     `json:"new"`
	Alpha     float64 `json:"alpha"`
	MinChange float64 `json:"min_change"`
	Tests     int     `json:"tests"`
	// Differences of the environments: why speed was not compared, unless it was
	// compared anyway.
	Differences []string `json:"differences"`
	// Busy is in how many repeats the machine was busy, where they were compared anyway.
	Busy     string   `json:"busy,omitempty"`
	Safety   []Safety `json:"safety"` // the answers that changed
	Speed    []Speed  `json:"speed"`
	Failed   []Gate   `json:"failed"`   // rules
	Weak     []Gate   `json:"weak"`     // rules met by repeats that could have missed such a change
	Compared int      `json:"compared"` // scenarios of both that ran in at least one
	OnlyBase []string `json:"only_base"`
	OnlyNew  []string `json:"only_new"`
	NotRun   []string `json:"not_run"` // scenarios of both that ran in neither
}

// Run is one of the two runs.
type Run struct {
	Suite     string    `json:"suite"`
	Seed      uint64    `json:"seed"`
	Started   time.Time `json:"started"`
	Lockbench string    `json:"lockbench"`
}

// Safety is an answer that changed: the worst of the repeats.
type Safety struct {
	Scenario string `json:"scenario"`
	Answer   string `json:"answer"` // verdict, guarantee, liveness, or a property
	Base     string `json:"base"`   // "safe"
	New      string `json:"new"`
	BaseRuns string `json:"base_runs"` // "3 of 3 repeats"
	NewRuns  string `json:"new_runs"`
	Change   string `json:"change"` // worse, better, unproven
	// Known is why the user accepts it.
	Known string `json:"known,omitempty"`
}

// The ways in which an answer changes.
const (
	Worse    = "worse"
	Better   = "better"
	Unproven = "unproven" // from a good answer to unknown
)

// Documents compares two runs.
func Documents(base, new scenario.Document, o Options) Comparison {
	c := Comparison{
		Base: runOf(base), New: runOf(new), Alpha: o.Alpha, MinChange: o.MinChange,
		Differences: hosts(base.Host, new.Host), Safety: []Safety{}, Speed: []Speed{}, Failed: []Gate{}, Weak: []Gate{}, OnlyBase: []string{}, OnlyNew: []string{}, NotRun: []string{},
	}
	before, order := byScenario(base)
	after, newOrder := byScenario(new)
	var pairs []pair
	for _, name := range order {
		if after[name] == nil {
			c.OnlyBase = append(c.OnlyBase, name)
			continue
		}
		p := pair{name, before[name], after[name]}
		if firstDone(p.base) == nil && firstDone(p.new) == nil {
			c.NotRun = append(c.NotRun, name)
			continue
		}
		c.Compared++
		if p.base[0].Workload.Kind == scenario.Properties {
			c.Safety = append(c.Safety, p.properties()...)
			continue
		}
		pairs = append(pairs, p)
		c.Safety = append(c.Safety, p.safety()...)
		for _, d := range p.servers() {
			if !slices.Contains(c.Differences, d) {
				c.Differences = append(c.Differences, d)
			}
		}
	}
	for _, name := range newOrder {
		if before[name] == nil {
			c.OnlyNew = append(c.OnlyNew, name)
		}
	}
	slices.SortStableFunc(c.Safety, func(a, b Safety) int { return rank(a.Change) - rank(b.Change) })
	c.speed(pairs, o)
	c.judge(o.Rules)
	return c
}

func rank(change string) int { return slices.Index([]string{Worse, Unproven, Better}, change) }

func runOf(d scenario.Document) Run { return Run{d.Suite, d.Seed, d.Started, d.Lockbench} }

// pair is a scenario with its repeats in both runs.
type pair struct {
	name      string
	base, new []scenario.Result
}

// byScenario groups a run's results by their scenarios' names without the repeat.
func byScenario(d scenario.Document) (map[string][]scenario.Result, []string) {
	groups := map[string][]scenario.Result{}
	var order []string
	for _, r := range d.Scenarios {
		name := strings.TrimSuffix(r.Name, fmt.Sprintf("-r%d", r.Repeat))
		if groups[name] == nil {
			order = append(order, name)
		}
		groups[name] = append(groups[name], r)
	}
	return groups, order
}

// safety lists the answers that changed. Each is that of the worst repeat: unknown in
// one is not the good answer of all.
func (p pair) safety() []Safety {
	var list []Safety
	for _, a := range scenario.Answers() {
		values := []string{a.Bad, scenario.Undecided, a.Good}
		worst := func(rs []scenario.Result) (int, string) {
			counts := make([]int, len(values))
			for _, r := range rs {
				i := slices.Index(values, a.Of(r.Safety))
				if i < 0 || r.Status != scenario.StatusDone && i > 0 {
					i = 1
				}
				counts[i]++
			}
			at := slices.IndexFunc(counts, func(n int) bool { return n > 0 })
			return at, fmt.Sprintf("%d of %d repeats", counts[at], len(rs))
		}
		from, fromRuns := worst(p.base)
		to, toRuns := worst(p.new)
		if from == to {
			continue
		}
		s := Safety{Scenario: p.name, Answer: a.Name, Base: values[from], New: values[to], BaseRuns: fromRuns, NewRuns: toRuns, Change: Better}
		switch {
		case to == 0:
			s.Change = Worse
		case to == 1 && from == 2:
			s.Change = Unproven
		}
		for _, r := range p.new {
			s.Known = max(s.Known, r.KnownFailure)
		}
		list = append(list, s)
	}
	return list
}

// properties lists the properties whose measured answer changed, in the first
// repeat.
func (p pair) properties() []Safety {
	find := func(list []scenario.Property, name string) scenario.Property {
		for _, x := range list {
			if x.Property == name {
				return x
			}
		}
		return scenario.Property{Property: name, Measured: scenario.Undecided}
	}
	var list []Safety
	for _, was := range p.base[0].Properties {
		now := find(p.new[0].Properties, was.Property)
		if was.Measured == now.Measured {
			continue
		}
		s := Safety{Scenario: p.name, Answer: was.Property, Base: was.Measured, New: now.Measured, BaseRuns: "the first repeat", NewRuns: "the first repeat", Change: Better}
		switch {
		case now.Measured == scenario.Undecided:
			s.Change = Unproven
		case !now.AsPromised():
			s.Change = Worse
		}
		list = append(list, s)
	}
	return list
}

// hosts lists how two machines differ.
func hosts(a, b scenario.Host) []string {
	list := []string{}
	differ(&list, "CPU", a.CPUModel, b.CPUModel)
	differ(&list, "CPUs", a.CPUs, b.CPUs)
	differ(&list, "memory", a.MemoryB, b.MemoryB)
	differ(&list, "OS", a.OS+"/"+a.Arch, b.OS+"/"+b.Arch)
	differ(&list, "kernel", a.Kernel, b.Kernel)
	return list
}

func differ[T comparable](list *[]string, what string, a, b T) {
	if a != b {
		*list = append(*list, fmt.Sprintf("%s: %v in BASE, %v in NEW", what, a, b))
	}
}

// servers lists how the servers of a scenario differ.
func (p pair) servers() []string {
	var list []string
	a, b := firstDone(p.base), firstDone(p.new)
	if a == nil || b == nil {
		return nil
	}
	differ(&list, a.Backend, a.Server+" "+a.Version, b.Server+" "+b.Version)
	differ(&list, a.Backend+" durability", a.Durability, b.Durability)
	return list
}

// settings is why the two are not the same experiment; "" if they are.
func (p pair) settings() string {
	a, b := firstDone(p.base), firstDone(p.new)
	if a == nil || b == nil {
		return "it did not run in both runs"
	}
	var list []string
	differ(&list, "workload", loadText(a.Workload), loadText(b.Workload))
	differ(&list, "TTL", a.TTL, b.TTL)
	differ(&list, "lock delay", a.LockDelay, b.LockDelay)
	differ(&list, "waits", a.WaitPolicy, b.WaitPolicy)
	differ(&list, "workers", a.Workers, b.Workers)
	return strings.Join(list, "; ")
}

func loadText(l scenario.Load) string {
	text := fmt.Sprintf("%s, hold %s, think %s, %s", l.Kind, l.Hold, l.Think, l.Arrival)
	if l.Rate > 0 {
		text += fmt.Sprintf(" %g/s", l.Rate)
	}
	return fmt.Sprintf("%s, %d keys", text, l.Keys)
}

func firstDone(rs []scenario.Result) *scenario.Result {
	if i := slices.IndexFunc(rs, func(r scenario.Result) bool { return r.Status == scenario.StatusDone }); i >= 0 {
		return &rs[i]
	}
	return nil
}
