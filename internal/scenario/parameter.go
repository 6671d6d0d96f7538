package scenario

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// field is a field of a struct with yaml tags. A parameter of an experiment is
// declared once, as a field of Scenario or Load, and the decoder, the merge of
// defaults, blocks and flags, the flags themselves, the defaults and the checks
// all read its tags:
//
//	yaml     its name in a suite
//	flag     the name of its flag, and help, that flag's text
//	default  its value where none is given: "4s"; "1 keys=100" means 100 with the
//	         workload keys and 1 with any other
//	for      the only workload that has it
//	range    the values allowed: "1..100", "0s" (or more), ">1..100" (not 1 itself)
//	choices  the words allowed
//	signed   the time may be negative
//	was      a former name; suites that use it get an error with the new name
type field struct {
	name  string // in YAML
	tag   reflect.StructTag
	value reflect.Value
	zeros *zeros // of the struct, nil if its zero values mean "not given"
	bit   zeros
}

// zeros marks the fields of a struct that were given as zero: "warmup: 0s"
// differs from no warmup.
type zeros uint64

func (sc *Scenario) givenZeros() *zeros { return &sc.zero }
func (l *Load) givenZeros() *zeros      { return &l.zero }
func (f *Fault) givenZeros() *zeros     { return &f.zero }
func (f *FaultSpec) givenZeros() *zeros { return &f.zero }

// isGroup reports whether v is a struct of several fields, not one value.
func isGroup(v reflect.Value) bool {
	_, oneValue := v.Addr().Interface().(encoding.TextUnmarshaler)
	return v.Kind() == reflect.Struct && !oneValue
}

// fieldsOf lists the fields of an addressable struct, those of inlined structs
// among them, less the ones that an omit tag names.
func fieldsOf(v reflect.Value) []field {
	var given *zeros
	if s, ok := v.Addr().Interface().(interface{ givenZeros() *zeros }); ok {
		given = s.givenZeros()
	}
	var list []field
	for i := range v.NumField() {
		tag := v.Type().Field(i).Tag
		name, option, _ := strings.Cut(tag.Get("yaml"), ",")
		switch {
		case option == "inline":
			omit := strings.Split(tag.Get("omit"), " ")
			inner := fieldsOf(v.Field(i))
			list = append(list, slices.DeleteFunc(inner, func(f field) bool { return slices.Contains(omit, f.name) })...)
		case name != "":
			list = append(list, field{name: name, tag: tag, value: v.Field(i), zeros: given, bit: 1 << i})
		}
	}
	return list
}

// fieldsIn is fieldsOf of what a pointer points to.
func fieldsIn(pointer any) []field { return fieldsOf(reflect.ValueOf(pointer).Elem()) }

// givenIn lists the fields of a group that were given, by their paths: "ttl",
// "workload", "workload.keys".
func givenIn(group reflect.Value, path string) map[string]bool {
	all := map[string]bool{}
	for _, f := range fieldsOf(group) {
		if !f.given() {
			continue
		}
		all[join(path, f.name)] = true
		if isGroup(f.value) {
			maps.Copy(all, givenIn(f.value, join(path, f.name)))
		}
	}
	return all
}

func (f field) given() bool {
	return !f.value.IsZero() || f.zeros != nil && *f.zeros&f.bit != 0
}

// mark notes that the field has been given its value.
func (f field) mark() {
	if f.zeros == nil {
		return
	}
	*f.zeros &^= f.bit
	if f.value.IsZero() {
		*f.zeros |= f.bit
	}
}

// set gives the field the value that text stands for.
func (f field) set(text string) error {
	if f.tag.Get("signed") != "" {
		d, err := ParseSigned(text)
		f.value.Set(reflect.ValueOf(d))
		f.mark()
		return err
	}
	err := setText(f.value, text)
	f.mark()
	return err
}

