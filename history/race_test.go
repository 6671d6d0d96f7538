//go:build race

package history

// oneIn: tests of damage read one in so many files. The race detector makes each
// ten times as dear, and has nothing to find in a single goroutine. make test also
// runs this package without it, and then with every file.
const oneIn = 10
