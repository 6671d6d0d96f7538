package scenario

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Nearest lists up to three of known that word probably stands for, the likeliest
// first.
func Nearest(word string, known []string) []string {
	type candidate struct {
		name string
		cost int
	}
	if len(word) > 100 {
		return nil
	}
	word = strings.ToLower(strings.TrimSpace(word))
	family, _, member := strings.Cut(word, "/")
	var found []candidate
	for _, name := range known {
		cost := distance(word, name)
		limit := max(1, min(len(word), len(name))/2)
		// "mutex" for "etcd/mutex", or "redis" for all its recipes: part of a
		// name, which the number of missing letters would hide.
		if len(word) >= 3 && strings.Contains(name, word) {
			cost = min(cost, 1)
		}
		// "etcd/lock" for "etcd/mutex": the backend is right, so its recipes
		// are worth naming, unless another name is nearer.
		if member && strings.HasPrefix(name, family+"/") {
			cost = min(cost, limit)
		}
		if cost <= limit {
			found = append(found, candidate{name, cost})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.cost, b.cost), cmp.Compare(a.name, b.name))
	})
	names := make([]string, 0, 3)
	for _, c := range found[:min(3, len(found))] {
		// Beside a near name a far one only distracts.
		if c.cost <= found[0].cost+1 {
			names = append(names, c.name)
		}
	}
	return names
}

// distance counts the letters to insert, delete, change or swap with their
// neighbour to make b from a.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	row := make([][]int, len(s)+1)
	for i := range row {
		row[i] = make([]int, len(t)+1)
		row[i][0] = i
	}
	for j := range row[0] {
		row[0][j] = j
	}
	for i := 1; i <= len(s); i++ {
		for j := 1; j <= len(t); j++ {
			change := 1
			if s[i-1] == t[j-1] {
				change = 0
			}
			row[i][j] = min(row[i-1][j]+1, row[i][j-1]+1, row[i-1][j-1]+change)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				row[i][j] = min(row[i][j], row[i-2][j-2]+1)
			}
		}
	}
	return row[len(s)][len(t)]
}

// RecipeHint is a hint for an unknown recipe: if the id is a backend, to name some
// of its recipes, else the nearest ids.
func RecipeHint(c Catalogue, id string) string {
	if slices.ContainsFunc(c.IDs(), func(known string) bool { return strings.HasPrefix(known, id+"/") }) {
		return fmt.Sprintf("%[1]s is a backend: name some of its recipes, which lockbench list recipes %[1]s shows", id)
	}
	if near := Nearest(id, c.IDs()); len(near) > 0 {
		return didYouMean(near, nil)
	}
	return "see lockbench list recipes"
}

// Suggest is a hint for a word that is none of known: the nearest of them, or all.
func Suggest(word string, known []string) string { return didYouMean(Nearest(word, known), known) }

// didYouMean is a hint: the nearest names, or all of them if none is near.
func didYouMean(nearest, known []string) string {
	switch {
	case len(nearest) > 0:
		return "did you mean " + strings.Join(nearest, " or ") + "?"
	case len(known) > 0:
		last := len(known) - 1
		if last == 0 {
			return "choose " + known[0]
		}
		return "choose " + strings.Join(known[:last], ", ") + " or " + known[last]
	}
	return ""
}
