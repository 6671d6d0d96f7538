//go:build !race

package history

const oneIn = 1
