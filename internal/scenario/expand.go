package scenario

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

// maxScenarios bounds an expansion: more is a typing error, not a plan.
const maxScenarios = 4000

// maxWord bounds the names in a list, of which a scenario's name is made.
const maxWord = 60

// maxParallel bounds how many scenarios run at once: each has its own servers.
const maxParallel = 64

// ParseFile reads a suite. The name is used in messages only. The error is an
// *Invalid with the line, the column and the field of every problem that can be
// found without knowing the recipes; actions are what faults can do.
func ParseFile(name string, data []byte, actions Actions) (File, error) {
	f := File{source: name, actions: actions}
	d, err := decodeYAML(name, data, maxFile, &f)
	if err != nil {
		return File{}, err
	}
	f.places = d.places
	if _, err := f.Expand(nil); err != nil {
		return File{}, err
	}
	f.Seed = max(1, f.Seed)
	return f, nil
}

// Expand makes the scenarios of f: every combination, with every default, name
// and seed. A name and a seed depend on their own block only, so adding a block
// changes no other. The error is an *Invalid with every problem found. With a nil
// catalogue, what depends on the recipes is not checked, and takes the defaults of
// a recipe with fencing tokens.
func (f File) Expand(c Catalogue) ([]Scenario, error) {
	e := expansion{file: f, catalogue: c, actions: f.actions, names: map[string]bool{}}
	e.file.Seed = max(1, f.Seed)
	if !isName(f.Name) {
		e.problem("name", fmt.Sprintf("invalid suite name %q", f.Name), nameHint)
	}
	if len(f.Scenarios) == 0 {
		e.problem("scenarios", "the suite has no scenarios", `list at least one under "scenarios"`)
	}
	if f.Parallel < 0 || f.Parallel > maxParallel {
		e.problem("parallel", fmt.Sprintf("%d scenarios at once", f.Parallel), fmt.Sprintf("write 1 to %d", maxParallel))
	}
	total := 0
	for i := range f.Scenarios {
		total += e.count(i)
	}
	if total > maxScenarios {
		e.problem("scenarios", fmt.Sprintf("the suite expands to %d scenarios, at most %d can be run", total, maxScenarios), "shorten the lists, or repeat less")
		return nil, e.err()
	}
	for i := range f.Scenarios {
		e.block(i)
	}
	if err := e.err(); err != nil {
		return nil, err
	}
	return e.scenarios, nil
}

type expansion struct {
	file      File
	catalogue Catalogue
	actions   Actions
	scenarios []Scenario
	names     map[string]bool
	problems  []Problem
}

func (e *expansion) err() error {
	if len(e.problems) == 0 {
		return nil
	}
	return &Invalid{Problems: sorted(e.problems)}
}

// settings are those of a block, with the defaults that depend on its workload
// alone, and what was given of them.
func (e *expansion) settings(i int) (s Settings, given map[string]bool) {
	s = merge(e.file.Defaults, e.file.Scenarios[i].Settings)
	given = s.given()
	if s.Clients == nil {
		s.Clients = []int{defaultClients}
	}
	if s.Topology == nil {
		s.Topology = []string{TopologySingle}
	}
	setDefaults(&s.Scenario, s.Workload.Kind)
	setDefaults(&s.Workload, s.Workload.Kind)
	return s, given
}

// count is how many scenarios a block makes, or a number beyond the limit.
func (e *expansion) count(i int) int {
	s, _ := e.settings(i)
	n := 1
	for _, factor := range []int{len(s.Recipes), len(s.Clients), len(s.Topology), max(1, s.Repeat)} {
		n = min(n*factor, 1_000_000_000)
	}
	return n
}

