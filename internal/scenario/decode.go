package scenario

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// The bounds of a specification. Real ones have a few kilobytes and five
// levels; a resolved one has about a kilobyte for each scenario. They keep a
// file given by mistake from being parsed for minutes.
const (
	maxFile     = 256 << 10
	maxResolved = 6 << 20
	maxDepth    = 32
)

// decoder fills Go values from a YAML tree. The library's own decoder stops
// at the first mistake and forgets where values stood; this one goes on, so
// that all mistakes are told at once, and remembers, so that what only shows
// later (a TTL that a backend cannot serve) is told with its line too.
type decoder struct {
	file     string
	problems []Problem
	places   map[string]position
}

// settable is implemented by the values that are written as one word.
type settable interface{ Set(string) error }

// shorthand is implemented by structs that may be written as one word, their
// kind.
type shorthand interface{ setShort(string) }

func (w *Workload) setShort(s string)  { w.Kind = s }
func (f *FaultSpec) setShort(s string) { f.Kind = s }

// decodeYAML reads data, at most limit bytes, into out, a pointer to a struct
// with yaml tags.
func decodeYAML(file string, data []byte, limit int, out any) (*decoder, error) {
	d := &decoder{file: file, places: map[string]position{}}
	if len(data) > limit {
		d.problem("", position{}, fmt.Sprintf("the file has %d bytes, a suite at most %d", len(data), limit), "is it the right file?")
		return d, d.err()
	}
	root, err := d.parse(data)
	if err == nil {
		d.value("", root, reflect.ValueOf(out).Elem())
		err = d.err()
	}
	return d, err
}

func (d *decoder) err() error {
	if len(d.problems) == 0 {
		return nil
	}
	return &Invalid{Problems: sorted(d.problems)}
}

func (d *decoder) parse(data []byte) (root ast.Node, err error) {
	fail := func(at position, msg, hint string) (ast.Node, error) {
		return nil, &Invalid{Problems: []Problem{{File: d.file, Line: at.line, Column: at.column, Message: msg, Hint: hint}}}
	}
	if line := tooDeep(data); line > 0 {
		return fail(position{line, 1}, fmt.Sprintf("nested more than %d deep", maxDepth), "is it the right file?")
	}
	// A mistake of the library on odd input must not end the program.
	defer func() {
		if r := recover(); r != nil {
			root, err = fail(position{}, fmt.Sprintf("the file cannot be parsed as YAML (%v)", r), "")
		}
	}()
	tree, err := parser.ParseBytes(data, 0)
	if err != nil {
		var y yaml.Error
		if !errors.As(err, &y) {
			return fail(position{}, "not YAML: "+err.Error(), "")
		}
		at := position{}
		if t := y.GetToken(); t != nil && t.Position != nil {
			at = position{t.Position.Line, t.Position.Column}
		}
		return fail(at, "not YAML: "+y.GetMessage(), "")
	}
	var bodies []ast.Node
	for _, doc := range tree.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return fail(position{}, "the file is empty", `write at least "name" and "scenarios"`)
	case 1:
		return bodies[0], nil
	}
	return fail(at(bodies[1]), "the file has a second YAML document", "write one suite to a file")
}

// tooDeep tells the first line on which a file is nested deeper than any
// suite, or 0. The library recurses for each level and takes time and memory
// by the square of them, so a few kilobytes could end the program. Brackets in
// texts and comments count too: real ones are closed again.
func tooDeep(data []byte) int {
	line, open := 1, 0
	lead := 0 // length of the line's indentation and list marks; -1 after them
	for _, c := range data {
		if c == '\n' || c == '\r' {
			lead = 0
			if c == '\n' {
				line++
			}
			continue
		}
		switch {
		case strings.IndexByte(" \t-?:!&*|>", c) < 0:
			lead = -1
		case lead >= 0:
			lead++
		}
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open = max(0, open-1)
		}
		if open > maxDepth || lead > 4*maxDepth {
			return line
		}
	}
	return 0
}

// at is where a node stands.
func at(n ast.Node) position {
	// A block mapping's own token is its first colon; its first key is where a
	// reader looks.
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return at(m.Values[0].Key)
	}
	if m, ok := n.(*ast.MappingValueNode); ok {
		return at(m.Key)
	}
	t := n.GetToken()
	if t == nil || t.Position == nil {
		return position{}
	}
	return position{t.Position.Line, t.Position.Column}
}

func (d *decoder) problem(path string, p position, msg, hint string) {
	d.problems = append(d.problems, Problem{File: d.file, Line: p.line, Column: p.column, Field: path, Message: msg, Hint: hint})
}

