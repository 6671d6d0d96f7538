// Package netdrop drops packets between chosen addresses, in the kernel, inside
// a network namespace that the run has to itself: nothing of it reaches the
// machine's own network, and nothing of it outlives the run's processes.
//
// A fault made by a proxy or a dialer can swallow bytes, but it ends when its
// process does, and the kernel still answers for both ends. Here the kernel
// itself loses the packets: the end of a client that died behind the cut does
// not reach the server, a new connection hangs in its handshake, and each side
// retransmits as it would with a pulled cable.
//
// The program calls MainIfProbe first in main. A run that wants such faults
// calls Enter early, before it has opened or started anything: the process
// executes itself anew inside a namespace of its own, with the same pid, so that
// its terminal, its signals and its parent notice nothing. There all servers and
// clients share one loopback, and clients differ by the address they
// dial from (127.77.0.1, ...). A Dropper then puts rules and takes them away.
//
// A superuser needs nothing for it; others need user namespaces and the program
// unshare. Available finds out by doing it. Linux only: elsewhere every call
// answers with ErrUnavailable and the reason.
//
// It may import the standard library, golang.org/x/sys and a library for
// nftables only.
package netdrop
