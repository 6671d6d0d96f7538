package scenario

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// sample is a text that a parameter accepts, and not its default.
func sample(f *Flag) string {
	if choices := strings.Fields(f.field.tag.Get("choices")); len(choices) > 0 {
		return choices[len(choices)-1]
	}
	switch f.Type() {
	case "duration", "times":
		return "7s"
	case "from..to":
		return "1ms..2ms"
	case "bool":
		return "true"
	case "float64":
		return "0.5"
	case "string", "strings":
		return "word"
	}
	return "7"
}

// block is a suite of one block, in which the field at a path has a value.
func block(workload, path, value string) string {
	load, rest := "kind: "+workload, ""
	if path == "workload.kind" {
		load = "kind: " + value
	} else if name, ok := strings.CutPrefix(path, "workload."); ok {
		load += ", " + name + ": " + value
	} else if name, ok := strings.CutPrefix(path, "expect."); ok {
		rest = ", expect: {" + name + ": " + value + "}"
	} else {
		rest = ", " + path + ": " + value
	}
	return "name: t\nscenarios:\n  - {name: b, recipes: redis/token, workload: {" + load + "}" + rest + "}\n"
}

// paths lists the parameters by their paths in a block.
func paths(group reflect.Value, path string, all map[string]field) map[string]field {
	for _, f := range fieldsOf(group) {
		if at := join(path, f.name); isGroup(f.value) {
			paths(f.value, at, all)
		} else {
			all[at] = f
		}
	}
	return all
}

// A field with tags has everything that a parameter needs: a flag with help, the
// same meaning in a flag and in a suite, a default, and checks with a place.
func TestEveryParameterIsComplete(t *testing.T) {
	var s Settings
	all := paths(reflect.ValueOf(&s).Elem(), "", map[string]field{})
	flags := map[string]*Flag{}
	for _, f := range Flags(&s) {
		if flags[f.Name] != nil {
			t.Errorf("two parameters have the flag --%s", f.Name)
		}
		flags[f.Name] = f
	}
	for path, p := range all {
		workload := HotKey
		if only := p.tag.Get("for"); only != "" {
			workload = only
		}
		if path == "wire" || strings.HasPrefix(path, "workload.") && path != "workload.kind" || p.tag.Get("default") != "" {
			if p.tag.Get("flag") == "" || p.tag.Get("help") == "" {
				t.Errorf("%s has no flag or no help", path)
			}
		}
		if f := flags[p.tag.Get("flag")]; f != nil {
			if len(f.Help) > 79 {
				t.Errorf("--%s: the help has %d columns: %s", f.Name, len(f.Help), f.Help)
			}
			text := sample(f)
			if err := f.Set(text); err != nil {
				t.Errorf("--%s %s: %v", f.Name, text, err)
				continue
			}
			var file File
			if _, err := decodeYAML("t.yaml", []byte(block(workload, path, text)), maxFile, &file); err != nil {
				t.Errorf("%s: %s: %v", path, text, err)
				continue
			}
			written := paths(reflect.ValueOf(&file.Scenarios[0].Settings).Elem(), "", map[string]field{})[path]
			if !reflect.DeepEqual(written.value.Interface(), p.value.Interface()) || !written.given() || !p.given() {
				t.Errorf("%s: %v in a suite, %v as a flag", path, written.value, p.value)
			}
		}
		rejected := func(workload, value string) {
			_, err := ParseFile("t.yaml", []byte(block(workload, path, value)), nil)
			if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "t.yaml:3:") || !strings.Contains(err.Error(), path) {
				t.Errorf("%s: %s with %s: %v", path, value, workload, err)
			}
		}
		if p.tag.Get("choices") != "" {
			rejected(workload, "no-such-word")
		}
		if text := p.tag.Get("range"); text != "" {
			allowed, _ := p.inRange()
			if p.value.Type() != reflect.TypeFor[Duration]() {
				rejected(workload, "-1")
			} else if strings.HasPrefix(allowed, "more than") {
				rejected(workload, "0s")
			}
		}
		if p.tag.Get("for") != "" {
			rejected(Takeover, sample(&Flag{field: p}))
		}
	}
	for _, w := range Workloads() {
		var s Settings
		setDefaults(&s.Scenario, w.Name) // panics on a wrong tag
		setDefaults(&s.Workload, w.Name)
	}
}

// What a new parameter takes is one field: this one is known to no other code.
func TestParameterIsOneField(t *testing.T) {
	type group struct {
		Old int `yaml:"old"`
		New int `yaml:"new" was:"former" flag:"new" for:"hot-key" default:"3 batch=5" range:"1..9" help:"do it N times"`
	}
	decode := func(text string) (g group, err error) {
		_, err = decodeYAML("t.yaml", []byte(text), maxFile, &g)
		return g, err
	}
	low, err := decode("{old: 1, new: 2}")
	if err != nil {
		t.Fatal(err)
	}
	high, err := decode("new: 4")
	if err != nil {
		t.Fatal(err)
	}
	if got := merge(low, high); got != (group{1, 4}) {
		t.Errorf("merged: %+v", got)
	}
	var g group
	flags := flagsOf(reflect.ValueOf(&g).Elem())
	if len(flags) != 1 || flags[0].Help != "hot-key: do it N times (default 3, batch 5)" || flags[0].Set("12") != nil || g.New != 12 {
		t.Errorf("flags: %+v, set: %+v", flags, g)
	}
	for text, want := range map[string]string{
		"new: many": `t.yaml:1:6: new: "many" is not a whole number`,
		"nwe: 1":    "t.yaml:1:1: nwe: no such field; did you mean new?",
		"former: 1": "t.yaml:1:1: former: former is now named new; write new: instead of former:",
	} {
		if _, err := decode(text); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	for workload, want := range map[string]string{
		HotKey: "[{load.new 12 is out of range write 1 to 9}]",
		Churn:  "[{load.new the workload churn has no new use the workload hot-key, or leave new out}]",
	} {
		var f findings
		checkFields(&f, &g, "load", workload)
		if got := fmt.Sprint(f); got != want {
			t.Errorf("%s: %s, want %s", workload, got, want)
		}
	}
	g = group{}
	if setDefaults(&g, HotKey); g.New != 3 {
		t.Errorf("default: %+v", g)
	}
}