func (e *expansion) block(i int) {
	b := e.file.Scenarios[i]
	s, given := e.settings(i)
	path := fmt.Sprintf("scenarios[%d]", i)
	if b.Name == "" {
		e.problem(path+".name", "the scenario has no name", nameHint)
	} else if !isName(b.Name) {
		e.problem(path+".name", fmt.Sprintf("invalid scenario name %q", b.Name), nameHint)
	}
	if slices.ContainsFunc(e.file.Scenarios[:i], func(o Block) bool { return o.Name == b.Name }) {
		e.problem(path+".name", fmt.Sprintf("a second scenario named %q", b.Name), "give each its own name")
		return
	}
	if b.Priority < 0 {
		e.problem(path+".priority", fmt.Sprintf("invalid priority %d", b.Priority), "write 1 for the highest, 2 for the next")
	}
	if s.Repeat < 1 {
		e.problem(path+".repeat", fmt.Sprintf("%d repeats", s.Repeat), "write 1 or more")
	}
	recipes := e.recipes(path, s)
	if !e.distinct(path, s) {
		return // the checks below would report the same again
	}
	if s.Workload.Kind == Properties {
		e.properties(path, given)
	}
	e.repeated(path, s)
	e.expectFor(path, b, s)
	e.servers(path, b, recipes)
	for _, x := range checkExpect(path+".expect", s.Expect) {
		e.problem(x.path, x.message, x.hint)
	}
	for rep := 1; rep <= s.Repeat; rep++ {
		for _, topology := range s.Topology {
			for j, clients := range s.Clients {
				for _, r := range recipes {
					e.add(path, b.Name, s, choice{r, topology, clients, rep, given}, j)
				}
			}
		}
	}
}

func (e *expansion) add(path, group string, s Settings, c choice, clientsIndex int) {
	sc, origin := resolve(e.file.Seed, group, s, c)
	if c.repeat == 1 {
		for _, x := range check(sc, c.recipe, e.catalogue != nil, origin) {
			if x.path == "clients" {
				x.path = fmt.Sprintf("clients[%d]", clientsIndex)
			}
			e.problem(join(path, x.path), x.message, x.hint)
		}
	}
	if e.names[sc.Name] {
		e.problem(path+".name", fmt.Sprintf("two scenarios would be named %q", sc.Name), "rename the block")
	}
	e.names[sc.Name] = true
	e.scenarios = append(e.scenarios, sc)
}

// fresh reports whether the file is as its author wrote it. Later a program may
// have removed recipes, and settings for those are then no errors.
func (e *expansion) fresh() bool { return e.catalogue == nil }

// recipes finds the facts of a block's recipes.
func (e *expansion) recipes(path string, s Settings) []RecipeFacts {
	if len(s.Recipes) == 0 {
		e.problem(path+".recipes", "missing recipes", `write "recipes: [redis/token]", for example; lockbench list recipes shows all`)
	}
	var found []RecipeFacts
	for i, id := range s.Recipes {
		at := fmt.Sprintf("%s.recipes[%d]", path, i)
		if slices.Contains(s.Recipes[:i], id) || e.tooLong(at, id, "a recipe's id") {
			continue
		}
		if e.catalogue == nil {
			backend, _, _ := strings.Cut(id, "/")
			found = append(found, RecipeFacts{ID: id, Backend: backend, Fencing: true, actions: e.actions})
		} else if r, ok := e.catalogue.Recipe(id); ok {
			found = append(found, r)
		} else {
			e.unknownRecipe(at, id)
		}
	}
	duplicates(e, path+".recipes", s.Recipes)
	return found
}

func (e *expansion) unknownRecipe(path, id string) {
	e.problem(path, fmt.Sprintf("no recipe %q", id), RecipeHint(e.catalogue, id))
}

func (e *expansion) tooLong(path, word, what string) bool {
	if len(word) > maxWord {
		e.problem(path, fmt.Sprintf("%q is too long for %s", word, what), "is a comma or a line break missing?")
	}
	return len(word) > maxWord
}

// duplicates rejects what would run the same twice under one name.
func duplicates[T comparable](e *expansion, path string, list []T) {
	for i, x := range list {
		if slices.Contains(list[:i], x) {
			e.problem(fmt.Sprintf("%s[%d]", path, i), fmt.Sprintf("%#v is listed twice", x), "list it once; use repeat to run it again")
		}
	}
}

// distinct rejects lists that are empty or have duplicates.
func (e *expansion) distinct(path string, s Settings) bool {
	before := len(e.problems)
	duplicates(e, path+".clients", s.Clients)
	duplicates(e, path+".topology", s.Topology)
	for i, t := range s.Topology {
		e.tooLong(fmt.Sprintf("%s.topology[%d]", path, i), t, "a topology")
	}
	if len(s.Clients) == 0 {
		e.problem(path+".clients", "an empty list", "write a number of clients, 1 or more")
	}
	if len(s.Topology) == 0 {
		e.problem(path+".topology", "an empty list", "write single, for example")
	}
	return len(e.problems) == before
}

// properties rejects parameters of a load where there is none: they would be
// ignored without notice.
func (e *expansion) properties(path string, given map[string]bool) {
	for _, name := range []string{"clients", "workers", "warmup", "duration", "expect", "expect_for"} {
		if given[name] {
			e.problem(path+"."+name, "the workload properties has no load: the conformance suite has its own clients and times, and expects what each recipe promises", "leave it out")
		}
	}
}

