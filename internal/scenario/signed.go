package scenario

import (
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// signed is implemented by structs of which some times may be negative.
type signed interface{ signed(field string) bool }

// A clock may jump backwards.
func (f *FaultSpec) signed(field string) bool { return field == "by" }
func (f *Fault) signed(field string) bool     { return field == "by" }

// ParseSigned reads a time that may be negative, such as "-1.5s".
func ParseSigned(s string) (Duration, error) {
	number, negative := strings.CutPrefix(strings.TrimSpace(s), "-")
	t, err := parseTime(number)
	if negative {
		t = -t
	}
	return Duration(t), err
}

// signedTime decodes a time that may be negative, into a Duration or a pointer
// to one.
func (d *decoder) signedTime(path string, n ast.Node, v reflect.Value) {
	text, _ := scalar(n)
	if !strings.HasPrefix(strings.TrimSpace(text), "-") {
		d.value(path, n, v)
		return
	}
	d.places[path] = at(n)
	t, err := ParseSigned(text)
	if err != nil {
		d.problem(path, at(n), err.Error(), "")
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	v.SetInt(int64(t))
}