// setText reads text into v. A list takes comma-separated elements, and adds
// them to those that it has.
func setText(v reflect.Value, text string) error {
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	text = strings.TrimSpace(text)
	wrong := func(err error, want string) error {
		switch {
		case err == nil:
			return nil
		case errors.Is(err, strconv.ErrRange):
			return fmt.Errorf("%q is too large", text)
		}
		return fmt.Errorf("%q is not %s", text, want)
	}
	switch v.Kind() {
	case reflect.Slice:
		for _, part := range strings.Split(text, ",") {
			element := reflect.New(v.Type().Elem()).Elem()
			if err := setText(element, part); err != nil {
				return err
			}
			v.Set(reflect.Append(v, element))
		}
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		b, err := strconv.ParseBool(text)
		v.SetBool(b)
		return wrong(err, "true or false")
	case reflect.Int, reflect.Int64:
		i, err := strconv.ParseInt(text, 0, 32)
		v.SetInt(i)
		return wrong(err, "a whole number")
	case reflect.Uint64:
		u, err := strconv.ParseUint(text, 0, 64)
		v.SetUint(u)
		return wrong(err, "a whole number, 0 or more")
	case reflect.Float64:
		x, err := strconv.ParseFloat(text, 64)
		v.SetFloat(x)
		return wrong(err, "a number")
	default:
		return fmt.Errorf("a %s cannot be written as text", v.Type())
	}
	return nil
}

// merge puts what over gives on top of base: groups field by field, maps key by
// key.
func merge[T any](base, over T) T {
	overlay(reflect.ValueOf(&base).Elem(), reflect.ValueOf(&over).Elem())
	return base
}

func overlay(base, over reflect.Value) {
	switch {
	case base.Kind() == reflect.Map:
		all := reflect.MakeMap(base.Type())
		for _, layer := range []reflect.Value{base, over} {
			for entry := layer.MapRange(); entry.Next(); {
				below, above := reflect.New(base.Type().Elem()).Elem(), reflect.New(base.Type().Elem()).Elem()
				above.Set(entry.Value())
				if present := all.MapIndex(entry.Key()); present.IsValid() {
					below.Set(present)
				}
				overlay(below, above)
				all.SetMapIndex(entry.Key(), below)
			}
		}
		base.Set(all)
	case isGroup(base) && !replaces(over, base):
		below := fieldsOf(base)
		for i, f := range fieldsOf(over) {
			if f.given() {
				overlay(below[i].value, f.value)
				below[i].mark()
			}
		}
	default:
		base.Set(over)
	}
}

// replaces reports whether over is a load of another kind than base: the two
// have no parameter in common, even where the names are the same.
func replaces(over, base reflect.Value) bool {
	o, ok := over.Interface().(Load)
	return ok && o.Kind != "" && base.Interface().(Load).Kind != "" && o.Kind != base.Interface().(Load).Kind
}

// hasIt reports whether a workload has the parameter.
func (f field) hasIt(workload string) bool {
	only := f.tag.Get("for")
	return only == "" || only == workload
}

// defaultFor is the parameter's default with a workload, empty if it has none.
func (f field) defaultFor(workload string) string {
	value := ""
	for _, word := range strings.Fields(f.tag.Get("default")) {
		kind, special, ok := strings.Cut(word, "=")
		switch {
		case !ok:
			value = word
		case kind == workload:
			return special
		}
	}
	return value
}

// setDefaults fills in the defaults of what is not given.
func setDefaults(group any, workload string) {
	for _, f := range fieldsIn(group) {
		if text := f.defaultFor(workload); text != "" && f.hasIt(workload) && !f.given() {
			if err := f.set(text); err != nil {
				panic(fmt.Sprintf("default of %s: %v", f.name, err)) // a test sets every default
			}
		}
	}
}

