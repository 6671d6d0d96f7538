// Package advise answers which lock fits a need, from measured scenarios alone.
//
// Each rule looks for scenarios that decide it. A rule without one is "not
// measured", and such a lock is never recommended.
package advise
