// Package claims decides what the documents that this project began with say
// about locks. Each of their claims is an entry of claims.yaml: its experiment,
// which scenarios of the suite "claims" carry out, and its rule, which judges
// later runs. Decide applies the rules to the results of runs. A claim is confirmed
// or refuted by measured scenarios only; whatever is missing, missed or unknown
// makes it inconclusive, with the reason.
package claims

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
)

// Suite is the name of the suite whose scenarios decide the claims.
const Suite = "claims"

// File is where a run's verdicts are written, in the run's folder.
const File = "claims.json"

//go:embed claims.yaml
var data []byte

// Claim is one statement of the documents.
type Claim struct {
	ID         string   `yaml:"id"`
	Claim      string   `yaml:"claim"`
	Documents  []string `yaml:"documents"` // S1 to S5
	Experiment string   `yaml:"experiment"`
	// Rule has a check for each part of the claim. All must be confirmed.
	Rule   []Check `yaml:"rule"`
	Rank   *Rank   `yaml:"rank"` // of the claims that compare kinds of locks; adds checks
	Curves []Curve `yaml:"curves"`
	// Limits is what the experiment leaves open.
	Limits string `yaml:"limits"`
}

// Check is one part of a rule. It has one of Compare, Show and Unmeasured.
type Check struct {
	Says string `yaml:"says"` // the part of the claim; empty: the whole

	// Compare is a metric. The check holds if the median of Of is at least Least
	// times that of To ("1.2x"), or that much more ("+0.1"); with Under, if it is
	// less than Under times that of To. Both are the smallest effect that counts.
	Compare string `yaml:"compare"`
	To      Set    `yaml:"to"`
	Least   string `yaml:"least"`
	Under   string `yaml:"under"`

	// Show is what every repeat of Of must show, and no repeat of Control:
	// "verdict = unsafe", "acquire.p99 < 20ms", or "property exclusive", which
	// every recipe must have that guarantees it.
	Show    string `yaml:"show"`
	Control Set    `yaml:"control"`

	Of Set `yaml:"of"`

	counted map[string][]string // of a rank, see Criterion
	// Repeats is how many are needed; default 3.
	Repeats int `yaml:"repeats"`

	// Unmeasured is why no experiment decides this part.
	Unmeasured string `yaml:"unmeasured"`
}

// Set selects scenarios of the suite.
type Set struct {
	In      []string `yaml:"in"`      // groups
	Recipes []string `yaml:"recipes"` // none: all
	Clients int      `yaml:"clients"` // 0: any
}

// Rank is an order of recipes, which stand for kinds of locks.
type Rank struct {
	// Order begins with the best: "redis/token > zookeeper/sequence >= mysql/lease-row".
	Order string `yaml:"order"`
	// Also are recipes that the documents do not rank, with the reason.
	Also map[string]string `yaml:"also"`
	// Absent are locks without a server to run here, with the reason.
	Absent map[string]string `yaml:"absent"`
	By     []Criterion       `yaml:"by"`
}

// Criterion is one measure of a rank.
type Criterion struct {
	Metric string   `yaml:"metric"`
	In     []string `yaml:"in"`
	Best   string   `yaml:"best"` // most or least
	// Counted replaces the metric by a count of what each recipe needs, by hand.
	Counted map[string][]string `yaml:"counted"`
	Counts  string              `yaml:"counts"` // smallest effect that counts
	Repeats int                 `yaml:"repeats"`
}

// Curve is a metric of recipes over what varies in their scenarios.
type Curve struct {
	Title  string `yaml:"title"`
	Metric string `yaml:"metric"`
	X      string `yaml:"x"` // ttl, hold or clients
	Of     Set    `yaml:"of"`
}

// All returns every claim, in the order of the documents' list.
func All() ([]Claim, error) { return parse(data) }

