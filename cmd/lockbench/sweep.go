package main

import (
	"strings"
	"unicode"

	"github.com/lockbench/lockbench/internal/scenario"
)

// sweep is the flag of a parameter that takes several comma-separated values, each
// of which makes a block of scenarios.
type sweep struct {
	*scenario.Flag
	values []string
}

// Set reads the values. A comma in parentheses is part of a value.
func (s *sweep) Set(text string) error {
	s.values = nil
	depth, from := 0, 0
	for i, r := range text + "," {
		switch {
		case r == '(':
			depth++
		case r == ')':
			depth--
		case r == ',' && depth <= 0:
			s.values = append(s.values, strings.TrimSpace(text[from:i]))
			from = i + 1
		}
	}
	if depth > 0 { // the parameter's own message is the better one
		s.values = []string{text}
	}
	for _, value := range s.values {
		if err := s.Flag.Set(value); err != nil {
			return err
		}
	}
	return nil
}

// over makes a block for each value out of each block.
func (s *sweep) over(blocks []scenario.Block) []scenario.Block {
	if len(s.values) < 2 {
		return blocks
	}
	var out []scenario.Block
	for _, b := range blocks {
		for _, value := range s.values {
			var settings scenario.Settings
			for _, flag := range scenario.Flags(&settings) {
				if flag.Name == s.Name {
					_ = flag.Set(value)   // it was read before
					value = flag.String() // without spaces
				}
			}
			one := scenario.File{Scenarios: []scenario.Block{b}}.With(settings).Scenarios[0]
			words := strings.FieldsFunc(value, func(r rune) bool { return !unicode.In(r, unicode.Letter, unicode.Digit) })
			one.Name += "-" + s.Name + "-" + strings.ReplaceAll(strings.Join(words, "-"), "µ", "u")
			out = append(out, one)
		}
	}
	return out
}