// checkFields checks every field of a resolved group against its own tags.
func checkFields(f *findings, group any, path, workload string) {
	for _, p := range fieldsIn(group) {
		at := join(path, p.name)
		choices := strings.Fields(p.tag.Get("choices"))
		if !p.hasIt(workload) {
			if !p.value.IsZero() {
				f.add(at, fmt.Sprintf("use the workload %s, or leave %s out", p.tag.Get("for"), p.name), "the workload %s has no %s", workload, p.name)
			}
			continue
		}
		if len(choices) > 0 && !slices.Contains(choices, p.value.String()) && (p.value.String() != "" || p.defaultFor(workload) != "") {
			f.add(at, didYouMean(nil, choices), "invalid %s %q", p.name, p.value.String())
		}
		if allowed, ok := p.inRange(); !ok {
			hint := "write " + allowed
			if example := p.defaultFor(workload); strings.HasPrefix(allowed, "more") && example != "" {
				hint += ", such as " + example
			}
			f.add(at, hint, "%v is out of range", p.value.Interface())
		}
	}
}

// inRange reports whether the value is in the field's range, and what that is.
func (f field) inRange() (allowed string, ok bool) {
	text := f.tag.Get("range")
	if text == "" {
		return "", true
	}
	low, high, bounded := strings.Cut(text, "..")
	low, exclusive := strings.CutPrefix(low, ">")
	value := number(f.value)
	switch {
	case exclusive && bounded:
		return fmt.Sprintf("more than %s, at most %s", low, high), value > f.bound(low) && value <= f.bound(high)
	case exclusive:
		return "more than " + low, value > f.bound(low)
	case bounded:
		return low + " to " + high, value >= f.bound(low) && value <= f.bound(high)
	}
	return low + " or more", value >= f.bound(low)
}

// bound is an end of the field's range as a number.
func (f field) bound(text string) float64 {
	v := reflect.New(f.value.Type()).Elem()
	if err := setText(v, text); err != nil {
		panic(fmt.Sprintf("range of %s: %v", f.name, err)) // a test checks every range
	}
	return number(v)
}

// number is the value of a number or a Duration.
func number(v reflect.Value) float64 {
	if v.CanFloat() {
		return v.Float()
	}
	return float64(v.Int())
}

// Flag is a parameter as a flag of the command; it implements pflag.Value.
type Flag struct {
	Name, Help string
	field      field
	set        bool
}

// Flags makes a flag for every parameter that has one. Setting it changes s.
func Flags(s *Settings) []*Flag { return flagsOf(reflect.ValueOf(s).Elem()) }

// FaultFlags does what Flags does, for the parameters of a fault.
func FaultFlags(f *FaultSpec) []*Flag { return flagsOf(reflect.ValueOf(f).Elem()) }

func flagsOf(group reflect.Value) []*Flag {
	var list []*Flag
	for _, f := range fieldsOf(group) {
		if isGroup(f.value) {
			list = append(list, flagsOf(f.value)...)
		} else if name := f.tag.Get("flag"); name != "" {
			list = append(list, &Flag{Name: name, Help: f.help(), field: f})
		}
	}
	return list
}

// help is the text of the field's flag: its workload, what to do, the default.
func (f field) help() string {
	text := f.tag.Get("help")
	if only := f.tag.Get("for"); only != "" {
		text = only + ": " + text
	}
	if value := f.tag.Get("default"); value != "" {
		text += " (default " + strings.ReplaceAll(strings.ReplaceAll(value, " ", ", "), "=", " ") + ")"
	}
	return text
}

// Set reads the flag's value.
func (f *Flag) Set(text string) error {
	f.set = true
	return f.field.set(text)
}

// String is the value that was set; empty before.
func (f *Flag) String() string {
	if !f.set {
		return ""
	}
	return fmt.Sprint(f.field.value.Interface())
}

// Type names the value in the help.
func (f *Flag) Type() string {
	v := f.field.value
	if t, ok := v.Addr().Interface().(interface{ Type() string }); ok {
		return t.Type()
	}
	if v.Kind() == reflect.Slice {
		return v.Type().Elem().Kind().String() + "s"
	}
	return v.Kind().String()
}