func parse(data []byte) ([]Claim, error) {
	var file struct {
		Sets   []Set   `yaml:"sets"` // a place for YAML anchors
		Claims []Claim `yaml:"claims"`
	}
	if err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&file); err != nil {
		return nil, fmt.Errorf("read the claims: %w", err)
	}
	seen := map[string]bool{}
	for i, c := range file.Claims {
		if seen[c.ID] {
			return nil, fmt.Errorf("claim %s is listed twice", c.ID)
		}
		seen[c.ID] = true
		if c.Rank != nil {
			checks, err := c.Rank.checks()
			if err != nil {
				return nil, fmt.Errorf("claim %s: %w", c.ID, err)
			}
			file.Claims[i].Rule = append(checks, c.Rule...)
		}
		if err := file.Claims[i].validate(); err != nil {
			return nil, fmt.Errorf("claim %s: %w", c.ID, err)
		}
	}
	return file.Claims, nil
}

func (c Claim) validate() error {
	if c.ID == "" || c.Claim == "" || c.Experiment == "" || len(c.Documents) == 0 || len(c.Rule) == 0 {
		return fmt.Errorf("a claim needs id, claim, documents, experiment and rule")
	}
	for _, k := range c.Rule {
		if err := k.validate(); err != nil {
			return err
		}
	}
	for _, v := range c.Curves {
		if !isMetric(v.Metric) || len(v.Of.In) == 0 || !slices.Contains([]string{"ttl", "hold", "clients"}, v.X) {
			return fmt.Errorf("the curve %q needs a metric, groups, and ttl, hold or clients as x", v.Title)
		}
	}
	return nil
}

func (k Check) validate() error {
	switch {
	case k.Unmeasured != "":
		return nil
	case len(k.Of.In) == 0:
		return fmt.Errorf("a check without scenarios (of)")
	case k.Show != "":
		_, err := parseShown(k.Show)
		return err
	case k.counted == nil && !isMetric(k.Compare):
		return fmt.Errorf("no metric %q", k.Compare)
	case len(k.To.In) == 0 || (k.Least == "") == (k.Under == ""):
		return fmt.Errorf("a comparison needs \"to\" and one of \"least\" and \"under\"")
	}
	_, err := parseEffect(k.Least + k.Under)
	return err
}

// effect is the smallest effect that counts: a ratio ("1.2x") or a difference
// ("+0.1").
type effect struct {
	value      float64
	difference bool
}

func parseEffect(s string) (effect, error) {
	number, ratio := strings.CutSuffix(s, "x")
	number, plus := strings.CutPrefix(number, "+")
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || ratio == plus || math.IsNaN(v) || ratio && v < 1 || plus && v <= 0 {
		return effect{}, fmt.Errorf(`%q is no effect; write "1.2x" or "+0.1"`, s)
	}
	return effect{v, plus}, nil
}

// ByID picks claims by their ids, or returns all for none.
func ByID(all []Claim, ids []string) ([]Claim, error) {
	if len(ids) == 0 {
		return all, nil
	}
	var picked []Claim
	for _, id := range ids {
		i := slices.IndexFunc(all, func(c Claim) bool { return c.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("no claim %q (see lockbench list claims)", id)
		}
		picked = append(picked, all[i])
	}
	return picked, nil
}

// Needs reports whether the claim's rule or its curves use a scenario.
func (c Claim) Needs(group, recipe string, clients int) bool {
	return slices.ContainsFunc(c.sets(), func(s Set) bool { return s.selects(group, recipe, clients) })
}

func (c Claim) sets() []Set {
	var sets []Set
	for _, k := range c.Rule {
		sets = append(sets, k.Of, k.To, k.Control)
	}
	for _, v := range c.Curves {
		sets = append(sets, v.Of)
	}
	if c.Rank != nil {
		for _, by := range c.Rank.By {
			for recipe := range c.Rank.Also {
				sets = append(sets, Set{In: by.In, Recipes: []string{recipe}})
			}
		}
	}
	return sets
}

func (s Set) selects(group, recipe string, clients int) bool {
	return slices.Contains(s.In, group) &&
		(len(s.Recipes) == 0 || slices.Contains(s.Recipes, recipe)) &&
		(s.Clients == 0 || s.Clients == clients)
}
