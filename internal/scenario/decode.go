package scenario

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// The bounds of a suite file. Real ones have a few kilobytes and five levels; a
// resolved one has about a kilobyte per scenario. They keep a file given by mistake
// from being parsed for minutes.
const (
	maxFile     = 256 << 10
	maxResolved = 6 << 20
	maxDepth    = 32
	maxValues   = 400_000 // with those that aliases repeat
)

// decoder fills Go values from the library's YAML tree. The library's own strict
// decoder stops at the first error and forgets where values were; this one
// reports all errors at once and keeps the places, so that an error found later
// (a TTL that a backend cannot serve) has its line too.
type decoder struct {
	file     string
	problems []Problem
	places   map[string]position
	anchors  map[string]ast.Node
	values   int // decoded so far
}

// decodeYAML reads data, at most limit bytes, into out, a pointer to a struct
// with yaml tags.
func decodeYAML(file string, data []byte, limit int, out any) (*decoder, error) {
	d := &decoder{file: file, places: map[string]position{}, anchors: map[string]ast.Node{}}
	if len(data) > limit {
		d.problem("", position{}, fmt.Sprintf("the file has %d bytes, a suite at most %d", len(data), limit), "is it the right file?")
		return d, d.err()
	}
	root, err := d.parse(data)
	if err == nil {
		d.findAnchors(root)
		d.value("", root, field{value: reflect.ValueOf(out).Elem()})
		if d.values > maxValues {
			d.problem("", position{}, fmt.Sprintf("the file has more than %d values", maxValues), "is it the right file?")
		}
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
	// A panic of the library on odd input must not end the program.
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
		lines := bytes.Split(data, []byte("\n"))
		if at.line > 0 && at.line <= len(lines) && bytes.ContainsRune(lines[at.line-1], '\t') {
			return fail(at, "not YAML: the line has a tab", "use spaces, not tabs")
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

// tooDeep is the first line on which a file is nested deeper than any suite, or
// 0. The library recurses for each level, and its time and memory grow with the
// square of the depth, so a few kilobytes could end the program. Brackets in texts
// and comments count too.
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

// at is the place of a node.
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

// value decodes n into f and notes its place.
func (d *decoder) value(path string, n ast.Node, f field) {
	d.places[path] = at(n)
	if d.values++; d.values > maxValues {
		return // reported by decodeYAML
	}
	n = d.follow(path, n)
	switch n.(type) {
	case nil:
		return
	case *ast.TagNode:
		d.problem(path, at(n), "tags are not supported", "write the value without its tag")
		return
	case *ast.NullNode:
		d.problem(path, at(n), "has no value", "give one, or leave the line out")
		return
	}
	switch {
	case f.value.Kind() == reflect.Slice:
		d.list(path, n, f.value)
	case f.value.Kind() == reflect.Map:
		d.mapping(path, n, f.value)
	case isGroup(f.value):
		d.group(path, n, f.value)
	default:
		text, ok := scalar(n)
		if !ok {
			d.problem(path, at(n), describe(n)+" where a single value is expected", "")
		} else if err := f.set(text); err != nil {
			d.problem(path, at(n), err.Error(), "")
		}
	}
}

const useDefaults = `put common settings under "defaults"`

// findAnchors finds what aliases stand for. An anchor with an alias in it could
// contain itself, or grow beyond all bounds.
func (d *decoder) findAnchors(root ast.Node) {
	for _, n := range ast.Filter(ast.AnchorType, root) {
		anchor := n.(*ast.AnchorNode)
		if inner := ast.Filter(ast.AliasType, anchor.Value); len(inner) > 0 {
			d.problem("", at(inner[0]), "an alias within an anchor is not supported", "write out the values")
			continue
		}
		d.anchors[anchor.Name.GetToken().Value] = anchor.Value
	}
}

// follow returns the node that an anchor or an alias stands for; nil if there is
// none.
func (d *decoder) follow(path string, n ast.Node) ast.Node {
	switch a := n.(type) {
	case *ast.AnchorNode:
		return a.Value
	case *ast.AliasNode:
		name := a.Value.GetToken().Value
		if d.anchors[name] == nil {
			d.problem(path, at(n), fmt.Sprintf("no anchor %q", name), "define it with &"+name)
		}
		return d.anchors[name]
	}
	return n
}

// elements are those of a list, and of the lists in it: [*redis, mysql/insert]. A
// single element may stand for the list of it.
func (d *decoder) elements(path string, n ast.Node) []ast.Node {
	seq, ok := d.follow(path, n).(*ast.SequenceNode)
	if !ok {
		return []ast.Node{n}
	}
	list := []ast.Node{}
	if d.values += len(seq.Values); d.values > maxValues {
		return list
	}
	for _, element := range seq.Values {
		list = append(list, d.elements(path, element)...)
	}
	return list
}

func (d *decoder) list(path string, n ast.Node, v reflect.Value) {
	elements := d.elements(path, n)
	v.Set(reflect.MakeSlice(v.Type(), len(elements), len(elements)))
	for i, element := range elements {
		d.value(fmt.Sprintf("%s[%d]", path, i), element, field{value: v.Index(i)})
	}
}

func (d *decoder) mapping(path string, n ast.Node, v reflect.Value) {
	v.Set(reflect.MakeMap(v.Type()))
	for _, pair := range d.pairs(path, n) {
		key, ok := scalar(pair.Key)
		if !ok {
			d.problem(path, at(pair.Key), "a key must be a plain word", "")
			continue
		}
		inner := reflect.New(v.Type().Elem()).Elem()
		d.value(join(path, key), pair.Value, field{value: inner})
		v.SetMapIndex(reflect.ValueOf(key), inner)
	}
}

// group decodes a struct. One with a kind may be written as its kind alone.
func (d *decoder) group(path string, n ast.Node, v reflect.Value) {
	fields := fieldsOf(v)
	find := func(matches func(field) bool) (field, bool) {
		i := slices.IndexFunc(fields, matches)
		return fields[max(0, i)], i >= 0
	}
	if _, ok := scalar(n); ok {
		if kind, ok := find(func(f field) bool { return f.name == "kind" }); ok {
			d.value(join(path, "kind"), n, kind)
			return
		}
	}
	for _, pair := range d.pairs(path, n) {
		key, _ := scalar(pair.Key)
		inner := join(path, key)
		if f, ok := find(func(f field) bool { return f.name == key }); ok {
			d.value(inner, pair.Value, f)
			f.mark()
			continue
		}
		if f, ok := find(func(f field) bool { return f.tag.Get("was") == key && key != "" }); ok {
			d.problem(inner, at(pair.Key), fmt.Sprintf("%s is now named %s", key, f.name), fmt.Sprintf("write %s: instead of %s:", f.name, key))
			continue
		}
		var known []string
		for _, f := range fields {
			known = append(known, f.name)
		}
		hint := Suggest(key, known)
		if pair.Key.IsMergeKey() {
			hint = useDefaults
		}
		d.problem(inner, at(pair.Key), "no such field", hint)
	}
}

func (d *decoder) pairs(path string, n ast.Node) []*ast.MappingValueNode {
	switch m := n.(type) {
	case *ast.MappingNode:
		return m.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{m}
	}
	d.problem(path, at(n), describe(n)+` where fields ("name: value") are expected`, "")
	return nil
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
