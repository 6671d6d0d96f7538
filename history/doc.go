// Package history is the record of what clients did: every call with its
// invoke and return on one monotonic clock, and its outcome, where "unknown"
// is an outcome like the others.
//
// It holds the record types, the crash-safe writer (one memory-mapped file per
// client), the merge of those files into one, and the reader, which tells what
// it could not read instead of guessing.
//
// It may import the standard library and golang.org/x/sys only: everything
// else in lockbench stands above it.
package history