// value decodes n into v and notes where it stood.
func (d *decoder) value(path string, n ast.Node, v reflect.Value) {
	p := at(n)
	d.places[path] = p
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		d.problem(path, p, "anchors and aliases are not supported", `put what is common under "defaults"`)
		return
	case *ast.TagNode:
		d.problem(path, p, "tags are not supported", "write the value without its tag")
		return
	case *ast.NullNode:
		d.problem(path, p, "has no value", "give one, or leave the line out")
		return
	}
	if s, ok := v.Addr().Interface().(settable); ok {
		if text, ok := d.text(path, n, "a single value"); ok {
			if err := s.Set(text); err != nil {
				d.problem(path, p, err.Error(), "")
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		inner := reflect.New(v.Type().Elem())
		v.Set(inner)
		d.value(path, n, inner.Elem())
	case reflect.Struct:
		if s, ok := v.Addr().Interface().(shorthand); ok {
			if text, ok := scalar(n); ok {
				s.setShort(text)
				d.places[join(path, "kind")] = p
				return
			}
		}
		d.structure(path, n, v)
	case reflect.Slice:
		d.list(path, n, v)
	case reflect.Map:
		d.mapping(path, n, v)
	default:
		d.plain(path, n, v)
	}
}

// plain decodes strings, numbers and truth values.
func (d *decoder) plain(path string, n ast.Node, v reflect.Value) {
	wrong := func(want string) { d.problem(path, at(n), describe(n)+" where "+want+" is expected", "") }
	switch v.Kind() {
	case reflect.String:
		if text, ok := d.text(path, n, "a text"); ok {
			v.SetString(strings.TrimSpace(text)) // a block text ends in a line break
		}
	case reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			v.SetBool(b.Value)
		} else {
			wrong("true or false")
		}
	case reflect.Int, reflect.Int64, reflect.Uint64:
		text, _ := scalar(n)
		text = strings.ReplaceAll(text, "_", "")
		if _, ok := n.(*ast.IntegerNode); !ok {
			wrong("a whole number")
		} else if u, err := strconv.ParseUint(text, 0, 64); v.Kind() == reflect.Uint64 && err == nil {
			v.SetUint(u)
		} else if i, err := strconv.ParseInt(text, 0, 32); v.Kind() != reflect.Uint64 && err == nil {
			v.SetInt(i)
		} else {
			wrong("a whole number of that size")
		}
	case reflect.Float64:
		text, _ := scalar(n)
		f, err := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
		_, isFloat := n.(*ast.FloatNode)
		_, isInt := n.(*ast.IntegerNode)
		if err != nil || !isFloat && !isInt {
			wrong("a number")
			return
		}
		v.SetFloat(f)
	default:
		wrong("something else") // no field has such a type
	}
}

func (d *decoder) list(path string, n ast.Node, v reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		// One element stands for the list of it.
		one := reflect.MakeSlice(v.Type(), 1, 1)
		v.Set(one)
		d.places[path] = at(n)
		d.value(path+"[0]", n, one.Index(0))
		return
	}
	all := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	v.Set(all)
	for i, item := range seq.Values {
		if item == nil {
			continue
		}
		d.value(fmt.Sprintf("%s[%d]", path, i), item, all.Index(i))
	}
}

func (d *decoder) mapping(path string, n ast.Node, v reflect.Value) {
	pairs, ok := d.pairs(path, n)
	if !ok {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, pair := range pairs {
		key, ok := scalar(pair.Key)
		if !ok {
			d.problem(path, at(pair.Key), "a key that is no plain word", "")
			continue
		}
		inner := reflect.New(v.Type().Elem()).Elem()
		d.value(join(path, key), pair.Value, inner)
		v.SetMapIndex(reflect.ValueOf(key), inner)
	}
}

func (d *decoder) structure(path string, n ast.Node, v reflect.Value) {
	pairs, ok := d.pairs(path, n)
	if !ok {
		return
	}
	fields := map[string]reflect.Value{}
	var known []string
	collectFields(v, fields, &known)
	for _, pair := range pairs {
		key, _ := scalar(pair.Key)
		field, ok := fields[key]
		if !ok {
			hint := didYouMean(Nearest(key, known), known)
			if pair.Key.IsMergeKey() {
				hint = `put what is common under "defaults"`
			}
			d.problem(join(path, key), at(pair.Key), "no such field", hint)
			continue
		}
		if s, ok := v.Addr().Interface().(signed); ok && s.signed(key) {
			d.signedTime(join(path, key), pair.Value, field)
			continue
		}
		d.value(join(path, key), pair.Value, field)
	}
}

// collectFields lists a struct's fields by their YAML names.
func collectFields(v reflect.Value, fields map[string]reflect.Value, known *[]string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, opts, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case opts == "inline":
			collectFields(v.Field(i), fields, known)
		case name != "" && f.IsExported():
			fields[name] = v.Field(i)
			*known = append(*known, name)
		}
	}
}

func (d *decoder) pairs(path string, n ast.Node) ([]*ast.MappingValueNode, bool) {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values, true
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}, true
	}
	d.problem(path, at(n), describe(n)+` where fields ("name: value") are expected`, "")
	return nil, false
}

func (d *decoder) text(path string, n ast.Node, want string) (string, bool) {
	s, ok := scalar(n)
	if !ok {
		d.problem(path, at(n), describe(n)+" where "+want+" is expected", "")
	}
	return s, ok
}

// scalar is the text of a single value as it was written, so that a version
// such as 1.10 stays what it is.
func scalar(n ast.Node) (string, bool) {
	switch s := n.(type) {
	case *ast.StringNode:
		return s.Value, true
	case *ast.LiteralNode:
		return s.Value.Value, true
	case *ast.MappingKeyNode:
		return scalar(s.Value)
	case *ast.MergeKeyNode:
		return "<<", true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return s.GetToken().Value, true
	}
	return "", false
}

func describe(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "fields"
	case *ast.SequenceNode:
		return "a list"
	}
	if s, ok := scalar(n); ok {
		const enough = 60
		if runes := []rune(s); len(runes) > enough {
			s = string(runes[:enough]) + "..."
		}
		return strconv.Quote(s)
	}
	return "something else"
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
