package main

import (
	"cmp"
	"fmt"
	"go/scanner"
	"go/token"
	"regexp"
	"slices"
	"strings"
)

// rule is one word, phrase or identifier that is not to be used.
type rule struct {
	text       string // a word or a phrase, in any case
	identifier string // or the whole name of an identifier in Go code
	below      string // only in files below this folder; "" is everywhere
	instead    string
}

// finding is one occurrence.
type finding struct {
	path    string
	line    int
	word    string
	instead string
}

func (f finding) String() string {
	return fmt.Sprintf("%s:%d: %q: use %s", f.path, f.line, f.word, f.instead)
}

// eachWord calls f with every word of a text in lower case. An identifier is
// several words: two in tellAll and in TELL_ALL.
func eachWord(text string, f func(offset int, word string)) {
	lower := func(i int) bool { return i < len(text) && 'a' <= text[i] && text[i] <= 'z' }
	upper := func(i int) bool { return i < len(text) && 'A' <= text[i] && text[i] <= 'Z' }
	for i := 0; i < len(text); {
		from := i
		for upper(i) {
			i++
		}
		if i-from <= 1 {
			for lower(i) {
				i++
			}
		}
		if i == from {
			i++
			continue
		}
		f(from, strings.ToLower(text[from:i]))
	}
}

// table is the rules, prepared for matching.
type table struct {
	words   map[string]rule
	names   map[string]rule // by identifier
	phrases []phrase
}

type phrase struct {
	rule
	pattern *regexp.Regexp
}

func newTable(rules []rule) table {
	t := table{words: map[string]rule{}, names: map[string]rule{}}
	for _, r := range rules {
		switch {
		case r.identifier != "":
			t.names[r.identifier] = r
		case !strings.ContainsAny(r.text, " -."):
			t.words[r.text] = r
		default:
			t.phrases = append(t.phrases, phrase{r, phrasePattern(r.text)})
		}
	}
	return t
}

// find returns the occurrences in one file, by line.
func (t table) find(path, text string) []finding {
	var found []finding
	add := func(offset int, word string, r rule) {
		if strings.HasPrefix(path, r.below) {
			found = append(found, finding{path, 1 + strings.Count(text[:offset], "\n"), word, r.instead})
		}
	}
	eachWord(text, func(offset int, word string) {
		if r, ok := t.words[word]; ok {
			add(offset, word, r)
		}
	})
	lower := strings.ToLower(text)
	for _, p := range t.phrases {
		if !strings.Contains(lower, strings.Fields(p.text)[0]) {
			continue
		}
		for _, at := range p.pattern.FindAllStringIndex(text, -1) {
			add(at[0], p.text, p.rule)
		}
	}
	if strings.HasSuffix(path, ".go") {
		eachIdentifier(text, func(offset int, name string) {
			if r, ok := t.names[name]; ok {
				add(offset, name, r)
			}
		})
	}
	slices.SortStableFunc(found, func(a, b finding) int { return cmp.Compare(a.line, b.line) })
	return found
}

// phrasePattern matches words with any white space between them, the beginning of a
// comment's next line included.
func phrasePattern(text string) *regexp.Regexp {
	words := strings.Fields(text)
	for i, w := range words {
		words[i] = regexp.QuoteMeta(w)
	}
	end := `\b`
	if strings.HasSuffix(text, ".") {
		end = ""
	}
	return regexp.MustCompile(`(?i)\b` + strings.Join(words, `(?:[ \t]+|[ \t]*\n[ \t]*(?://|#|>)?[ \t]*)`) + end)
}

func eachIdentifier(source string, f func(offset int, name string)) {
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, []byte(source), func(token.Position, string) {}, 0)
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return
		}
		if tok == token.IDENT {
			f(file.Offset(pos), literal)
		}
	}
}
