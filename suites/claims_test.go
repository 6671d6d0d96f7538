package suites_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockbench/lockbench/internal/scenario"
	"github.com/lockbench/lockbench/reports/claims"
	"github.com/lockbench/lockbench/suites"
)

func TestClaimsAndTheirSuiteFit(t *testing.T) {
	all, err := claims.All()
	if err != nil {
		t.Fatal(err)
	}
	var doc scenario.Document
	for _, sc := range expand(t, claims.Suite) {
		if !slices.ContainsFunc(all, func(c claims.Claim) bool { return c.Needs(sc.Group, sc.Recipe, sc.Clients) }) {
			t.Errorf("no claim needs %s", sc.Name)
		}
		doc.Scenarios = append(doc.Scenarios, scenario.Result{Name: sc.Name, Group: sc.Group, Recipe: sc.Recipe, Clients: sc.Clients, Repeat: sc.Repeat, Status: scenario.StatusDone})
	}
	for _, d := range claims.Decide(all, []claims.Run{{Document: doc}}) {
		for _, p := range d.Parts {
			if strings.Contains(p.Reason, "no scenario") {
				t.Errorf("%s: %s: %s", d.ID, p.Rule, p.Reason)
			}
		}
		for _, table := range d.Tables {
			if len(table.Rows) == 0 {
				t.Errorf("%s: the table %q has no rows", d.ID, table.Title)
			}
		}
	}
}

func TestClaimsSuiteTakesItsTime(t *testing.T) {
	f, err := suites.Load(claims.Suite)
	if err != nil {
		t.Fatal(err)
	}
	if took := scenario.Estimate(expand(t, claims.Suite), f.Parallel); took > 40*time.Minute {
		t.Errorf("the suite takes %v, more than its description says", took)
	}
}
