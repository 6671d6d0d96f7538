// Package netdrop drops packets between chosen addresses, in the kernel, inside
// a network namespace that the run has to itself: nothing of it reaches the
// machine's own network, and nothing of it outlives the run's processes.
//
// It may import the standard library, golang.org/x/sys and a library for
// nftables only.
package netdrop
