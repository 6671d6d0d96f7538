package reports

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/lockbench/lockbench/internal/scenario"
)

// benchKey is one dimension of a benchmark's name.
type benchKey struct {
	name string
	of   func(result) string
}

// benchNames are the dimensions of every name.
func benchNames() []benchKey {
	return []benchKey{
		{"workload", func(r result) string { return r.Workload.Kind }},
		{"backend", func(r result) string { return r.Backend }},
		{"recipe", func(r result) string { _, n, ok := strings.Cut(r.Recipe, "/"); return pick(ok, n, r.Recipe) }},
		{"clients", func(r result) string { return fmt.Sprint(r.Clients) }},
	}
}

// benchExtras are added only if different experiments would get the same name:
// benchstat would treat them as repeats.
func benchExtras() []benchKey {
	return []benchKey{
		{"fault", func(r result) string { return or(strings.Join(faultKinds(r), "+"), "none") }},
		{"topology", func(r result) string { return r.Topology }},
		{"hold", func(r result) string { return r.Workload.Hold.String() }},
		{"think", func(r result) string { return r.Workload.Think.String() }},
		{"arrival", func(r result) string { return or(r.Workload.Arrival, "closed") }},
		{"rate", func(r result) string { return number(r.Workload.Rate) }},
		{"keys", func(r result) string { return fmt.Sprint(r.Workload.Keys) }},
		{"ttl", func(r result) string { return r.TTL.String() }},
		{"wait", func(r result) string { return r.WaitPolicy }},
		{"group", func(r result) string { return r.Group }},
	}
}

func pick(first bool, a, b string) string {
	if first {
		return a
	}
	return b
}

// bench writes the results in the format of Go benchmarks, so that benchstat can
// compare runs. Each repeat has its own line. ns/op is the time between grants of
// all clients, as in a parallel Go benchmark; p50-ns and p99-ns are the wait of
// one client.
func bench(d scenario.Document) []byte {
	var b strings.Builder
	for _, c := range [][2]string{{"goos", d.Host.OS}, {"goarch", d.Host.Arch}, {"pkg", "github.com/lockbench/lockbench"}, {"cpu", d.Host.CPUModel}, {"lockbench", d.Lockbench}, {"suite", d.Suite}} {
		if v := clean(c[1]); v != "" {
			fmt.Fprintf(&b, "%s: %s\n", c[0], v)
		}
	}
	var rs []result
	for _, r := range d.Scenarios {
		if r.Status == scenario.StatusDone && r.Acquired > 0 && r.DurationNS > 0 {
			rs = append(rs, r)
		}
	}
	names := benchmarkNames(rs)
	for i, r := range rs {
		fmt.Fprintf(&b, "%s\t%d\t%.1f ns/op", names[i], r.Acquired, float64(r.DurationNS)/float64(r.Acquired))
		if r.Acquire != nil && r.Acquire.Count > 0 {
			fmt.Fprintf(&b, "\t%d p50-ns\t%d p99-ns", r.Acquire.P50, r.Acquire.P99)
		}
		if r.Handoff != nil && r.Handoff.Count > 0 {
			fmt.Fprintf(&b, "\t%d handoff-p50-ns", r.Handoff.P50)
		}
		if r.Throughput != nil {
			fmt.Fprintf(&b, "\t%.1f acquires/s", *r.Throughput)
		}
		if r.RequestsPerAcquire != nil {
			fmt.Fprintf(&b, "\t%.3f requests/acquire", *r.RequestsPerAcquire)
		}
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

// benchmarkNames gives each experiment its own name.
func benchmarkNames(rs []result) []string {
	usual := make([]string, len(rs))
	alike := map[string][]int{}
	for i, r := range rs {
		usual[i] = benchName(r, benchNames())
		alike[usual[i]] = append(alike[usual[i]], i)
	}
	out := slices.Clone(usual)
	for _, is := range alike {
		for _, k := range benchExtras() {
			differ := false
			for _, i := range is {
				differ = differ || k.of(rs[i]) != k.of(rs[is[0]])
			}
			if !differ {
				continue
			}
			for _, i := range is {
				out[i] += "/" + benchWord(k, rs[i])
			}
		}
	}
	return out
}

func benchName(r result, keys []benchKey) string {
	name := "BenchmarkLock"
	for _, k := range keys {
		name += "/" + benchWord(k, r)
	}
	return name
}

// benchWord writes key=value without separators in the value.
func benchWord(k benchKey, r result) string {
	v := strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || c == '/' || c == '=' || unicode.IsControl(c) {
			return '_'
		}
		return c
	}, or(clean(k.of(r)), "none"))
	return k.name + "=" + v
}
