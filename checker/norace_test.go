//go:build !race

package checker

const slow = false