// repeated checks a fault's repetition, which a resolved schedule no longer shows.
func (e *expansion) repeated(path string, s Settings) {
	for i, f := range s.Faults {
		at := fmt.Sprintf("%s.faults[%d].count", path, i)
		switch {
		case f.gives("count") && !f.gives("every"):
			e.problem(at, fmt.Sprintf("%d times without an interval", f.Count), "add every: 5s, for example, or leave count out")
		case f.gives("count") && (f.Count < 1 || f.Count > maxFaults):
			e.problem(at, fmt.Sprintf("a fault that occurs %d times", f.Count), fmt.Sprintf("write 1 to %d", maxFaults))
		}
	}
}

// expectFor checks the expectations of single recipes. One for a recipe that does
// not run would never fail.
func (e *expansion) expectFor(path string, b Block, s Settings) {
	for id, expect := range s.ExpectFor {
		at := path + ".expect_for." + id
		_, own := b.ExpectFor[id]
		if e.catalogue != nil {
			if _, ok := e.catalogue.Recipe(id); !ok {
				e.unknownRecipe(at, id)
				continue
			}
		}
		if own && e.fresh() && !slices.Contains(s.Recipes, id) {
			e.problem(at, fmt.Sprintf("%q is not among the recipes of this block", id), "add it there, or leave the expectation out")
		}
		for _, x := range checkExpect(at, expect) {
			e.problem(x.path, x.message, x.hint)
		}
	}
}

// servers rejects settings of servers that the block does not run.
func (e *expansion) servers(path string, b Block, recipes []RecipeFacts) {
	for backend := range b.Servers {
		uses := func(r RecipeFacts) bool { return r.Backend == backend }
		if e.fresh() && !slices.ContainsFunc(recipes, uses) {
			e.problem(path+".servers."+backend, fmt.Sprintf("no recipe of this block runs on %q", backend), "add one, or leave the settings out")
		}
	}
}

// problem records a problem at a path, with its place in the file.
func (e *expansion) problem(path, message, hint string) {
	p := Problem{File: e.file.source, Field: path, Message: message, Hint: hint}
	rest := path
	if block, inner, ok := strings.Cut(path, "]."); ok && strings.HasPrefix(block, "scenarios[") {
		rest = inner
	}
	top := rest
	if i := strings.IndexAny(rest, ".["); i >= 0 {
		top = rest[:i]
	}
	switch {
	case e.file.over[top] && rest != path:
		// It came from a flag, not from the file.
		p.File, p.Field = "", rest
	case e.file.source == "":
		p.Field = rest
	default:
		found, at := e.place(path, rest)
		p.Line, p.Column = at.line, at.column
		if strings.HasPrefix(found, "defaults.") {
			p.Field = "defaults." + rest
		}
	}
	e.problems = append(e.problems, p)
}

// place finds where path was written: in its block, in the defaults, or else the
// nearest field around it.
func (e *expansion) place(path, rest string) (string, position) {
	for {
		if at, ok := e.file.places[path]; ok {
			return path, at
		}
		if at, ok := e.file.places["defaults."+rest]; ok && rest != path {
			return "defaults." + rest, at
		}
		cut := strings.LastIndexAny(path, ".[")
		if cut < 0 {
			return "", e.file.places[""]
		}
		gone := len(path) - cut
		path, rest = path[:cut], rest[:max(0, len(rest)-gone)]
	}
}

const nameHint = "use lower-case letters, digits and hyphens, 50 at most"

// isName reports whether s is fit for a folder's name everywhere.
func isName(s string) bool { return s != "" && len(s) <= 50 && s == slug(s) && s[0] != '-' }

func name(sc Scenario) string {
	topology := ""
	if sc.Topology != TopologySingle {
		topology = "-" + slug(sc.Topology)
	}
	return fmt.Sprintf("%s-%s%s-%dc-r%d", slug(sc.Group), slug(sc.Recipe), topology, sc.Clients, sc.Repeat)
}

// seed derives a scenario's seed from its name, so that other scenarios of the
// suite cannot change it. It has 53 bits, which every reader of JSON keeps exact.
func seed(suite uint64, name string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%s", suite, name)
	return max(1, spread(h.Sum64())>>11)
}

// spread mixes the low bits of an FNV hash, where the last letters are, into all.
func spread(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
