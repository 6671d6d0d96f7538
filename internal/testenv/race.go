//go:build race

package testenv

// Race: the race detector makes each case of a search several times as dear, and
// finds nothing more in the ten thousandth than in the first thousand. Tests with
// many cases in a single goroutine look at a share of them; make test also runs
// their packages without it, and then with every case.
const Race = true
