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

// signedTime decodes a time that may be negative, into a Duration or a pointer
// to one.
func (d *decoder) signedTime(path string, n ast.Node, v reflect.Value) {
	text, _ := scalar(n)
	number, negative := strings.CutPrefix(strings.TrimSpace(text), "-")
	if !negative {
		d.value(path, n, v)
		return
	}
	d.places[path] = at(n)
	t, err := parseTime(number)
	if err != nil {
		d.problem(path, at(n), err.Error(), "")
		return
	}
	if v.Kind() == reflect.Pointer {
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
	}
	v.SetInt(-int64(t))
}
