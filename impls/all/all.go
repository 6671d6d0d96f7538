package all

import (
	"cmp"
	"slices"
	"strings"

	"github.com/lockbench/lockbench/impls"
	"github.com/lockbench/lockbench/impls/etcd"
	"github.com/lockbench/lockbench/impls/memcached"
	"github.com/lockbench/lockbench/impls/mysql"
	"github.com/lockbench/lockbench/impls/redis"
	"github.com/lockbench/lockbench/impls/reference"
	"github.com/lockbench/lockbench/impls/zookeeper"
)

// Recipes lists every recipe, backend by backend, the controls last. The
// slice is the caller's own.
func Recipes() []impls.Recipe {
	return slices.Concat(
		redis.Recipes(),
		etcd.Recipes(),
		zookeeper.Recipes(),
		memcached.Recipes(),
		mysql.Recipes(),
		reference.Recipes(),
	)
}

// Find returns the recipe with this id ("redis/token").
func Find(id string) (impls.Recipe, bool) {
	for _, r := range Recipes() {
		if r.Info().ID == id {
			return r, true
		}
	}
	return nil, false
}

// Nearest returns the ids, at most three, that somebody who typed id most
// likely meant, the likeliest first. It is empty if nothing is near.
func Nearest(id string) []string {
	type near struct {
		id       string
		distance int
	}
	id = strings.ToLower(strings.TrimSpace(id))
	if id == "" {
		return nil
	}
	var found []near
	for _, r := range Recipes() {
		known := r.Info().ID
		d := distance(id, known)
		backend, name, _ := strings.Cut(known, "/")
		if typed, _, whole := strings.Cut(id, "/"); !whole {
			// Half an id was typed: compare it with both halves.
			d = min(d, distance(typed, backend)+1, distance(typed, name)+1)
		} else if typed == backend {
			// The backend is right, so its other recipes are worth naming.
			d = min(d, farthest(known))
		}
		if d <= farthest(known) {
			found = append(found, near{known, d})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(a.distance, b.distance) })
	var ids []string
	for _, n := range found[:min(len(found), 3)] {
		ids = append(ids, n.id)
	}
	return ids
}

// farthest is the distance up to which a typed name may still be a slip for
// this one.
func farthest(id string) int { return max(3, len(id)/3) }

// distance counts the insertions, deletions, changes and swaps of neighbours
// that make b of a.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	older := make([]int, len(y)+1)
	last := make([]int, len(y)+1)
	row := make([]int, len(y)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
		older, last, row = last, row, older
	}
	return last[len(y)]
}
