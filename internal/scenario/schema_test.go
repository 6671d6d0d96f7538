package scenario_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lockbench/lockbench/chaos"
	"github.com/lockbench/lockbench/internal/scenario"
)

// resultSchema is result.schema.json for the faults of package chaos alone; the
// file accepts any action.
func resultSchema(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile("result.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(data, &root); err != nil {
		t.Fatal(err)
	}
	at := root
	for _, name := range []string{"$defs", "fault", "properties", "kind"} {
		at, _ = at[name].(map[string]any)
	}
	var patterns []string
	for _, action := range chaos.Actions() {
		about := action.About()
		for _, target := range about.Targets {
			pattern := strings.Replace(regexp.QuoteMeta(target), regexp.QuoteMeta(scenario.TargetNode), "node:[1-9][0-9]*", 1)
			patterns = append(patterns, pattern+"-"+regexp.QuoteMeta(about.Name))
		}
	}
	at["pattern"] = "^(" + strings.Join(patterns, "|") + ")$"
	if data, err = json.Marshal(root); err != nil {
		t.Fatal(err)
	}
	return data
}

func compileSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(resultSchema(t)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("result.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("result.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, data []byte) error {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

// filled has every field set, so that each is checked.
func filled() scenario.Document {
	text, n, f := "x", int64(3), 0.5
	yes := true
	latency := &scenario.Latency{P50: 1, P90: 2, P95: 3, P99: 4, P999: 5, Max: 6, Mean: 2.5, Count: 7}
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	return scenario.Document{
		Schema: scenario.SchemaVersion, Lockbench: "v0", Suite: "quick", Seed: 1, Started: at, Finished: at,
		Interrupted: true, DiskBytes: 1, Warnings: []string{text}, NotTried: []scenario.NotTried{{Recipe: "a", Topology: "b", Faults: []string{text}}},
		Host: scenario.Host{OS: "linux", Arch: "amd64", Kernel: "6", CPUs: 2, CPUModel: "c", MemoryB: 1, GoVersion: "go", Root: true},
		Scenarios: []scenario.Result{{
			Name: "a", Group: "a", Repeat: 1, Recipe: "redis/token", Backend: "redis", Topology: "single", Environment: "process",
			Status: scenario.StatusDone, Reason: text, Server: "redis", Version: "7", Durability: text,
			Settings: map[string]string{"a": "b"},
			Workload: scenario.Load{
				Kind: "keys", Keys: 2, Distribution: "zipf", ZipfS: 1.1, Hold: scenario.Constant(time.Millisecond),
				Think:   scenario.Dist{Kind: scenario.DistUniform, A: time.Millisecond, B: time.Second},
				Arrival: "poisson", Rate: 5, MaxRate: 7, MaxInFlight: 3, AcquireLimit: 5, WatchLease: true, Guard: "both",
				Readers: 0.5, Depth: 2, Batch: 2, Connections: 4,
			},
			Seed: 1, WindowAt: at, TTL: 1, LockDelay: 1, TTLApplies: true, Bound: "ttl", WaitPolicy: text,
			Faults: []scenario.FaultResult{{
				ID: "1", Kind: "holder-pause", Step: text, Status: "effective", Reason: text, Target: text, Mechanism: text, ArmedNS: -1,
				InjectedNS: 1, HealedNS: 2, FirstGrantNS: 3, OthersGrantedNS: 1, LongestWaitNS: 4, Effect: text, RecoveryNS: 5, OutageNS: 6,
			}},
			Workers: 1, Clients: 1, DurationNS: 1, Acquired: 1, Failed: 1, Busy: 1, Unknown: 1, Settled: 1, Throughput: &f, TriesPerSecond: &f, PerSecond: []int64{1},
			Acquire: latency, Response: latency, Release: latency, Handoff: latency, HoldNS: latency,
			FairnessJain: &f, PerClientMin: &n, PerClientMax: &n, RequestsPerAcquire: &f, RenewalsPerAcquire: &f, RequestsPerSecond: &f, ClientCPU: &f, ServerCPU: &f,
			UnavailableNS: &n, RecoveryNS: &n, Arrivals: &scenario.Arrivals{Arrived: 3, Completed: 1, Dropped: 1, InFlight: 1, PacerLateNS: 1},
			WokenPerRelease: &f, OrderInversions: &n,
			Takeover: &scenario.TakeoverTimes{
				Holds: 2, Granted: 1, BoundNS: 1, FromDeath: latency, Lifetime: latency, UnansweredNS: 1,
				Each: []scenario.OneTakeover{{Key: 1, FromDeathNS: 1, LifetimeNS: 2}},
			},
			Leased:     &scenario.LeasedHolds{Holds: 2, Outlived: 1, WorstNS: 5},
			CodeLines:  &scenario.CodeLines{Recipe: 1, Shared: 2},
			Properties: []scenario.Property{{Property: "exclusive", Claim: "prop-exclusive", Promised: scenario.Yes, Measured: scenario.No, Evidence: text}},
			Safety: scenario.Safety{
				Verdict: "unsafe", Promise: "kept", Liveness: "live", Why: map[string]string{"verdict": text},
				Overlaps: 1, OverlapIncidents: 1, OverlapNS: 1, Breaches: 1, TokenRegressions: &n, LostUpdates: &n, StaleWrites: &n,
				Registers:       []scenario.Register{{Name: "plain", Acknowledged: 2, Final: 1, LostUpdates: 1, StaleWrites: &n, Rejected: 1}},
				ContendedGrants: 1, LongestStuckNS: 1, TakeoverBoundNS: 1, LossSignals: &scenario.LossSignals{InTime: 1, Late: 1, Missing: 1, WorstLateNS: 1}, Orphans: &n, Causes: []scenario.Cause{{Cause: text, Count: 1, Breaches: 1}},
				Witnesses: []scenario.Witness{{
					Class: "overlap", Key: 1, KeyName: "k", Sentence: text, LengthNS: 1, Cause: text, Faults: []string{text},
					Calls:  []scenario.WitnessCall{{Client: 1, Name: "a", Seq: 1, Line: 7, Kind: "acquire", Outcome: "held", Attempt: "a", Fence: 1, InvokeNS: -1, ReturnNS: 1, LeaseEndNS: 1}},
					Around: []scenario.WitnessCall{{Client: 2, Name: "b", Seq: 1, Line: 7, Kind: "cleanup", Outcome: "released", Attempt: "b", Fence: 2, InvokeNS: 1, ReturnNS: 2, LeaseEndNS: 3}},
				}},
				Damage: []string{text},
			},
			Expect:     scenario.Expect{Verdict: "unsafe", Promise: "kept", Liveness: "live", Thresholds: []string{"throughput > 1/s"}},
			AsExpected: &yes, Surprises: []string{text}, KnownFailure: text, Unmeasured: map[string]string{"a": text}, Warnings: []string{text},
		}},
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestSchemaAcceptsDocuments(t *testing.T) {
	schema := compileSchema(t)
	bare := filled().Scenarios[0]
	missing := scenario.Result{
		Name: "b", Group: "b", Repeat: 1, Status: scenario.StatusMissing, Reason: "not installed", Workload: bare.Workload,
		Unmeasured: map[string]string{"throughput_per_s": "never ran"},
	}
	if f := firstZero(reflect.ValueOf(filled()), "Document"); f != "" {
		t.Fatalf("the filled document leaves %s empty, so it proves nothing about it", f)
	}
	for name, doc := range map[string]scenario.Document{
		"filled":  filled(),
		"empty":   {Schema: scenario.SchemaVersion},
		"missing": {Schema: scenario.SchemaVersion, Scenarios: []scenario.Result{missing}},
	} {
		data := marshal(t, doc)
		if err := validate(t, schema, data); err != nil {
			t.Errorf("%s: %v\n%s", name, err, data)
		}
		var back scenario.Document
		if err := json.Unmarshal(data, &back); err != nil {
			t.Errorf("%s: read back: %v", name, err)
		} else if again := marshal(t, back); !bytes.Equal(data, again) {
			t.Errorf("%s: changes when read and written again:\n%s\n%s", name, data, again)
		}
	}
}

func firstZero(v reflect.Value, path string) string {
	if v.Kind() != reflect.Bool && v.IsZero() {
		return path
	}
	switch v.Kind() {
	case reflect.Pointer:
		return firstZero(v.Elem(), path)
	case reflect.Slice:
		return firstZero(v.Index(0), path+"[0]")
	case reflect.Struct:
		if opaque(v.Type()) {
			return ""
		}
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue
			}
			if f := firstZero(v.Field(i), path+"."+v.Type().Field(i).Name); f != "" {
				return f
			}
		}
	}
	return ""
}

// opaque types are written as one value.
func opaque(t reflect.Type) bool {
	return t == reflect.TypeFor[time.Time]() || t == reflect.TypeFor[scenario.Dist]() || t == reflect.TypeFor[scenario.Poll]()
}

func TestSchemaRefusesWrongDocuments(t *testing.T) {
	schema := compileSchema(t)
	type object = map[string]any
	first := func(d object) object { return d["scenarios"].([]any)[0].(object) }
	for name, spoil := range map[string]func(object){
		"unknown field":               func(d object) { d["extra"] = 1 },
		"unknown field of a scenario": func(d object) { first(d)["extra"] = 1 },
		"unknown field of safety":     func(d object) { first(d)["safety"].(object)["extra"] = 1 },
		"missing field":               func(d object) { delete(first(d), "acquired") },
		"another version":             func(d object) { d["schema"] = 2 },
		"a time as text":              func(d object) { first(d)["ttl_ns"] = "4s" },
		"a fraction of a nanosecond":  func(d object) { first(d)["duration_ns"] = 1.5 },
		"null where there is none":    func(d object) { first(d)["acquired"] = nil },
		"null list":                   func(d object) { first(d)["warnings"] = nil },
		"negative count":              func(d object) { first(d)["acquired"] = -1 },
		"unknown verdict":             func(d object) { first(d)["safety"].(object)["verdict"] = "fine" },
		"expecting unknown":           func(d object) { first(d)["expect"].(object)["verdict"] = "unknown" },
		"unknown status":              func(d object) { first(d)["status"] = "ok" },
		"unfair beyond measure":       func(d object) { first(d)["fairness_jain"] = 1.1 },
		"a hold without unit":         func(d object) { first(d)["workload"].(object)["hold"] = "uniform(1ms)" },
		"no date":                     func(d object) { d["started"] = "yesterday" },
		"unknown action":              func(d object) { first(d)["faults"].([]any)[0].(object)["kind"] = "holder-tickle" },
		"action without its target":   func(d object) { first(d)["faults"].([]any)[0].(object)["kind"] = "follower-move" },
	} {
		var d object
		if err := json.Unmarshal(marshal(t, filled()), &d); err != nil {
			t.Fatal(err)
		}
		spoil(d)
		if validate(t, schema, marshal(t, d)) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// The schema and the Go types must not drift apart: every field of one is in
// the other, required unless it may be left out, and null where it is a
// pointer.
func TestSchemaHasTheFieldsOfTheTypes(t *testing.T) {
	var root map[string]any
	if err := json.Unmarshal(resultSchema(t), &root); err != nil {
		t.Fatal(err)
	}
	w := walker{t: t, defs: root["$defs"].(map[string]any), used: map[string]bool{}}
	w.object("Document", reflect.TypeFor[scenario.Document](), root)
	for name := range w.defs {
		if !w.used[name] {
			t.Errorf("$defs/%s is not used by any field", name)
		}
	}
}

type walker struct {
	t    *testing.T
	defs map[string]any
	used map[string]bool
}

func (w walker) object(path string, typ reflect.Type, schema map[string]any) {
	if schema["additionalProperties"] != false {
		w.t.Errorf("%s: additionalProperties is not false", path)
	}
	properties := schema["properties"].(map[string]any)
	var names, required []string
	for i := range typ.NumField() {
		f := typ.Field(i)
		if !f.IsExported() {
			continue
		}
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
		if opts != "omitempty" && opts != "omitzero" {
			required = append(required, name)
		}
		p, ok := properties[name].(map[string]any)
		if !ok {
			w.t.Errorf("%s.%s is not in the schema", path, name)
			continue
		}
		if d, _ := p["description"].(string); !strings.HasSuffix(d, ".") {
			w.t.Errorf("%s.%s has no description that ends in a full stop", path, name)
		}
		w.value(path+"."+name, f.Type, p)
	}
	for name := range properties {
		if !slices.Contains(names, name) {
			w.t.Errorf("%s.%s is in the schema only", path, name)
		}
	}
	var want []string
	for _, r := range schema["required"].([]any) {
		want = append(want, r.(string))
	}
	slices.Sort(want)
	slices.Sort(required)
	if !slices.Equal(want, required) {
		w.t.Errorf("%s: required is %v, the type says %v", path, want, required)
	}
}

func (w walker) value(path string, typ reflect.Type, schema map[string]any) {
	nullable := false
	if typ.Kind() == reflect.Pointer {
		nullable, typ = true, typ.Elem()
	}
	if either, ok := schema["anyOf"].([]any); ok {
		if len(either) != 2 || either[1].(map[string]any)["type"] != "null" || !nullable {
			w.t.Errorf("%s: anyOf that is not of a pointer", path)
		}
		schema, nullable = either[0].(map[string]any), false
	}
	if ref, ok := schema["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, "#/$defs/")
		def, ok := w.defs[name].(map[string]any)
		if !ok {
			w.t.Fatalf("%s: no %s", path, ref)
		}
		seen := w.used[name]
		w.used[name] = true
		if !seen {
			w.object(path, typ, def)
		}
		return
	}
	if c, ok := schema["const"]; ok {
		if fmt.Sprint(c) != fmt.Sprint(scenario.SchemaVersion) {
			w.t.Errorf("%s: the schema is of version %v, the code of %d", path, c, scenario.SchemaVersion)
		}
		return
	}
	want := jsonType(typ)
	var got []string
	switch s := schema["type"].(type) {
	case string:
		got = []string{s}
	case []any:
		for _, one := range s {
			got = append(got, one.(string))
		}
	}
	// A list that is null was not measured; only per-second counts are such.
	if nullable || path == "Document.scenarios[].acquired_per_second" {
		want = append(want, "null")
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("%s: type %v, the Go type says %v", path, got, want)
	}
	if typ.Kind() == reflect.Slice {
		w.value(path+"[]", typ.Elem(), schema["items"].(map[string]any))
	}
}

func jsonType(t reflect.Type) []string {
	if opaque(t) {
		return []string{"string"}
	}
	return []string{map[reflect.Kind]string{
		reflect.String: "string", reflect.Bool: "boolean", reflect.Float64: "number", reflect.Slice: "array",
		reflect.Map: "object", reflect.Int: "integer", reflect.Int64: "integer", reflect.Uint32: "integer", reflect.Uint64: "integer",
	}[t.Kind()]}
}

// What may stand in a field is in the schema by hand; the code's lists decide.
func TestSchemaKnowsEveryKind(t *testing.T) {
	var root struct {
		Defs map[string]struct {
			Properties map[string]struct {
				Enum    []string
				Pattern string
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(resultSchema(t), &root); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, e := range scenario.Workloads() {
		known[e.Name] = true
	}
	want := slices.Sorted(maps.Keys(known))
	got := slices.Sorted(slices.Values(root.Defs["load"].Properties["kind"].Enum))
	if !slices.Equal(got, want) {
		t.Errorf("load.kind: the schema lists %v, the code %v", got, want)
	}
	fault := regexp.MustCompile(root.Defs["fault"].Properties["kind"].Pattern)
	for _, f := range append(chaos.Actions().Faults(), scenario.Entry{Name: "node:12-cut-peers"}) {
		if !fault.MatchString(f.Name) {
			t.Errorf("fault.kind: the schema does not know %s", f.Name)
		}
	}
	for _, name := range []string{"holder", "pause", "holder-", "node:0-pause", "holder-pause-1", "gremlin-pause", "holder-tickle", "follower-move"} {
		if fault.MatchString(name) {
			t.Errorf("fault.kind: the schema lets %q pass", name)
		}
	}
}
