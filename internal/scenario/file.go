package scenario

import (
	"maps"
	"reflect"
	"slices"
)

// File is a suite as a person writes it: blocks of settings whose lists
// expand to scenarios. Programs may build one as well (from flags); ParseFile
// reads one from YAML. A File is a value: methods do not change it.
type File struct {
	Name        string `yaml:"name" help:"name of the suite, fit for a folder"` // fit for a folder's name
	Description string `yaml:"description" help:"what it is for, in one line"`
	// Seed decides all random choices of the run. 0 means 1.
	Seed uint64 `yaml:"seed" help:"derive all random choices from this seed (default 1)"`
	// Parallel is how many scenarios may run at once, on different servers only; 0
	// means 1. More than one distorts what is measured of performance.
	Parallel int `yaml:"parallel" help:"run N scenarios at once, on different servers (default 1); distorts performance"`
	// MaxDisk stops a run before its folder has more bytes; 0: no limit.
	MaxDisk Size `yaml:"max-disk" help:"stop the run before its folder has this size"`
	// Lists are a place for YAML anchors that blocks refer to: &redis, *redis.
	Lists []string `yaml:"lists" help:"a place for YAML anchors that blocks refer to"`
	// Defaults apply where a block gives nothing.
	Defaults Settings `yaml:"defaults" help:"the keys of a block, for all blocks that do not give them"`
	// Scenarios are the blocks, run in this order.
	Scenarios []Block `yaml:"scenarios" help:"the blocks, run in this order"`

	source  string              // the file's name, for messages
	actions Actions             // that its faults may name
	places  map[string]position // where each value stood in it
	over    map[string]bool     // settings that With put over it
}

// With returns f with over put over the settings of every block, as flags are
// put over a file. Expectations for recipes that are then not run are dropped.
func (f File) With(over Settings) File {
	f.Scenarios = slices.Clone(f.Scenarios)
	for i, b := range f.Scenarios {
		// The defaults go in first: a workload of another kind replaces the
		// whole workload, and must not get the old one's fields back later.
		b.Settings = merge(merge(f.Defaults, b.Settings), over)
		if len(over.Recipes) > 0 {
			b.ExpectFor = maps.Clone(b.ExpectFor)
			maps.DeleteFunc(b.ExpectFor, func(id string, _ Expect) bool { return !slices.Contains(over.Recipes, id) })
		}
		f.Scenarios[i] = b
	}
	f.Defaults = Settings{}
	given := over.given()
	maps.Copy(given, f.over)
	f.over = given
	return f
}

// Block is an experiment on every combination of its recipes, topologies and
// clients, each repeated. Repeats are interleaved: every combination runs once
// before any runs a second time, so that a slow minute of the machine affects all
// alike.
type Block struct {
	Name        string `yaml:"name" help:"name of the block, unique in the suite"` // unique in the suite; it becomes Scenario.Group
	Description string `yaml:"description" help:"what it is for, in one line"`
	// Priority orders the blocks for a time budget: 1 is the highest and the last
	// to be left out. Blocks with none, 0, are left out first.
	Priority int `yaml:"priority" was:"tells" help:"order for a time budget: 1 is the highest; blocks without one are left out first"`
	Settings `yaml:",inline"`
}

// Settings are the parameters of a block, of a suite's defaults, or of the flags:
// a Scenario as far as it is given, with lists where a block has several. What is
// not given comes from the suite's defaults, else from the field's default. In
// YAML a list may be written as its only element.
type Settings struct {
	Recipes  []string `yaml:"recipes" help:"the recipes to run (see lockbench list recipes)"` // required
	Clients  []int    `yaml:"clients" flag:"clients" help:"run with these comma-separated numbers of clients (default 16)"`
	Topology []string `yaml:"topology" flag:"topology" help:"run on these comma-separated topologies (default single)"`
	// Faults is the schedule; default none, but for takeover, which has one
	// holder-kill. An empty list (not nil) stands for none.
	Faults []FaultSpec `yaml:"faults" help:"the schedule of faults (default none; takeover: holder-kill)"`
	// ExpectFor does what Expect does, for single recipes, and overrides it.
	ExpectFor map[string]Expect `yaml:"expect_for" help:"expect for single recipes, by their ids"`

	Scenario `yaml:",inline" omit:"name group recipe seed topology clients faults"`
}

// given lists what was given, by path: "ttl", "workload", "workload.keys".
func (s Settings) given() map[string]bool { return givenIn(reflect.ValueOf(&s).Elem(), "") }

// FaultSpec is a Fault as it is written, as far as it is given. In YAML it may be
// written as its kind alone.
type FaultSpec struct {
	// Fault.Kind is required: TARGET-ACTION, or the action alone, with Target.
	Fault  `yaml:",inline"`
	Target string `yaml:"target" help:"the target, where kind is the action alone"`
	// Within delays it by a time from 0 to Within that the seed decides.
	Within Duration `yaml:"within" help:"delay it by a time up to this one, which the seed decides"`
	// Every repeats it at this interval to the end of the window, at most Count
	// times; by default it comes once.
	Every Duration `yaml:"every" help:"repeat it at this interval until the window ends"`
	Count int      `yaml:"count" help:"repeat it at most N times"`

	zero zeros
}

// gives reports whether the parameter was given.
func (f FaultSpec) gives(name string) bool {
	return slices.ContainsFunc(fieldsIn(&f), func(x field) bool { return x.name == name && x.given() })
}
