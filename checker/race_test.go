//go:build race

package checker

// slow: the race detector makes each history several times as dear, and finds
// nothing more in the ten thousandth than in the first thousand.
const slow = true
