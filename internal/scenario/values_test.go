package scenario_test

import (
	"encoding"
	"encoding/json"
	"flag"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/lockbench/lockbench/internal/scenario"
)

// The values are flags of both the standard library and pflag, which asks for
// Type too.
var (
	_ flag.Value = (*scenario.Duration)(nil)
	_ flag.Value = (*scenario.Flag)(nil)

	_ interface{ Type() string } = (*scenario.Duration)(nil)
	_ interface{ Type() string } = (*scenario.Flag)(nil)

	_ encoding.TextUnmarshaler = (*scenario.Duration)(nil)
	_ encoding.TextUnmarshaler = (*scenario.Dist)(nil)
	_ encoding.TextUnmarshaler = (*scenario.Poll)(nil)
)

const ms = time.Millisecond

func TestParseDist(t *testing.T) {
	for text, want := range map[string]scenario.Dist{
		"0":                      {Kind: "constant"},
		"1ms":                    {Kind: "constant", A: ms},
		" 1.5s ":                 {Kind: "constant", A: 1500 * ms},
		"constant(2ms)":          {Kind: "constant", A: 2 * ms},
		"uniform(1ms,3ms)":       {Kind: "uniform", A: ms, B: 3 * ms},
		"uniform( 1ms , 1ms )":   {Kind: "uniform", A: ms, B: ms},
		"exponential(2ms)":       {Kind: "exponential", A: 2 * ms},
		"uniform(0s,1000h0m0s)":  {Kind: "uniform", B: 1000 * time.Hour},
		"exponential(999h59m0s)": {Kind: "exponential", A: 1000*time.Hour - time.Minute},
	} {
		got, err := scenario.ParseDist(text)
		if err != nil || got != want {
			t.Errorf("ParseDist(%q) = %+v, %v; want %+v", text, got, err, want)
			continue
		}
		if again, err := scenario.ParseDist(got.String()); err != nil || again != got {
			t.Errorf("%q is written as %q, which reads as %+v, %v", text, got, again, err)
		}
	}
}

func TestParseErrorsSayWhatToWrite(t *testing.T) {
	dist := func(s string) error { _, err := scenario.ParseDist(s); return err }
	poll := func(s string) error { _, err := scenario.ParsePoll(s); return err }
	duration := func(s string) error { _, err := scenario.ParseDuration(s); return err }
	for _, c := range []struct {
		parse      func(string) error
		text, want string
	}{
		{duration, "5", "write 5ms or 5s"},
		{duration, "", "empty"},
		{duration, "soon", `"20ms"`},
		{duration, "-1s", "negative"},
		{duration, "1001h", "longest"},
		{dist, "1", "has no unit"},
		{dist, "uniform(1ms)", "uniform(1ms,3ms)"},
		{dist, "uniform(3ms,1ms)", "shorter time first"},
		{dist, "uniform(1ms,2ms", "parenthesis"},
		{dist, "uniform(1,2)", "has no unit"},
		{dist, "normal(1ms)", "exponential(2ms)"},
		{dist, "exponential(1ms,2ms)", "exponential(2ms)"},
		{dist, "exponential(-1ms)", "negative"},
		{poll, "15ms..5ms", "shorter time first"},
		{poll, "0s..5ms", "busy loop"},
		{poll, "0s", "busy loop"},
		{poll, "5..15ms", "has no unit"},
		{poll, "5ms..", "empty"},
	} {
		if err := c.parse(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q in it", c.text, err, c.want)
		}
	}
}

func TestParsePoll(t *testing.T) {
	for text, want := range map[string]scenario.Poll{
		"5ms..15ms": {Min: 5 * ms, Max: 15 * ms},
		"10ms":      {Min: 10 * ms, Max: 10 * ms},
	} {
		got, err := scenario.ParsePoll(text)
		if err != nil || got != want {
			t.Errorf("ParsePoll(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestValuesSurviveJSONAndYAML(t *testing.T) {
	type values struct {
		D scenario.Duration `json:"d" yaml:"d"`
		X scenario.Dist     `json:"x" yaml:"x"`
		P scenario.Poll     `json:"p" yaml:"p"`
	}
	want := values{
		scenario.Duration(1500 * ms),
		scenario.Dist{Kind: scenario.DistUniform, A: ms, B: 3 * ms},
		scenario.Poll{Min: 5 * ms, Max: 15 * ms},
	}
	asJSON, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(asJSON); got != `{"d":1500000000,"x":"uniform(1ms,3ms)","p":"5ms..15ms"}` {
		t.Errorf("JSON: %s", got)
	}
	asYAML, err := yaml.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(asYAML); got != "d: 1.5s\nx: uniform(1ms,3ms)\np: 5ms..15ms\n" {
		t.Errorf("YAML: %s", got)
	}
	var fromJSON, fromYAML values
	if err := json.Unmarshal(asJSON, &fromJSON); err != nil || fromJSON != want {
		t.Errorf("from JSON: %+v, %v", fromJSON, err)
	}
	if err := yaml.Unmarshal(asYAML, &fromYAML); err != nil || fromYAML != want {
		t.Errorf("from YAML: %+v, %v", fromYAML, err)
	}
	for _, bad := range []string{`{"d":"4s"}`, `{"d":1.5}`, `{"x":5}`, `{"x":"5"}`, `{"p":"x"}`} {
		if json.Unmarshal([]byte(bad), new(values)) == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestSampleFollowsItsDistribution(t *testing.T) {
	const n = 200_000
	for text, want := range map[string]struct{ min, max, mean time.Duration }{
		"2ms":              {2 * ms, 2 * ms, 2 * ms},
		"uniform(1ms,3ms)": {ms, 3 * ms, 2 * ms},
		"uniform(1ns,2ns)": {1, 2, 1},
		"exponential(2ms)": {0, 40 * ms, 2 * ms},
	} {
		d, err := scenario.ParseDist(text)
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		var sum time.Duration
		low, high := time.Duration(math.MaxInt64), time.Duration(0)
		for range n {
			s := d.Sample(rng)
			sum, low, high = sum+s, min(low, s), max(high, s)
		}
		if low < want.min || high > want.max {
			t.Errorf("%s: from %s to %s", text, low, high)
		}
		// Five standard errors of the widest of them, the exponential.
		if mean := sum / n; math.Abs(float64(mean-want.mean)) > 5*float64(d.Mean())/math.Sqrt(n)+1 {
			t.Errorf("%s: mean %s, want %s", text, mean, want.mean)
		}
		if text == "uniform(1ns,2ns)" && (low != 1 || high != 2) {
			t.Errorf("%s: an end is never drawn: %d to %d", text, low, high)
		}
	}
}

func TestSampleIsDecidedByTheSeed(t *testing.T) {
	d, _ := scenario.ParseDist("exponential(2ms)")
	a, b := rand.New(rand.NewPCG(7, 7)), rand.New(rand.NewPCG(7, 7))
	for range 100 {
		if x, y := d.Sample(a), d.Sample(b); x != y {
			t.Fatalf("%s and %s from the same seed", x, y)
		}
	}
}
